//! The parent side of a compile worker.

use std::fmt::Write as _;
use std::io::{self, BufReader, ErrorKind};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};

use tempfile::TempDir;

use crate::locate::Toolchain;
use crate::message::{Answer, Diagnostic, Request, Severity};
use crate::output::Output;
use crate::scratch;

/// How many lines of diagnostics a message shows.
const SHOWN_LINES: usize = 20;

/// How many characters of each.
const SHOWN_WIDTH: usize = 500;

/// What begins a dump of the program within a diagnostic.
const DUMP: &str = ": see current operation:";

/// The name of the linker's path in the compiler's environment.
const LINKER_VARIABLE: &str = "IREE_LLVM_EMBEDDED_LINKER_PATH";

/// What a loaded compiler says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerVersion {
    /// Major and minor version of the C interface.
    pub api: (u16, u16),
    /// The tag of the build.
    pub revision: String,
}

/// Why a program was not compiled. The message says where and why; [`remedy`](Self::remedy) what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The worker process could not be started.
    #[error("cannot start the compile worker {command}: {source}")]
    Start {
        /// The program that was to be started.
        command: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The compiler library cannot be loaded.
    #[error("the compiler {} cannot be loaded: {cause}", library.display())]
    Load {
        /// The shared library.
        library: PathBuf,
        /// The loader's reason.
        cause: String,
    },
    /// The library is another compiler than the pinned one.
    #[error("the compiler {} is IREE {found}, but Sheaf needs {expected}", library.display())]
    Version {
        /// The shared library.
        library: PathBuf,
        /// What it says of itself.
        found: String,
        /// The pinned version.
        expected: String,
    },
    /// The compiler refuses the program.
    #[error("the compiler rejected the program:\n{}{}", shown(diagnostics), last_words(said))]
    Rejected {
        /// Everything the compiler said, in its order.
        diagnostics: Vec<Diagnostic>,
        /// The end of what it and its linker printed beside that.
        said: String,
    },
    /// The compiler does not take the flags, or failed in another way without touching the program.
    #[error("the compiler failed: {cause}{}", last_words(said))]
    Failed {
        /// The compiler's reason.
        cause: String,
        /// The end of what it printed.
        said: String,
    },
    /// The worker process ended in the middle of its work. The next compilation starts a new one.
    #[error("the compiler crashed: {}{}", ending(*signal, *code), last_words(said))]
    Crashed {
        /// The signal that ended the process, if one did.
        signal: Option<i32>,
        /// The exit code otherwise.
        code: Option<i32>,
        /// The end of what it printed.
        said: String,
    },
    /// The worker said something that is no message.
    #[error("the compile worker does not speak Sheaf's protocol: {cause}{}", last_words(said))]
    Protocol {
        /// What is wrong with it.
        cause: String,
        /// The end of what it printed.
        said: String,
    },
}

impl CompileError {
    /// What to do about it.
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::Start { .. } => "check that the program is there and that memory is free",
            Self::Load { library, .. } | Self::Version { library, .. } => {
                let folder = library.parent().unwrap_or(library).display();
                return format!("remove the folder {folder}, and the compiler is installed anew");
            }
            Self::Rejected { .. } | Self::Failed { .. } => {
                "this is an error in Sheaf or in the compiler: please report it with the program"
            }
            Self::Crashed { .. } => {
                "free some memory and run again; if that does not help, it is the compiler's own error: please report it"
            }
            Self::Protocol { .. } => "the worker must be the same Sheaf as this one: install Sheaf again",
        };
        remedy.to_owned()
    }
}

/// A compiler in a worker process, which is started when it is first needed and again after it has crashed. It ends
/// with this value, and if this process is killed.
pub struct Compiler {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    toolchain: Toolchain,
    worker: Option<Worker>,
}

impl Compiler {
    /// A compiler that uses `toolchain`. `worker_command` gives the command of a process that calls
    /// [`run_worker`](crate::run_worker) with its last argument, the library, which is added here.
    pub fn new(worker_command: impl Fn() -> Command + Send + Sync + 'static, toolchain: Toolchain) -> Self {
        Self { command: Box::new(worker_command), toolchain, worker: None }
    }

    /// Starts the worker unless it runs, and gives the compiler's version. Calling this early hides the time it takes
    /// to load the compiler.
    pub fn start(&mut self) -> Result<&CompilerVersion, CompileError> {
        self.running().map(|worker| &worker.version)
    }

