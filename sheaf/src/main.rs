//! The `sheaf` command.

use std::process::ExitCode;

use clap::Parser;
use sheaf::cli::{Cli, Command};

fn main() -> ExitCode {
    match Cli::parse().command() {
        Command::Run(options) => sheaf::run::run(&options),
        Command::Test(options) => sheaf::test::test(&options),
        Command::Expand(options) => sheaf::expand::expand(&options),
        Command::CompileWorker { library } => sheaf_toolchain::run_worker(&library),
    }
}
