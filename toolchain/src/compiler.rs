//! The parent side of a compile worker: requests, and their errors.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::limits::CompileLimits;
use crate::locate::Toolchain;
use crate::message::{Answer, Diagnostic, Request, Severity, Verification};
use crate::process::{Worker, out_of_turn};

/// Maximum number of lines of diagnostics in a message.
const SHOWN_LINES: usize = 20;

/// Maximum length of a line, in characters.
const SHOWN_WIDTH: usize = 500;

/// Start of a dump of the program within a diagnostic.
const DUMP: &str = ": see current operation:";

/// Version reported by a loaded compiler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompilerVersion {
    /// Major and minor version of the C interface.
    pub api: (u16, u16),
    /// The tag of the build.
    pub revision: String,
}

/// Cause of a failed compilation. The message gives the location and the cause; [`remedy`](Self::remedy) the fix.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompileError {
    /// The worker process could not be started.
    #[error("cannot start the compile worker {command}: {source}")]
    Start {
        /// The program to start.
        command: String,
        /// The operating system's error.
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
        /// The reported version.
        found: String,
        /// The pinned version.
        expected: String,
    },
    /// The compiler rejects the program.
    #[error("the compiler rejected the program:\n{}{}", shown(diagnostics), last_words(said))]
    Rejected {
        /// All diagnostics, in order.
        diagnostics: Vec<Diagnostic>,
        /// The end of the other output of the compiler and its linker.
        said: String,
    },
    /// The compiler rejects the flags, or failed otherwise without a diagnostic.
    #[error("the compiler failed: {cause}{}", last_words(said))]
    Failed {
        /// The compiler's error.
        cause: String,
        /// The end of its output.
        said: String,
    },
    /// The worker process ended during a compilation. The next compilation starts a new one.
    #[error("the compiler crashed: {}{}{}", ending(*signal, *code), last_words(said), kept(reproducer.as_deref()))]
    Crashed {
        /// The signal that ended the process, if one did.
        signal: Option<i32>,
        /// The exit code otherwise.
        code: Option<i32>,
        /// The end of its output.
        said: String,
        /// The folder with a copy of the program and its flags.
        reproducer: Option<PathBuf>,
    },
    /// Interrupted by the user. The worker was killed; the next compilation starts a new one.
    #[error("interrupted")]
    Interrupted,
    /// The compilation exceeded its time limit. The worker was killed; the next compilation starts a new one.
    #[error("the compiler was stopped after {} seconds{}{}", limit.as_secs_f64(), last_words(said), kept(reproducer.as_deref()))]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The end of its output.
        said: String,
        /// The folder with a copy of the program and its flags.
        reproducer: Option<PathBuf>,
    },
    /// The worker sent a malformed message.
    #[error("the compile worker does not speak Sheaf's protocol: {cause}{}", last_words(said))]
    Protocol {
        /// The defect.
        cause: String,
        /// The end of its output.
        said: String,
    },
}

impl CompileError {
    /// The fix to suggest to the user.
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

    /// True if verification after each pass may give a better error: one of the program or the compiler, and of no limit.
    fn may_be_explained(&self) -> bool {
        match self {
            Self::Rejected { .. } | Self::Failed { .. } => true,
            Self::Crashed { signal, said, .. } => !lacks_memory(*signal, said),
            _ => false,
        }
    }
}

/// Remedy for lack of memory.
const MORE_MEMORY: &str =
    "free some memory, or raise SHEAF_COMPILE_MIB if it is set, and run again; if that does not help, ";

/// True if a compiler probably ran out of memory: the system killed it, or its output mentions memory.
fn lacks_memory(signal: Option<i32>, said: &str) -> bool {
    let said = said.to_lowercase();
    signal == Some(9)
        || ["out of memory", "bad_alloc", "cannot allocate"].iter().any(|word| said.contains(word))
}

/// A compiler in a worker process, which is started on first use and again after a crash. The worker ends when this
/// value is dropped or this process is killed.
pub struct Compiler {
    command: Box<dyn Fn() -> Command + Send + Sync>,
    toolchain: Toolchain,
    limits: CompileLimits,
    verification: Verification,
    stop: Stop,
    worker: Option<Worker>,
}

/// True if the result of the current compilation is no longer wanted.
pub(crate) type Stop = Box<dyn Fn() -> bool + Send + Sync>;

