//! The `sheaf` command.

mod cli;
mod engine;
mod messages;
mod progress;
mod run;
mod world;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Command};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match cli.command() {
        Command::Run(options) => run::run(&options),
        Command::CompileWorker { library } => sheaf_toolchain::run_worker(&library),
    }
}