    /// The process id of the worker, if one is running.
    pub fn worker_id(&self) -> Option<u32> {
        self.worker.as_ref().map(|worker| worker.child.id())
    }

    /// Compiles a module in MLIR's text form, with these flags, to the bytes of a VMFB.
    pub fn compile(&mut self, mlir: &str, flags: &[String]) -> Result<Vec<u8>, CompileError> {
        let request = Request { flags: flags.to_vec(), program: mlir.to_owned() };
        let worker = self.running()?;
        match worker.ask(&request) {
            Ok((Answer::Compiled(program), _)) => Ok(program),
            Ok((Answer::Rejected(diagnostics), said)) => Err(CompileError::Rejected { diagnostics, said }),
            Ok((Answer::Failed { cause }, said)) => Err(CompileError::Failed { cause, said }),
            Ok((Answer::Ready { .. } | Answer::Unusable { .. }, _)) => Err(self.broken(&out_of_turn())),
            Err(error) => Err(self.broken(&error)),
        }
    }

    /// The worker, started if need be.
    fn running(&mut self) -> Result<&mut Worker, CompileError> {
        // A worker may have been ended from outside while it had nothing to do; that is no program's fault.
        let ended = |worker: &mut Worker| !matches!(worker.child.try_wait(), Ok(None));
        if self.worker.as_mut().is_some_and(ended) {
            self.worker = None;
        }
        match &mut self.worker {
            Some(worker) => Ok(worker),
            none => Ok(none.insert(Worker::start((self.command)(), &self.toolchain)?)),
        }
    }

    /// Gives up the worker after the conversation broke off, and says why.
    fn broken(&mut self, error: &io::Error) -> CompileError {
        match self.worker.take() {
            Some(worker) => worker.broken(error),
            None => CompileError::Protocol { cause: error.to_string(), said: String::new() },
        }
    }
}

/// A running worker process.
struct Worker {
    child: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    output: Output,
    version: CompilerVersion,
    /// Where the compiler puts object files on their way to the linker.
    _scratch: Option<TempDir>,
}

impl Worker {
    /// Starts a process and waits until it has loaded the compiler.
    fn start(mut command: Command, toolchain: &Toolchain) -> Result<Self, CompileError> {
        let name = command.get_program().display().to_string();
        let failed = |source| CompileError::Start { command: name.clone(), source };
        let scratch = scratch::folder();
        if let Some(scratch) = &scratch {
            for variable in ["TMPDIR", "TMP", "TEMP"] {
                command.env(variable, scratch.path());
            }
        }
        command.env(LINKER_VARIABLE, scratch::quoted(&toolchain.linker)).arg(&toolchain.library);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(requests), Some(answers), Some(printed)) = streams else {
            return Err(failed(io::Error::other("its standard streams are missing")));
        };
        let output = Output::collect(printed).map_err(failed)?;
        let answers = BufReader::new(answers);
        let version = CompilerVersion { api: (0, 0), revision: String::new() };
        let mut worker = Self { child, requests, answers, output, version, _scratch: scratch };
        match worker.answer() {
            Ok((Answer::Ready { api, revision }, _)) => {
                worker.version = CompilerVersion { api: ((api >> 16) as u16, api as u16), revision };
            }
            Ok((Answer::Unusable { cause }, _)) => {
                return Err(CompileError::Load { library: toolchain.library.clone(), cause });
            }
            Ok(_) => return Err(worker.broken(&out_of_turn())),
            Err(error) => return Err(worker.broken(&error)),
        }
        if !is_release(&worker.version.revision, &toolchain.version) {
            return Err(CompileError::Version {
                library: toolchain.library.clone(),
                found: worker.version.revision.clone(),
                expected: toolchain.version.clone(),
            });
        }
        Ok(worker)
    }

    /// The answer to a request, and what was printed on the way.
    fn ask(&mut self, request: &Request) -> io::Result<(Answer, String)> {
        request.write(&mut self.requests)?;
        self.answer()
    }

    fn answer(&mut self) -> io::Result<(Answer, String)> {
        let answer = Answer::read(&mut self.answers)?.ok_or(ErrorKind::UnexpectedEof)?;
        Ok((answer, self.output.take()))
    }

    /// Says why the conversation with this worker broke off.
    fn broken(mut self, error: &io::Error) -> CompileError {
        let status = self.end();
        let said = self.output.take_rest();
        if error.kind() == ErrorKind::InvalidData {
            return CompileError::Protocol { cause: error.to_string(), said };
        }
        let signal = status.as_ref().ok().and_then(|status| signal(*status));
        let code = status.ok().and_then(|status| status.code());
        CompileError::Crashed { signal, code, said }
    }

    /// Makes sure that the process has ended. One that was ending by itself keeps its own reason.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has nothing to save, and nobody waits for it.
        let _ = self.end();
    }
}

