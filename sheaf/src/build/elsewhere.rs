//! What a cluster compiles of a build.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use sheaf_registry::Home;

use crate::engine::{Cluster, Compiled, Job};

/// Has a cluster compile the jobs with these numbers, `at_once` at a time, and gives what it made: number, VMFB, seconds.
pub fn compile<'j>(
    cluster: &Cluster,
    home: &Home,
    at_once: usize,
    ids: &[usize],
    job: impl Fn(usize) -> &'j Job + Sync,
) -> Vec<(usize, Vec<u8>, f64)> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..at_once.min(ids.len()) {
            scope.spawn(|| {
                while let Some(id) = ids.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(Compiled::Yes { bytes, seconds }) = cluster.compile(job(*id), home) {
                        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
                        made.push((*id, bytes, seconds));
                    }
                }
            });
        }
    });
    made.into_inner().unwrap_or_else(PoisonError::into_inner)
}
