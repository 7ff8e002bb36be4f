//! What the tests of the whole program share: sealed worlds to run `sheaf` in, one installed compiler for all of
//! them, disks of a known size, and a web server that takes its time.
//!
//! A test that cannot run on this machine says so on the terminal ([`skip`]) and passes.

mod compiler;
mod mount;
mod neutral;
mod output;
mod server;
mod world;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use compiler::{toolchain, wheel};
pub use mount::Mount;
pub use output::Output;
pub use server::Server;
pub use world::{Run, World};

/// The program under test, as cargo builds it beside the tests.
///
/// # Panics
/// If it has not been built.
pub fn sheaf() -> PathBuf {
    let program = profile_folder().join(format!("sheaf{}", std::env::consts::EXE_SUFFIX));
    assert!(program.is_file(), "{} is not there: run cargo build -p sheaf", program.display());
    program
}

/// `target/<profile>`.
fn profile_folder() -> PathBuf {
    let test = std::env::current_exe().expect("the path of the test");
    // The tests lie in its folder `deps`.
    test.ancestors().nth(2).expect("a folder above").to_owned()
}

/// A folder under `target` for what tests fetch once and keep.
fn kept_folder() -> PathBuf {
    profile_folder().with_file_name("sheaf-tests")
}

/// Says on the terminal, past the capture of test output, that a test does not run, and how many did not so far.
pub fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test}: {reason} ({count} skipped so far)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
