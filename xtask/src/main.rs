//! Occasional tasks of the project's developers. Users never run it, and no shipped code depends on it.

mod pin_compiler;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Errors are not typed: users of a task read its source.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write toolchain/target/src/releases/table.rs: the compiler wheels that Sheaf accepts
    ///
    /// Downloads each platform's wheel with pip, from the index configured on this machine, into a temporary folder;
    /// its size, its SHA-256, and those of the files that Sheaf extracts from it, are computed from the received bytes.
    /// The compiler of Linux on x86-64, which must be this machine's platform, is run: it reports its backends, and a
    /// small program that it compiles contains the version of its bytecode. For other platforms the backends are those
    /// whose plug-ins are named in the library; on Linux on x86-64, both must agree. Review the diff before committing
    /// it.
    #[command(after_help = "Example:\n  cargo xtask pin-compiler --notes /tmp/notes 3.13.0 3.12.0")]
    PinCompiler {
        /// Folder of the results for each wheel, so that an interrupted run can be resumed
        #[arg(long, value_name = "FOLDER")]
        notes: Option<PathBuf>,
        /// The releases: the first is the default, the others can be pinned by a project
        #[arg(required = true, value_name = "VERSION")]
        versions: Vec<String>,
    },
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        Task::PinCompiler { notes, versions } => pin_compiler::pin_compiler(&versions, notes.as_deref()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
