//! The parent side of a compile worker: what is asked of a compiler, and what can go wrong.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::limits::CompileLimits;
use crate::locate::Toolchain;
use crate::message::{Answer, Diagnostic, Request, Severity};
use crate::process::{Worker, out_of_turn};

/// How many lines of diagnostics a message shows.
const SHOWN_LINES: usize = 20;

/// How many characters of each.
const SHOWN_WIDTH: usize = 500;

/// What begins a dump of the program within a diagnostic.
const DUMP: &str = ": see current operation:";

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
    #[error("the compiler crashed: {}{}{}", ending(*signal, *code), last_words(said), kept(reproducer.as_deref()))]
    Crashed {
        /// The signal that ended the process, if one did.
        signal: Option<i32>,
        /// The exit code otherwise.
        code: Option<i32>,
        /// The end of what it printed.
        said: String,
        /// The folder in which the program and its flags were kept.
        reproducer: Option<PathBuf>,
    },
    /// The user told it to stop. Its worker was ended; the next compilation starts a new one.
    #[error("interrupted")]
    Interrupted,
    /// The program took longer than it may. Its worker was ended; the next compilation starts a new one.
    #[error("the compiler was stopped after {} seconds{}{}", limit.as_secs_f64(), last_words(said), kept(reproducer.as_deref()))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The end of what it printed.
        said: String,
        /// The folder in which the program and its flags were kept.
        reproducer: Option<PathBuf>,
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
            Self::Crashed { signal, said, reproducer, .. } => {
                let memory = if lacks_memory(*signal, said) { MORE_MEMORY } else { "" };
                let files = if reproducer.is_some() { " with the files in that folder" } else { "" };
                return format!("{memory}it is the compiler's own error: please report it{files}");
            }
            Self::Interrupted => "run it again to compile it",
            Self::TimedOut { .. } => {
                "set SHEAF_COMPILE_SECONDS to a longer time (0 for any), or make the function smaller"
            }
            Self::Protocol { .. } => "the worker must be the same Sheaf as this one: install Sheaf again",
        };
        remedy.to_owned()
    }
}

/// The remedy for want of memory.
const MORE_MEMORY: &str =
    "free some memory, or raise SHEAF_COMPILE_MIB if it is set, and run again; if that does not help, ";

/// True if a compiler ended for want of memory, as far as can be told: the system killed it, or it said so.
fn lacks_memory(signal: Option<i32>, said: &str) -> bool {
    let said = said.to_lowercase();
    signal == Some(9)
        || ["out of memory", "bad_alloc", "cannot allocate"].iter().any(|word| said.contains(word))
}

/// A compiler in a worker process, which is started when it is first needed and again after it has crashed. It ends
/// with this value, and if this process is killed.
pub struct Compiler {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    toolchain: Toolchain,
    limits: CompileLimits,
    stop: Stop,
    worker: Option<Worker>,
}

/// True if what is being compiled is not wanted any more.
pub(crate) type Stop = Box<dyn Fn() -> bool + Send + Sync>;

impl Compiler {
    /// A compiler that uses `toolchain`, with the usual limits or those that the environment sets. `worker_command` gives
    /// the command of a process that calls [`run_worker`](crate::run_worker) with its last argument, the library, which is
    /// added here.
    pub fn new(worker_command: impl Fn() -> Command + Send + Sync + 'static, toolchain: Toolchain) -> Self {
        let limits = CompileLimits::for_toolchain(&toolchain.folder);
        Self { command: Box::new(worker_command), toolchain, limits, stop: Box::new(|| false), worker: None }
    }

    /// The same with these limits. A worker that runs already is ended.
    #[must_use]
    pub fn with_limits(self, limits: CompileLimits) -> Self {
        Self { limits, worker: None, ..self }
    }

    /// The same with another time for one program. A worker that runs already goes on.
    #[must_use]
    pub fn with_time(mut self, time: Option<Duration>) -> Self {
        self.limits.time = time;
        self
    }

    /// The same, ended in the middle of a program as soon as `stop` holds.
    #[must_use]
    pub fn stopped_by(self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { stop: Box::new(stop), ..self }
    }

    /// What a compilation may take.
    pub fn limits(&self) -> &CompileLimits {
        &self.limits
    }

