//! The `sheaf` command end to end: each test runs the real program in a sandbox.

mod bad_data;
mod bad_input;
mod build;
mod casts;
mod check;
mod checkpoints;
mod checks;
mod damaged;
mod data;
mod deploy;
mod doc;
mod emit;
mod examples;
mod expand;
mod explain;
#[cfg(unix)]
mod failing;
mod flags;
mod fmt;
mod full_disk;
mod guards;
mod guide;
mod hostile;
mod init_ai;
mod install;
mod kernels;
mod killed;
mod loops;
mod new;
mod output;
#[cfg(unix)]
mod owners;
mod plot;
mod profile;
mod record;
mod repl;
mod sharing;
#[cfg(unix)]
mod step;
mod terminal;
mod toolchain;
mod trace;
mod usage;
mod verify;
mod wide;
mod xor;

use std::fs;
use std::path::Path;

use sheaf_tests::Sandbox;

/// A program that compiles quickly, with `--jit always`.
const SQUARES: &str = "(defn sum-of-squares [x] (sum (* x x)))\n(print (sum-of-squares [1 2 3]))\n";

/// Its output.
const FOURTEEN: &str = "14.0\n";

/// Runs [`SQUARES`] compiled.
const RUN_SQUARES: [&str; 3] = ["squares.shf", "--jit", "always"];

/// A sandbox in which [`SQUARES`] has been compiled.
fn compiled_squares() -> Option<Sandbox> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.write("squares.shf", SQUARES);
    assert_eq!(sandbox.run(&RUN_SQUARES).compiled(), FOURTEEN);
    Some(sandbox)
}

/// The VMFB of [`SQUARES`].
fn vmfb(sandbox: &Sandbox) -> std::path::PathBuf {
    sandbox.path("__sheaf__/sum-of-squares.cpu.vmfb")
}

/// The entries of the manifest beside the program in `folder`.
fn manifest(folder: &Path) -> Vec<serde_json::Value> {
    let json = fs::read(folder.join("__sheaf__/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    manifest["entries"].as_array().expect("entries").clone()
}
