//! Remote caches and remote compilation against real servers, which `scripts/remote-servers` installs. Each test starts
//! its own server on a free port of this machine; a test whose server is not installed prints that and passes.

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

/// Prints on the terminal, bypassing output capture, that a test is skipped, and the number of tests skipped so far.
fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test}: {reason} ({count} skipped so far)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
