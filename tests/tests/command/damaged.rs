//! Damaged files in `__sheaf__` and in the cache: reported with the file and the cause, never used, repaired in the
//! same run.

use std::fs;
use std::path::Path;

use sheaf_tests::Sandbox;

use crate::{FOURTEEN, RUN_SQUARES, SQUARES, compiled_squares, manifest, vmfb};

/// Changes one byte in the middle.
fn flip(file: &Path) {
    let mut bytes = fs::read(file).expect("a file");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    fs::write(file, bytes).expect("a file");
}

/// Cuts the file to half its length.
fn truncate(file: &Path) {
    let bytes = fs::read(file).expect("a file");
    fs::write(file, &bytes[..bytes.len() / 2]).expect("a file");
}

/// Damages the VMFB and runs: the message as a snapshot, the right result, the restored file, and no further message.
/// `stored`: true if the user's cache still has it.
fn repaired(name: &str, damage: fn(&Path), stored: bool) {
    let Some(sandbox) = compiled_squares() else { return };
    let before = fs::read(vmfb(&sandbox)).expect("a VMFB");
    damage(&vmfb(&sandbox));
    if !stored {
        fs::remove_dir_all(sandbox.home().join("cache")).expect("a cache");
    }
    let output = sandbox.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    assert_eq!(output.stderr.contains("compiling"), !stored, "{output}");
    insta::assert_snapshot!(name, output);
    assert!(fs::read(vmfb(&sandbox)).expect("a VMFB") == before, "the damaged file was not replaced");
    assert_eq!(manifest(&sandbox.path("")).len(), 1);
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN);
}

#[test]
fn corrupt() {
    repaired("corrupt_stored", flip, true);
    repaired("corrupt_unstored", flip, false);
}

#[test]
fn truncated() {
    repaired("truncated_stored", truncate, true);
    repaired("truncated_unstored", truncate, false);
}

#[test]
fn missing() {
    let remove = |file: &Path| fs::remove_file(file).expect("a file");
    repaired("missing_stored", remove, true);
    repaired("missing_unstored", remove, false);
}

#[test]
fn corrupt_manifest() {
    let damage = |file: &Path| {
        fs::write(file.with_file_name("manifest.json"), "{\"version\": 1, \"ent").expect("a file");
    };
    repaired("corrupt_manifest_stored", damage, true);
    repaired("corrupt_manifest_unstored", damage, false);
}

#[test]
fn manifest_that_leads_elsewhere() {
    let damage = |file: &Path| {
        let manifest = file.with_file_name("manifest.json");
        let text = fs::read_to_string(&manifest).expect("a manifest");
        fs::write(&manifest, text.replace("sum-of-squares.cpu.vmfb", "../squares.shf")).expect("a manifest");
    };
    repaired("manifest_that_leads_elsewhere", damage, true);
}

#[test]
fn manifest_of_a_newer_sheaf() {
    let Some(sandbox) = compiled_squares() else { return };
    let newer = "{\"version\": 99, \"programs\": []}\n";
    sandbox.write("__sheaf__/manifest.json", newer);
    let output = sandbox.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    insta::assert_snapshot!(output);
    // It belongs to another user, so it is not changed.
    assert_eq!(fs::read_to_string(sandbox.path("__sheaf__/manifest.json")).expect("a manifest"), newer);
}

#[test]
fn corrupt_without_a_compiler() {
    let Some(compiled) = compiled_squares() else { return };
    let sandbox = Sandbox::new();
    sandbox.copy_from(&compiled);
    fs::remove_dir_all(sandbox.home().join("cache")).expect("a cache");
    flip(&vmfb(&sandbox));
    let output = sandbox.run(&[&RUN_SQUARES[..], &["--offline"]].concat());
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    insta::assert_snapshot!(output);
}

#[test]
fn corrupt_store() {
    let Some(sandbox) = compiled_squares() else { return };
    fs::remove_dir_all(sandbox.path("__sheaf__")).expect("artifacts");
    let cache = sandbox.home().join("cache");
    let files = Sandbox::files(&cache);
    let blobs: Vec<_> = files.iter().filter(|name| name.starts_with("blobs-v2")).collect();
    assert_eq!(blobs.len(), 2, "the program and what it was compiled to");
    blobs.into_iter().for_each(|blob| flip(&cache.join(blob)));
    let output = sandbox.run(&RUN_SQUARES);
    assert_eq!((output.code, output.stdout.as_str()), (Some(0), FOURTEEN), "{output}");
    insta::assert_snapshot!(output);
    fs::remove_dir_all(sandbox.path("__sheaf__")).expect("artifacts");
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN, "from the store");
}

#[test]
fn another_source_has_other_artifacts() {
    let Some(sandbox) = compiled_squares() else { return };
    sandbox.write("squares.shf", SQUARES.replace("(* x x)", "(* x x x)"));
    assert_eq!(sandbox.run(&RUN_SQUARES).compiled(), "36.0\n");
    assert_eq!(manifest(&sandbox.path("")).len(), 1);
}

/// A program for another device in place of one for the CPU, with its digest: it is valid, but does not load.
#[test]
fn whole_but_not_to_be_loaded() {
    let Some(sandbox) = compiled_squares() else { return };
    let before = fs::read(vmfb(&sandbox)).expect("a VMFB");
    let Some(other) = Sandbox::with_compiler() else { return };
    other.write("squares.shf", "(defn sum-of-squares [(x f32 [3])] (sum (* x x)))\n");
    let built = other.run(&["build", "squares.shf", "--device", "vulkan"]);
    assert_eq!(built.code, Some(0), "{built}");
    let (ours, theirs) = (&manifest(&sandbox.path(""))[0], &manifest(&other.path(""))[0]);
    let theirs_at = other.path("__sheaf__").join(theirs["file"].as_str().expect("a name"));
    fs::copy(theirs_at, vmfb(&sandbox)).expect("a copy");
    let text = fs::read_to_string(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    let text = ["digest", "size"].iter().fold(text, |text, key| {
        text.replace(&format!("\"{key}\": {}", ours[key]), &format!("\"{key}\": {}", theirs[key]))
    });
    sandbox.write("__sheaf__/manifest.json", text);

    fs::remove_dir_all(sandbox.home().join("cache")).expect("a cache");
    assert_eq!(sandbox.run(&RUN_SQUARES).compiled(), FOURTEEN);
    assert!(fs::read(vmfb(&sandbox)).expect("a VMFB") == before, "it was not replaced");
    assert_eq!(sandbox.run(&RUN_SQUARES).silent(), FOURTEEN);
}
