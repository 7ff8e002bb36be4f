//! `sheaf step`: compilation ahead of time in three commands, for build systems that cache and distribute each.
//!
//! | command | reads | writes |
//! |---|---|---|
//! | `lower` | sources, a shapes file | `calls.json`, and `N.json` for the call at position N of the shapes file |
//! | `compile` | one `N.json`, the compiler | a compiled program and its claim |
//! | `link` | all of these | an artifact folder, as `__sheaf__` is |
//!
//! An `N.json` has the inputs of a compilation and nothing else, so it stays the same, byte for byte, while what it is compiled to does.
//! The files depend on no machine: processors are named, and no program is tried out.

mod compile;
mod files;
mod link;
mod lower;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use sheaf_target::{Destination, Processor};

use crate::evaluator::on_large_stack;
use crate::packages::options::DependencyOptions;

/// Commands of `sheaf step`.
#[derive(Clone, Debug, Subcommand)]
pub enum StepCommand {
    /// Lower the recorded calls of a program to the compiler's texts
    #[command(
        after_help = "Example:\n  sheaf step lower train.shf --shapes shapes.json --cpu x86-64-v3 --output lowered"
    )]
    Lower(LowerOptions),
    /// Compile one of the lowered calls
    #[command(
        after_help = "Example:\n  sheaf step compile lowered/0.json --program 0.vmfb --claim 0.claim --compiler ~/.sheaf/data"
    )]
    Compile(CompileOptions),
    /// Put compiled programs into a folder that a run uses
    #[command(
        after_help = "Example:\n  sheaf step link lowered --program 0.vmfb --claim 0.claim --output __sheaf__"
    )]
    Link(LinkOptions),
}

/// Options of `sheaf step lower`.
#[derive(Args, Clone, Debug)]
pub struct LowerOptions {
    /// The program
    pub file: PathBuf,
    /// Record of a run, written with --record; the sources may have changed since
    #[arg(long, value_name = "SHAPES.json")]
    pub shapes: PathBuf,
    /// The device to compile for: `cpu`, `cuda[:sm_89]`, `vulkan[:rdna3]` or `metal`
    #[arg(long, default_value = "cpu")]
    pub device: Destination,
    /// The processor to compile for: `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`
    #[arg(long, value_name = "NAME", default_value = "host")]
    pub cpu: Processor,
    /// The folder for the texts
    #[arg(long, short, value_name = "FOLDER")]
    pub output: PathBuf,
    /// Dependencies
    #[command(flatten)]
    pub dependencies: DependencyOptions,
}

/// Options of `sheaf step compile`.
#[derive(Args, Clone, Debug)]
pub struct CompileOptions {
    /// The lowered call
    pub lowered: PathBuf,
    /// The file for the compiled program
    #[arg(long, value_name = "FILE.vmfb")]
    pub program: PathBuf,
    /// The file for the claim: the inputs of the compilation, and the digest of its result
    #[arg(long, value_name = "FILE.claim")]
    pub claim: PathBuf,
    /// A folder of data in which the compiler is installed; by default that of `SHEAF_HOME`
    #[arg(long, value_name = "FOLDER")]
    pub compiler: Option<PathBuf>,
    /// A store of compiled programs, as `SHEAF_HOME` has one in `cache`: what it has is not compiled, and what is compiled is kept in it.
    /// It is trusted as a compiler is
    #[arg(long, value_name = "FOLDER")]
    pub store: Option<PathBuf>,
}

/// Options of `sheaf step link`.
#[derive(Args, Clone, Debug)]
pub struct LinkOptions {
    /// Folders of lowered calls, one for each device
    #[arg(required = true)]
    pub lowered: Vec<PathBuf>,
    /// A compiled program for each call, in their order
    #[arg(long = "program", value_name = "FILE.vmfb", required = true)]
    pub programs: Vec<PathBuf>,
    /// Their claims
    #[arg(long = "claim", value_name = "FILE.claim", required = true)]
    pub claims: Vec<PathBuf>,
    /// The folder for the programs and their manifest
    #[arg(long, short, value_name = "FOLDER")]
    pub output: PathBuf,
}

/// Runs `sheaf step`.
pub fn step(command: &StepCommand) -> ExitCode {
    match command {
        StepCommand::Lower(options) => on_large_stack(|| lower::lower(options)),
        StepCommand::Compile(options) => on_large_stack(|| compile::compile(options)),
        StepCommand::Link(options) => on_large_stack(|| link::link(options)),
    }
}
