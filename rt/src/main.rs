//! `sheaf-rt`: runs a program whose functions were compiled before. It has no compiler, no network and no packages; what it
//! runs is a bundle (docs/bundles.md), or a program with its `__sheaf__`.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod options;
mod program;
mod terminal;

use std::io::{self, Write as _};
use std::process::ExitCode;

use options::{Command, Options};
use program::{Failure, Program};
use sheaf_lang::eval::STACK_BYTES;

#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Exit code of a run that a guard stopped.
const GUARDED: u8 = 3;

/// End of a run.
enum Ended {
    Done,
    /// A guard stopped it.
    Guarded,
}

fn main() -> ExitCode {
    let command = match Command::parse() {
        Ok(command) => command,
        Err(error) => {
            terminal::error(&error.to_string(), Some("`sheaf-rt --help` lists the options"));
            return ExitCode::from(2);
        }
    };
    match command {
        Command::Text(text) => {
            // A reader that has gone is no error.
            let _ = io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Command::Verify(path) => program::verify(path.as_deref()),
        Command::Run(options) => on_large_stack(&options),
    }
}

/// Runs on a thread of its own, for the sake of the evaluator's stack.
fn on_large_stack(options: &Options) -> ExitCode {
    let thread = std::thread::Builder::new().name("program".into()).stack_size(STACK_BYTES);
    let ended = std::thread::scope(|scope| {
        thread.spawn_scoped(scope, || run(options)).map(std::thread::ScopedJoinHandle::join)
    });
    match ended {
        Ok(Ok(Ok(Ended::Done))) => ExitCode::SUCCESS,
        Ok(Ok(Ok(Ended::Guarded))) => ExitCode::from(GUARDED),
        Ok(Ok(Err(failure))) => {
            failure.show();
            ExitCode::from(1)
        }
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            terminal::error(
                &format!("cannot start a thread for the program: {error}"),
                Some("free some memory"),
            );
            ExitCode::from(1)
        }
    }
}

fn run(options: &Options) -> Result<Ended, Failure> {
    let program = Program::locate(options.path.as_deref())?;
    let text = program.text()?;
    let mut interp = program.interp(options)?;
    let observers = options.observe(&mut interp)?;
    let result = interp.run_program(&program.name(), &text);
    let guarded = result.as_ref().is_err_and(|errors| errors.iter().any(|e| e.kind.is_guard()));
    let shown = match &result {
        Ok(_) => Ok(Ended::Done),
        Err(errors) => {
            match interp.breach() {
                Some(breach) => terminal::note(&breach.text(&interp.sources, terminal::colored())),
                None => errors.iter().for_each(|error| terminal::show(&interp.sources, error)),
            }
            if guarded { Ok(Ended::Guarded) } else { Err(Failure::shown()) }
        }
    };
    if let Some(times) = observers {
        times.reports().iter().for_each(|report| terminal::note(&sheaf_syntax::visible::visible(report)));
        times.finish().map_err(|error| {
            Failure::new(format!("the events cannot be written: {error}"), Some("check the disk"))
        })?;
    }
    shown
}
