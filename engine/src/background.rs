//! Compilation on another thread, while the run goes on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use sheaf_artifacts::Lookup;
use sheaf_cache::{Exclusive, Store};
use sheaf_lang::eval::Interrupt;
use sheaf_loader::Job;
use sheaf_toolchain::{Compiler, Toolchain};

use crate::compile::{CompileRun, compile_action};
use crate::worker::WorkerCommand;

/// A compilation under way. Dropped, it is cancelled, and the compiler's process ends.
pub struct Background {
    flags: Arc<Flags>,
    /// True once there is an outcome.
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<Outcome>>,
}

#[derive(Default)]
struct Flags {
    cancelled: AtomicBool,
    /// The compiler may have been started.
    compiling: AtomicBool,
}

/// Outcome of a compilation.
pub enum Outcome {
    /// The compiler's result. No other process compiles the same until the lock is dropped.
    Compiled { bytes: Vec<u8>, run: CompileRun, lock: Option<Exclusive> },
    /// Another process has compiled and stored it.
    Stored,
    /// The compiler fails, or was cancelled.
    Failed,
}

impl Background {
    /// Begins to compile a job, as soon as no other process compiles it. `None` if there can be no thread.
    pub fn begin(
        job: &Job,
        store: Store,
        toolchain: Toolchain,
        worker: WorkerCommand,
        interrupt: Interrupt,
    ) -> Option<Background> {
        let (flags, ended) = (Arc::<Flags>::default(), Arc::<AtomicBool>::default());
        let (action, limit) = (job.action.clone(), job.limit);
        let (seen, at_end) = (Arc::clone(&flags), Arc::clone(&ended));
        let work = move || {
            let lock = store.exclusive(&action.key(), |_| {});
            if matches!(store.get(&action.key()), Lookup::Hit { .. }) {
                return Outcome::Stored;
            }
            seen.compiling.store(true, Ordering::SeqCst);
            if seen.cancelled.load(Ordering::SeqCst) {
                return Outcome::Failed;
            }
            let stopped = move || seen.cancelled.load(Ordering::SeqCst) || interrupt.raised();
            let mut compiler = Compiler::new(move || worker(), toolchain).stopped_by(stopped);
            match compile_action(&mut compiler, &action, limit) {
                Ok((bytes, run)) => Outcome::Compiled { bytes, run, lock },
                Err(_) => Outcome::Failed,
            }
        };
        let thread = std::thread::Builder::new().name("compilation".into()).spawn(move || {
            let outcome = work();
            at_end.store(true, Ordering::Release);
            outcome
        });
        Some(Background { flags, ended, thread: Some(thread.ok()?) })
    }

    /// The flag that is raised at the end.
    pub fn ended(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.ended)
    }

    /// That flag, if it is not raised yet.
    pub fn pending(&self) -> Option<Arc<AtomicBool>> {
        (!self.ended.load(Ordering::Acquire)).then(|| self.ended())
    }

    /// Waits for the outcome.
    pub fn outcome(mut self) -> Outcome {
        let ended = self.thread.take().map(JoinHandle::join);
        ended.and_then(Result::ok).unwrap_or(Outcome::Failed)
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.flags.cancelled.store(true, Ordering::SeqCst);
        // A thread that still waits for another process starts no compiler any more.
        if self.flags.compiling.load(Ordering::SeqCst)
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}
