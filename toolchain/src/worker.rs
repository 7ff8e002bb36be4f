//! The child side of a compile worker: a process that loads the compiler and compiles the received programs.

use std::fs::File;
use std::io::{self, BufReader, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread;

use crate::capi::Library;
use crate::message::{Answer, Request};
use crate::output;

/// Stack size for the compiler's recursion over deeply nested programs, on every system.
const STACK_BYTES: usize = 256 << 20;

/// The environment variable that limits the worker's address space, in bytes. Its children, such as the linker, inherit
/// the limit itself.
pub(crate) const MEMORY_LIMIT: &str = "SHEAF_COMPILE_WORKER_BYTES";

/// Reports to the parent why there will be no answer. Ignores errors, since the parent may have ended.
fn say(reason: std::fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{reason}");
}

/// Runs a compile worker: loads the compiler at `library`, then answers requests on standard input with programs on
/// standard output until the input ends; then the process ends too, even during a compilation. The compiler's own
/// output goes to standard error.
///
/// The process must not use standard input or output for anything else, and can call this once.
pub fn run_worker(library: &Path) -> ExitCode {
    if let Err(error) = limit_memory() {
        say(format_args!("the compile worker cannot limit its memory: {error}"));
        return ExitCode::FAILURE;
    }
    let (requests, answers) = match claim_streams() {
        Ok(streams) => streams,
        Err(error) => {
            say(format_args!("the compile worker cannot use its standard streams: {error}"));
            return ExitCode::FAILURE;
        }
    };
    // Pending work: the loading, which comes first, and requests.
    let open = AtomicUsize::new(1);
    let (sender, receiver) = mpsc::channel();
    thread::scope(|scope| {
        let work = &open;
        let compile = move || compile_all(library, &receiver, answers, work);
        let compiler = match thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, compile) {
            Ok(compiler) => compiler,
            Err(error) => {
                say(format_args!("the compile worker cannot start a thread: {error}"));
                return ExitCode::FAILURE;
            }
        };
        let mut requests = BufReader::new(requests);
        while let Ok(Some(request)) = Request::read(&mut requests) {
            open.fetch_add(1, Ordering::SeqCst);
            if sender.send(request).is_err() {
                break;
            }
        }
        // The parent has ended.
        if open.load(Ordering::SeqCst) > 0 && !compiler.is_finished() {
            end_now();
        }
        drop(sender);
        match compiler.join() {
            Ok(Ok(())) => ExitCode::SUCCESS,
            _ => ExitCode::FAILURE,
        }
    })
}

/// Loads the compiler and answers one request after the other.
fn compile_all(
    library: &Path,
    requests: &Receiver<Request>,
    mut answers: impl Write,
    open: &AtomicUsize,
) -> io::Result<()> {
    let library = Library::load(library);
    output::mark();
    let library = match library {
        Ok(library) => library,
        Err(cause) => return Answer::Unusable { cause }.write(&mut answers),
    };
    let ready = Answer::Ready { api: library.api_version(), revision: library.revision() };
    open.fetch_sub(1, Ordering::SeqCst);
    ready.write(&mut answers)?;
    for request in requests {
        let answer = library.compile(&request);
        output::mark();
        open.fetch_sub(1, Ordering::SeqCst);
        answer.write(&mut answers)?;
    }
    Ok(())
}

/// Applies the limit that the parent set. Reserved, untouched memory counts as well.
#[cfg(unix)]
fn limit_memory() -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = std::env::var(MEMORY_LIMIT).ok().and_then(|text| text.parse::<u64>().ok());
    let Some(limit) = limit else { return Ok(()) };
    let maximum = getrlimit(Resource::As).maximum;
    // The system's maximum cannot be raised.
    let limit = maximum.map_or(limit, |maximum| limit.min(maximum));
    setrlimit(Resource::As, Rlimit { current: Some(limit), maximum })?;
    Ok(())
}

/// Not supported.
#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "elsewhere it fails")]
fn limit_memory() -> io::Result<()> {
    Ok(())
}

/// Takes standard input and output for messages, and replaces them with the null device and standard error, so that
/// neither the compiler nor its child processes can read or write a message.
#[cfg(unix)]
fn claim_streams() -> io::Result<(File, File)> {
    use std::os::fd::AsFd;
    let requests = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(io::stderr())?;
    Ok((requests, answers))
}

/// Takes standard input and output for messages. A print to the output ends the communication with an error.
#[cfg(windows)]
fn claim_streams() -> io::Result<(File, File)> {
    use std::os::windows::io::AsHandle;
    let requests = File::from(io::stdin().as_handle().try_clone_to_owned()?);
    let answers = File::from(io::stdout().as_handle().try_clone_to_owned()?);
    Ok((requests, answers))
}

/// Ends the process without exit handlers, which must not run concurrently with a compilation.
fn end_now() {
    #[cfg(unix)]
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    std::process::abort();
}
