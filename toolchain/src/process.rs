//! The parent's side of a running compile worker, with bounded waits for all that the worker does or fails to do.

use std::io::{self, BufReader, BufWriter, ErrorKind};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use crate::compiler::{CompileError, CompilerVersion, Stop};
use crate::limits::CompileLimits;
use crate::locate::Toolchain;
use crate::message::{Answer, Request};
use crate::output::Output;
use crate::scratch::{self, Scratch};
use crate::worker::MEMORY_LIMIT;

/// The environment variable with the linker's path.
const LINKER_VARIABLE: &str = "IREE_LLVM_EMBEDDED_LINKER_PATH";

/// Polling interval of the `stop` callback.
const LOOK: Duration = Duration::from_millis(50);

/// The signal of Ctrl-C.
const INTERRUPTED: i32 = 2;

/// A running worker process.
pub(crate) struct Worker {
    child: Child,
    /// Closes the worker's input when dropped.
    requests: Sender<Request>,
    answers: Receiver<io::Result<Answer>>,
    output: Output,
    version: CompilerVersion,
    /// Folder of the compiler's object files for the linker.
    _scratch: Option<Scratch>,
}

impl Worker {
    /// Starts a process and waits until it has loaded the compiler.
    pub(crate) fn start(
        mut command: Command,
        toolchain: &Toolchain,
        limits: &CompileLimits,
        stop: &Stop,
    ) -> Result<Self, CompileError> {
        let name = command.get_program().display().to_string();
        let failed = |source| CompileError::Start { command: name.clone(), source };
        let scratch = scratch::folder();
        if let Some(scratch) = &scratch {
            for variable in ["TMPDIR", "TMP", "TEMP"] {
                command.env(variable, scratch.path());
            }
        }
        command.env(LINKER_VARIABLE, scratch::quoted(&toolchain.linker)).arg(&toolchain.library);
        match limits.memory {
            Some(bytes) => command.env(MEMORY_LIMIT, bytes.to_string()),
            None => command.env_remove(MEMORY_LIMIT),
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(failed)?;
        let streams = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(input), Some(answers), Some(printed)) = streams else {
            return Err(failed(io::Error::other("its standard streams are missing")));
        };
        let output = Output::collect(printed).map_err(failed)?;
        let (requests, sent) = mpsc::channel::<Request>();
        let (receive, answers_read) = mpsc::channel();
        // Pipes have no timeouts, but channels have. Both threads end with the process.
        let write = move || {
            let mut input = BufWriter::new(input);
            // A worker that has ended is detected on its other stream.
            while let Ok(request) = sent.recv() {
                if request.write(&mut input).is_err() {
                    break;
                }
            }
        };
        let read = move || {
            let mut answers = BufReader::new(answers);
            loop {
                let answer = Answer::read(&mut answers)
                    .and_then(|answer| answer.ok_or_else(|| ErrorKind::UnexpectedEof.into()));
                let last = answer.is_err();
                if receive.send(answer).is_err() || last {
                    break;
                }
            }
        };
        thread::Builder::new().name("compiler input".to_owned()).spawn(write).map_err(failed)?;
        thread::Builder::new().name("compiler answers".to_owned()).spawn(read).map_err(failed)?;
        let version = CompilerVersion { api: (0, 0), revision: String::new() };
        let mut worker = Self { child, requests, answers: answers_read, output, version, _scratch: scratch };
        match worker.answer(limits.time, stop) {
            Ok((Answer::Ready { api, revision }, _)) => {
                worker.version = CompilerVersion { api: ((api >> 16) as u16, api as u16), revision };
            }
            Ok((Answer::Unusable { cause }, _)) => {
                return Err(CompileError::Load { library: toolchain.library.clone(), cause });
            }
            Ok(_) => return Err(worker.broken(&out_of_turn(), limits.time)),
            Err(error) => return Err(worker.broken(&error, limits.time)),
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

    /// The version of the loaded compiler.
    pub(crate) fn version(&mut self) -> &CompilerVersion {
        &self.version
    }

    /// The process id.
    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// True if the process has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// The answer to a request, and the output meanwhile. A `TimedOut` error after the limit, an `Interrupted` one once
    /// `stop` returns true.
    pub(crate) fn ask(
        &mut self,
        request: Request,
        limit: Option<Duration>,
        stop: &Stop,
    ) -> io::Result<(Answer, String)> {
        // If the writer is gone, so is the process, and then there is no answer either.
        let _ = self.requests.send(request);
        self.answer(limit, stop)
    }

    fn answer(&mut self, limit: Option<Duration>, stop: &Stop) -> io::Result<(Answer, String)> {
        let start = Instant::now();
        loop {
            let left = limit.map_or(LOOK, |limit| limit.saturating_sub(start.elapsed()).min(LOOK));
            match self.answers.recv_timeout(left) {
                Ok(answer) => return Ok((answer?, self.output.take())),
                Err(RecvTimeoutError::Disconnected) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(RecvTimeoutError::Timeout) if stop() => return Err(ErrorKind::Interrupted.into()),
                Err(RecvTimeoutError::Timeout) => {}
            }
            if limit.is_some_and(|limit| start.elapsed() >= limit) {
                return Err(ErrorKind::TimedOut.into());
            }
        }
    }

    /// The cause of the broken communication with this worker.
    pub(crate) fn broken(mut self, error: &io::Error, limit: Option<Duration>) -> CompileError {
        let status = self.end();
        let said = self.output.take_rest();
        match (error.kind(), limit) {
            (ErrorKind::Interrupted, _) => return CompileError::Interrupted,
            (ErrorKind::InvalidData, _) => return CompileError::Protocol { cause: error.to_string(), said },
            (ErrorKind::TimedOut, Some(limit)) => {
                return CompileError::TimedOut { limit, said, reproducer: None };
            }
            _ => {}
        }
        let signal = status.as_ref().ok().and_then(|status| signal(*status));
        // A terminal sends Ctrl-C to the worker, too.
        if signal == Some(INTERRUPTED) {
            return CompileError::Interrupted;
        }
        let code = status.ok().and_then(|status| status.code());
        CompileError::Crashed { signal, code, said, reproducer: None }
    }

    /// Kills the process unless it has ended. If it was about to end, its own exit status is kept.
    fn end(&mut self) -> io::Result<ExitStatus> {
        let _ = self.child.kill();
        self.child.wait()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has nothing to save, so it is killed.
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

/// A well-formed answer of the wrong kind.
pub(crate) fn out_of_turn() -> io::Error {
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
}