/// Release builds carry their version in the tag, as `iree-3.13.0`, `3.13.0`, or with a suffix such as `rc1` or a commit.
fn is_release(revision: &str, version: &str) -> bool {
    let belongs = |next: char| next.is_ascii_digit() || next == '.';
    revision
        .split_once(version)
        .is_some_and(|(before, after)| !before.ends_with(belongs) && !after.starts_with(belongs))
}

/// An answer that is of the right form but not what was asked for.
fn out_of_turn() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "an answer without a question")
}

#[cfg(unix)]
fn signal(status: ExitStatus) -> Option<i32> {
    std::os::unix::process::ExitStatusExt::signal(&status)
}

#[cfg(not(unix))]
fn signal(_: ExitStatus) -> Option<i32> {
    None
}

/// How a process ended, for people.
fn ending(signal: Option<i32>, code: Option<i32>) -> String {
    match (signal, code) {
        (Some(4), _) => "signal 4, illegal instruction".to_owned(),
        (Some(6), _) => "signal 6, aborted".to_owned(),
        (Some(8), _) => "signal 8, arithmetic error".to_owned(),
        (Some(9), _) => "signal 9, killed, perhaps for want of memory".to_owned(),
        (Some(11), _) => "signal 11, invalid memory access".to_owned(),
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit code {code}"),
        (None, None) => "it ended for an unknown reason".to_owned(),
    }
}

fn last_words(said: &str) -> String {
    if said.is_empty() { String::new() } else { format!("; it last said:\n{said}") }
}

/// The errors, or if there are none everything, cut to what a terminal can show: without the dumps of the program's
/// state, which are for the compiler's own developers.
fn shown(diagnostics: &[Diagnostic]) -> String {
    let errors: Vec<_> = diagnostics.iter().filter(|said| said.severity == Severity::Error).collect();
    let chosen = if errors.is_empty() { diagnostics.iter().collect() } else { errors };
    let text: Vec<_> = chosen.into_iter().map(ToString::to_string).collect();
    let lines: Vec<_> = text
        .iter()
        .flat_map(|said| said.lines().take_while(|line| !line.contains(DUMP)))
        .filter(|line| !line.trim().is_empty())
        .map(|line| line.chars().take(SHOWN_WIDTH).collect::<String>())
        .collect();
    let mut shown = lines[..lines.len().min(SHOWN_LINES)].join("\n");
    if lines.len() > SHOWN_LINES {
        let _ = write!(shown, "\n... {} lines more", lines.len() - SHOWN_LINES);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_known_by_its_tag() {
        for tag in ["3.13.0", "iree-3.13.0", "3.13.0rc20261016 @ 89ece87", "v3.13.0-1"] {
            assert!(is_release(tag, "3.13.0"), "{tag}");
        }
        for tag in ["", "3.13.1", "3.13.01", "3.13.0.1", "13.13.0", "3.1.0"] {
            assert!(!is_release(tag, "3.13.0"), "{tag}");
        }
    }

    #[test]
    fn a_long_diagnostic_is_cut() {
        let said = |severity, message: &str| Diagnostic { severity, message: message.to_owned() };
        let text = shown(&[
            said(Severity::Warning, "not shown beside errors"),
            said(Severity::Error, "m:1:2: first\n\nm:1:2: see current operation:\n\"x\"() : () -> ()"),
            said(Severity::Error, &"line\n".repeat(25)),
            said(Severity::Error, &"w".repeat(5000)),
        ]);
        assert_eq!(text.lines().count(), SHOWN_LINES + 1);
        assert!(text.starts_with("error: m:1:2: first\nerror: line\nline\n"), "{text}");
        assert!(text.ends_with("... 7 lines more"), "{text}");
        assert_eq!(shown(&[said(Severity::Warning, "alone")]), "warning: alone");
    }
}