    /// Starts the worker unless it runs, and gives the compiler's version. Calling this early hides the time it takes
    /// to load the compiler.
    pub fn start(&mut self) -> Result<&CompilerVersion, CompileError> {
        self.running().map(Worker::version)
    }

    /// The process id of the worker, if one is running.
    pub fn worker_id(&self) -> Option<u32> {
        self.worker.as_ref().map(Worker::id)
    }

    /// Compiles a module in MLIR's text form, with these flags, to the bytes of a VMFB.
    pub fn compile(&mut self, mlir: &str, flags: &[String]) -> Result<Vec<u8>, CompileError> {
        let request = Request { flags: flags.to_vec(), program: mlir.to_owned() };
        let limit = self.limits.time;
        self.running()?;
        let Some(worker) = &mut self.worker else { return Err(self.broken(&out_of_turn())) };
        let mut error = match worker.ask(request, limit, &self.stop) {
            Ok((Answer::Compiled(program), _)) => return Ok(program),
            Ok((Answer::Rejected(diagnostics), said)) => {
                return Err(CompileError::Rejected { diagnostics, said });
            }
            Ok((Answer::Failed { cause }, said)) => return Err(CompileError::Failed { cause, said }),
            Ok((Answer::Ready { .. } | Answer::Unusable { .. }, _)) => self.broken(&out_of_turn()),
            Err(error) => self.broken(&error),
        };
        let reason = error.to_string();
        if let CompileError::Crashed { reproducer, .. } | CompileError::TimedOut { reproducer, .. } =
            &mut error
        {
            *reproducer = self.limits.keep(mlir, flags, &reason);
        }
        Err(error)
    }

    /// Compiles a module with the first of several command lines with which the compiler succeeds: the bytes, and the
    /// position of that command line. A compilation that runs out of time ends the attempts, since what a machine is too
    /// slow for says nothing of the program. The error is that of the first attempt.
    pub fn compile_first(
        &mut self,
        mlir: &str,
        attempts: &[Vec<String>],
    ) -> Result<(Vec<u8>, usize), CompileError> {
        let mut first = None;
        for (position, flags) in attempts.iter().enumerate() {
            match self.compile(mlir, flags) {
                Ok(bytes) => return Ok((bytes, position)),
                Err(
                    error @ (CompileError::Rejected { .. }
                    | CompileError::Failed { .. }
                    | CompileError::Crashed { .. }),
                ) => first = first.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        let nothing =
            || CompileError::Protocol { cause: "there was nothing to try".into(), said: String::new() };
        Err(first.unwrap_or_else(nothing))
    }

    /// The worker, started if need be.
    fn running(&mut self) -> Result<&mut Worker, CompileError> {
        // A worker may have been ended from outside while it had nothing to do; that is no program's fault.
        if self.worker.as_mut().is_some_and(Worker::has_ended) {
            self.worker = None;
        }
        match &mut self.worker {
            Some(worker) => Ok(worker),
            none => {
                let started = Worker::start((self.command)(), &self.toolchain, &self.limits, &self.stop)?;
                Ok(none.insert(started))
            }
        }
    }

    /// Gives up the worker after the conversation broke off, and says why.
    fn broken(&mut self, error: &io::Error) -> CompileError {
        match self.worker.take() {
            Some(worker) => worker.broken(error, self.limits.time),
            None => CompileError::Protocol { cause: error.to_string(), said: String::new() },
        }
    }
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

fn kept(reproducer: Option<&Path>) -> String {
    reproducer.map_or_else(String::new, |folder| {
        format!("; the program and its flags are in\n{}", folder.display())
    })
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
    fn whoever_is_short_of_memory_hears_of_the_limit_and_nobody_else() {
        let cases =
            [(9, "", true), (6, "LLVM ERROR: out of memory", true), (6, "assertion", false), (11, "", false)];
        for (signal, said, memory) in cases {
            for reproducer in [None, Some(PathBuf::from("/crashes/1"))] {
                let crashed =
                    CompileError::Crashed { signal: Some(signal), code: None, said: said.into(), reproducer };
                let remedy = crashed.remedy();
                assert_eq!(remedy.contains("raise SHEAF_COMPILE_MIB if it is set"), memory, "{crashed:?}");
                assert_eq!(remedy.contains("free some memory"), memory, "{crashed:?}");
                assert!(remedy.contains("please report it"), "{crashed:?}");
            }
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