impl Compiler {
    /// A compiler that uses `toolchain`, with the default limits or those of the environment. `worker_command` gives
    /// the command of a process that calls [`run_worker`](crate::run_worker) with its last argument, the library, which
    /// is added here.
    pub fn new(worker_command: impl Fn() -> Command + Send + Sync + 'static, toolchain: Toolchain) -> Self {
        let limits = CompileLimits::for_toolchain(&toolchain.folder);
        Self {
            command: Box::new(worker_command),
            toolchain,
            limits,
            verification: Verification::CodeGeneration,
            stop: Box::new(|| false),
            worker: None,
        }
    }

    /// The same compiler with these limits. Kills a running worker.
    #[must_use]
    pub fn with_limits(self, limits: CompileLimits) -> Self {
        Self { limits, worker: None, ..self }
    }

    /// The same compiler with another time limit per program. Keeps a running worker.
    #[must_use]
    pub fn with_time(mut self, time: Option<Duration>) -> Self {
        self.limits.time = time;
        self
    }

    /// The same compiler, which verifies its intermediate representation after each pass.
    #[must_use]
    pub fn verifying(self) -> Self {
        Self { verification: Verification::AllPasses, ..self }
    }

    /// The same compiler, interrupted as soon as `stop` returns true.
    #[must_use]
    pub fn stopped_by(self, stop: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        Self { stop: Box::new(stop), ..self }
    }

    /// The limits of a compilation.
    pub fn limits(&self) -> &CompileLimits {
        &self.limits
    }

    /// Starts the worker unless it is running, and returns the compiler's version. An early call hides the time to load
    /// the compiler.
    pub fn start(&mut self) -> Result<&CompilerVersion, CompileError> {
        self.running().map(Worker::version)
    }

    /// The process id of the worker, if one is running.
    pub fn worker_id(&self) -> Option<u32> {
        self.worker.as_ref().map(Worker::id)
    }

    /// Compiles a module in MLIR's text form, with these flags, to the bytes of a VMFB.
    pub fn compile(&mut self, mlir: &str, flags: &[String]) -> Result<Vec<u8>, CompileError> {
        self.first_of(mlir, &[flags.to_vec()]).map(|(bytes, _)| bytes)
    }

    fn compile_with(
        &mut self,
        verification: Verification,
        mlir: &str,
        flags: &[String],
    ) -> Result<Vec<u8>, CompileError> {
        let request = Request { flags: flags.to_vec(), program: mlir.to_owned(), verification };
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

    /// Compiles a module with the first of several command lines that succeeds: the bytes, and the position of that
    /// command line. Each gets the lesser of the time limits, `limit` and that of all programs. A program with a `limit` is one that
    /// the compiler may reject, such as a kernel that is written out, and is verified after each pass. A timeout ends the attempts,
    /// since it depends on the machine, not on the program. Where none succeeds, the first is repeated with verification after each
    /// pass, whose error names the pass that goes wrong.
    pub fn compile_first(
        &mut self,
        mlir: &str,
        attempts: &[Vec<String>],
        limit: Option<Duration>,
    ) -> Result<(Vec<u8>, usize), CompileError> {
        let usual = (self.limits.time, self.verification);
        self.limits.time = [usual.0, limit].into_iter().flatten().min();
        if limit.is_some() {
            self.verification = Verification::AllPasses;
        }
        let result = self.first_of(mlir, attempts);
        (self.limits.time, self.verification) = usual;
        result
    }

    fn first_of(&mut self, mlir: &str, attempts: &[Vec<String>]) -> Result<(Vec<u8>, usize), CompileError> {
        let mut first = None;
        for (position, flags) in attempts.iter().enumerate() {
            match self.compile_with(self.verification, mlir, flags) {
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
        let error = first.unwrap_or_else(nothing);
        match attempts.first() {
            Some(flags) if self.verification != Verification::AllPasses && error.may_be_explained() => {
                Ok((self.compile_with(Verification::AllPasses, mlir, flags)?, 0))
            }
            _ => Err(error),
        }
    }

    /// The worker, started if needed.
    fn running(&mut self) -> Result<&mut Worker, CompileError> {
        // A worker may have been killed while idle, which is not the program's fault.
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

    /// Drops the worker after broken communication; returns the cause.
    fn broken(&mut self, error: &io::Error) -> CompileError {
        match self.worker.take() {
            Some(worker) => worker.broken(error, self.limits.time),
            None => CompileError::Protocol { cause: error.to_string(), said: String::new() },
        }
    }
}

/// Description of how a process ended.
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

/// The errors, or all diagnostics if there are none, cut to what a terminal can show: without the dumps of the
/// program's state, which are for the compiler's own developers.
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
