//! What the project's own people do now and then. No user runs it, and nothing that is shipped depends on it.

mod pin_compiler;

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Whatever stopped a task: whoever runs one reads its source.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", about)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Write toolchain/src/releases/table.rs: the compiler wheels that Sheaf accepts
    ///
    /// Each platform's wheel is fetched with pip, from whatever index this machine's pip uses, into a temporary folder; its
    /// size, its SHA-256, and those of the files that Sheaf takes out of it, are read from the bytes that came. The compiler
    /// of Linux on x86-64, which must be this machine's platform, is started: it tells its backends, and a small program
    /// that it compiles tells the version of its bytecode. For other platforms the backends are those whose plug-ins are
    /// named in the library; where the compiler can be started, both must agree. Look at the difference in version control
    /// before committing it.
    #[command(after_help = "Example:\n  cargo xtask pin-compiler --notes /tmp/notes 3.13.0 3.12.0")]
    PinCompiler {
        /// Where what was found out about each wheel is kept, so that an interrupted run goes on where it was
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
