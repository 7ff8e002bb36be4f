//! Remote caches and remote compilation against real servers, which `scripts/remote-servers` installs. Each test starts a
//! server of its own on a free port of this machine and ends it; one whose server is not installed says so and passes.

mod checks;
mod execution;
mod fake;
mod faults;
mod grpc;
mod http;
mod objects;
mod own;
mod servers;
mod uploads;

use std::io::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Says on the terminal, past the capture of test output, that a test does not run, and how many did not so far.
fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test}: {reason} ({count} skipped so far)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
