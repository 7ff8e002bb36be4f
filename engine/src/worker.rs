//! Compile workers: processes in which the compiler's library runs.

use std::process::Command;
use std::sync::Arc;

use sheaf_cache::remote::SECRETS;
use sheaf_lang::host::HostError;

/// Makes the command of a compile worker; the path of the compiler's library is added to it. The process must call
/// [`sheaf_toolchain::run_worker`] with that path.
pub type WorkerCommand = Arc<dyn Fn() -> Command + Send + Sync>;

/// First argument of a compile worker that is the same program as its parent; the second is the compiler's library.
pub const COMPILE_WORKER: &str = "compile-worker";

/// Set in the environment of such a worker. A program that uses the engine but does not answer [`COMPILE_WORKER`] would
/// otherwise start itself without end.
const WORKER_MARK: &str = "SHEAF_COMPILE_WORKER";

/// Workers that are this program, called with [`COMPILE_WORKER`].
///
/// # Errors
///
/// This process is such a worker.
pub fn this_program() -> Result<WorkerCommand, HostError> {
    if std::env::var_os(WORKER_MARK).is_some() {
        let message =
            format!("this program was started as a compile worker, but does not answer {COMPILE_WORKER}");
        let help = "call `sheaf_engine::answer_compile_worker` first in `main`".to_owned();
        return Err(HostError { message, help: Some(help) });
    }
    let this = std::env::current_exe().unwrap_or_else(|_| "sheaf".into());
    Ok(Arc::new(move || {
        let mut command = Command::new(&this);
        command.arg(COMPILE_WORKER).env(WORKER_MARK, "1");
        // It reads untrusted programs, and has no use for secrets.
        for secret in SECRETS {
            command.env_remove(secret);
        }
        command
    }))
}

/// Runs the compile worker, and then ends the process, if this process was started as one; else returns at once. To be
/// called first in the `main` of a program that compiles through [`this_program`].
pub fn answer_compile_worker() {
    let mut arguments = std::env::args_os().skip(1);
    if std::env::var_os(WORKER_MARK).is_none() || arguments.next().is_none_or(|first| first != COMPILE_WORKER)
    {
        return;
    }
    let library = arguments.next().unwrap_or_default();
    let code = sheaf_toolchain::run_worker(library.as_ref());
    std::process::exit(i32::from(code != std::process::ExitCode::SUCCESS));
}
