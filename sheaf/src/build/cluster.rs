//! Compilation of a build by a cluster.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use sheaf_project::Home;

use sheaf_engine::{Cluster, CompileRun, Compiled};
use sheaf_loader::Job;

/// Default of `--jobs` on a cluster: its workers are not this machine's.
pub const MAX_CONCURRENT: usize = 16;

/// Progress of a job.
pub enum Event {
    /// The cluster is asked for it.
    Begun(usize),
    /// It is done: the VMFB, and its compilation. `None` if the cluster did not compile it.
    Done(usize, Option<(Vec<u8>, CompileRun)>),
}

/// Has a cluster compile the jobs with these numbers, `at_once` at a time. `on_event` gets the events, in their
/// order; after an error of it no more are begun.
pub fn compile<'j, E>(
    cluster: &Cluster,
    home: &Home,
    at_once: usize,
    ids: &[usize],
    job: impl Fn(usize) -> &'j Job + Sync,
    mut on_event: impl FnMut(Event) -> Result<(), E>,
) -> Result<(), E> {
    let next = AtomicUsize::new(0);
    let (tell, events) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..at_once.min(ids.len()) {
            let (tell, next, job) = (tell.clone(), &next, &job);
            scope.spawn(move || {
                while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if !cluster.serves() || tell.send(Event::Begun(*id)).is_err() {
                        break;
                    }
                    let made = match cluster.compile(job(*id), home) {
                        Some(Compiled::Yes { bytes, run }) => Some((bytes, run)),
                        _ => None,
                    };
                    if tell.send(Event::Done(*id, made)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(tell);
        events.into_iter().try_for_each(&mut on_event)
    })
}
