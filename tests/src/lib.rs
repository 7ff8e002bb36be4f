//! Helpers shared by the tests of the whole program: sandboxes to run `sheaf` in, one installed compiler for all of
//! them, disks of a known size, and a slow web server.
//!
//! A test that cannot run on this machine prints that ([`skip`]) and passes.

mod compiler;
mod device;
mod mount;
mod neutral;
mod output;
pub mod package;
pub mod release;
mod sample;
mod sandbox;
mod server;

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};

pub use compiler::{compile_once, toolchain, wheel};
pub use device::{download, upload, worker};
pub use mount::Mount;
pub use output::Output;
pub use sample::{sample, sample_lines};
pub use sandbox::{Run, Sandbox};
pub use server::Server;

/// The program under test, built by cargo next to the tests.
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
    // The tests are in its folder `deps`.
    test.ancestors().nth(2).expect("a folder above").to_owned()
}

/// A folder under `target` for what tests keep: downloads, and compiled programs.
fn kept_folder() -> PathBuf {
    profile_folder().with_file_name("sheaf-tests")
}

/// A Python with the pinned JAX, and NumPy. `None`, after a message, if it cannot be installed.
///
/// # Panics
/// If its path is not UTF-8.
pub fn jax_python() -> Option<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("scripts/jax-python");
    match Command::new(script).output() {
        Ok(output) if output.status.success() => {
            Some(String::from_utf8(output.stdout).expect("a path").trim().into())
        }
        Ok(output) => {
            skip(String::from_utf8_lossy(&output.stderr).trim());
            None
        }
        Err(error) => {
            skip(&format!("scripts/jax-python cannot run: {error}"));
            None
        }
    }
}

/// The module `examples/nanogpt/model.shf` with these dimensions instead of 64, 128 and 4.
///
/// # Panics
/// If the example has others.
pub fn smaller_gpt(context: usize, width: usize, layers: usize) -> String {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("examples/nanogpt/model.shf");
    let mut model = std::fs::read_to_string(model).expect("a module");
    for (name, whole, smaller) in [("context", 64, context), ("width", 128, width), ("n-layers", 4, layers)] {
        let setting = format!(":{name} {whole}");
        assert_eq!(model.matches(&setting).count(), 1, "{setting}");
        model = model.replace(&setting, &format!(":{name} {smaller}"));
    }
    model
}

/// A module with the interface of `examples/nanogpt/model.shf` that compiles in a fraction of its time: `tests/nanogpt/bigrams.shf`.
pub fn bigrams() -> &'static str {
    include_str!("../nanogpt/bigrams.shf")
}

/// True in `make nightly`, which runs everything: the tests that are ignored otherwise, all samples, and
/// [more random cases](random_cases).
pub fn nightly() -> bool {
    std::env::var_os("SHEAF_NIGHTLY").is_some()
}

/// Number of cases of a random test: that of an environment variable if it is set, else `usual`, twenty times that in
/// `make nightly`.
///
/// # Panics
/// If the variable is not a number.
pub fn random_cases(variable: &str, usual: usize) -> usize {
    let nightly = if nightly() { 20 } else { 1 };
    std::env::var(variable).map_or(nightly * usual, |n| n.parse().expect("a number of cases"))
}

/// Prints on the terminal, bypassing output capture, that a test is skipped, and the number of tests skipped so far.
pub fn skip(reason: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let count = COUNT.fetch_add(1, Ordering::SeqCst) + 1;
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    let line = format!("SKIPPED {test}: {reason} ({count} skipped so far)\n");
    let _ = std::io::stderr().write_all(line.as_bytes());
}
