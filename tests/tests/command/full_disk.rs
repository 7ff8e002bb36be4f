//! Full or read-only disks under the caches. The run continues with the program in memory.

use std::fs;

use sheaf_tests::{Mount, Output, Sandbox};

use crate::{FOURTEEN, RUN_SQUARES, SQUARES};

/// Smaller than any VMFB.
const TINY: Mount = Mount::Small(4);

/// Runs a program that compiles, with a separate file system mounted at a folder under the sandbox's root.
fn run(sandbox: &Sandbox, mount: Mount, folder: &std::path::Path) -> Output {
    sandbox.write("squares.shf", SQUARES);
    fs::create_dir_all(folder).expect("a folder");
    let output = sandbox.sheaf(&RUN_SQUARES).mounted(mount, folder.to_owned()).run();
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    output
}

/// A sandbox for runs with a separate file system.
fn sandbox() -> Option<Sandbox> {
    if Mount::available() { Sandbox::with_compiler() } else { None }
}

#[test]
fn full_disk_for_the_cache() {
    let Some(sandbox) = sandbox() else { return };
    let output = run(&sandbox, TINY, &sandbox.home().join("cache"));
    // The small count of cache hits fits.
    assert_eq!(output.mounted, ["./lookups-v1.json"], "something was left");
    insta::assert_snapshot!(output);
    // It was kept beside the program; now there is room again.
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN);
}

#[test]
fn full_disk_for_the_artifacts() {
    let Some(sandbox) = sandbox() else { return };
    let output = run(&sandbox, TINY, &sandbox.path("__sheaf__"));
    assert_eq!(output.mounted, ["./.lock"], "something was left");
    insta::assert_snapshot!(output);
    // It is in the store; now there is room again.
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN);
    assert_eq!(crate::manifest(&sandbox.path("")).len(), 1);
}

#[test]
fn artifacts_that_cannot_be_written() {
    let Some(sandbox) = sandbox() else { return };
    let output = run(&sandbox, Mount::ReadOnly, &sandbox.path("__sheaf__"));
    insta::assert_snapshot!(output);
    // From the store, with the same warning, since it is still not stored beside the program.
    let again = run(&sandbox, Mount::ReadOnly, &sandbox.path("__sheaf__"));
    insta::assert_snapshot!("artifacts_that_cannot_be_written_again", again);
}

#[test]
fn artifacts_that_need_not_be_written() {
    let Some(sandbox) = sandbox() else { return };
    sandbox.write("squares.shf", SQUARES);
    assert_eq!(sandbox.run(&RUN_SQUARES).compiled(), FOURTEEN);
    let output = run(&sandbox, Mount::ReadOnly, &sandbox.path("__sheaf__"));
    assert_eq!(output.silent(), FOURTEEN);
}

#[test]
fn a_file_in_the_place_of_the_artifacts() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("squares.shf", SQUARES);
    sandbox.write("__sheaf__", "not a folder");
    let output = sandbox.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN));
    insta::assert_snapshot!(output);
}

#[test]
fn full_disk_for_a_save() {
    if !Mount::available() {
        return;
    }
    let sandbox = Sandbox::new();
    // Both in one run: the small value fits, the large one does not and leaves it.
    sandbox.write(
        "save.shf",
        "(io \"save\" \"out/model.safetensors\" {:x [1 2]})
         (io \"save\" \"out/model.safetensors\" {:x (zeros '[100000])})",
    );
    fs::create_dir_all(sandbox.path("out")).expect("a folder");
    let output = sandbox.sheaf(&["save.shf"]).mounted(TINY, sandbox.path("out")).run();
    assert_eq!(output.mounted, ["./model.safetensors"], "something was left");
    insta::assert_snapshot!(output);
}
