//! Several compile workers at once.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use sheaf_artifacts::{ActionKey, Lookup};
use sheaf_cache::{Exclusive, Store, Wait};
use sheaf_toolchain::{CompileError, Compiler, Toolchain};

use sheaf_engine::{CompileRun, WorkerCommand};

/// One compilation.
pub struct Request {
    /// The number that the answer bears.
    pub id: usize,
    /// The action.
    pub key: ActionKey,
    /// The program's text.
    pub program: String,
    /// The command lines of the compiler, in the order in which they are tried.
    pub attempts: Vec<Vec<String>>,
    /// A time limit for the compiler, besides the one for all programs.
    pub limit: Option<Duration>,
}

/// Progress of a request.
pub enum Event {
    /// A worker has begun with it.
    Begun(usize),
    /// It is done: the VMFB, and its compilation; `None` if another process compiled it and kept it. No
    /// other process compiles it before the last part is dropped.
    Done(usize, Result<(Vec<u8>, Option<CompileRun>), CompileError>, Option<Exclusive>),
}

/// Compiles all `requests` with at most `workers` processes at a time. `on_event` gets the events, in their
/// order; another request that it gives, such as a second try, is compiled too. An error of it ends the work.
///
/// Programs that another process puts into `store` meanwhile are taken from there.
pub fn compile<E>(
    worker: &WorkerCommand,
    toolchain: &Toolchain,
    store: Option<&Store>,
    workers: usize,
    requests: Vec<Request>,
    mut on_event: impl FnMut(Event) -> Result<Option<Request>, E>,
) -> Result<(), E> {
    let mut open = requests.len();
    let workers = workers.min(open);
    let (sender, receiver) = mpsc::channel::<Request>();
    let (tell, events) = mpsc::channel::<Event>();
    let queue = Mutex::new(receiver);
    for request in requests {
        // The other end is in this function.
        let _ = sender.send(request);
    }
    thread::scope(|scope| {
        for _ in 0..workers {
            let (queue, tell) = (&queue, tell.clone());
            scope.spawn(move || {
                let worker = Arc::clone(worker);
                let mut compiler = Compiler::new(move || worker(), toolchain.clone());
                loop {
                    // Nothing that could panic happens under the lock.
                    let next = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
                    let Ok(Request { id, key, program, attempts, limit }) = next else { break };
                    if tell.send(Event::Begun(id)).is_err() {
                        break;
                    }
                    let turn = store.and_then(|store| {
                        store.exclusive(&key, |wait| {
                            if wait == Wait::GivenUp {
                                eprintln!("another process takes too long; compiling beside it");
                            }
                        })
                    });
                    let stored = store.and_then(|store| match store.get(&key) {
                        Lookup::Hit { bytes, .. } => Some((bytes, None)),
                        Lookup::Miss(_) => None,
                    });
                    let result = stored.map_or_else(
                        || {
                            let start = Instant::now();
                            let result = compiler.compile_first(&program, &attempts, limit);
                            result.map(|(bytes, alternative)| {
                                let seconds = start.elapsed().as_secs_f64();
                                (bytes, Some(CompileRun { seconds, alternative }))
                            })
                        },
                        Ok,
                    );
                    if tell.send(Event::Done(id, result, turn)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tell);
        let mut result = Ok(());
        while open > 0 {
            let Ok(event) = events.recv() else { break };
            open -= usize::from(matches!(event, Event::Done(..)));
            match on_event(event) {
                Ok(None) => {}
                Ok(Some(another)) => {
                    open += 1;
                    let _ = sender.send(another);
                }
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        // Workers that wait for more end.
        drop(sender);
        drop(events);
        result
    })
}
