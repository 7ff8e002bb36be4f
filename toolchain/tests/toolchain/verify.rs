//! Verifying and removing an installation.

use std::fs;
use std::path::Path;

use sheaf_toolchain::{Toolchain, locate_release, remove, verify};

use crate::failures::folder_with;
use crate::wheel::Wheel;
use crate::{assert_installed, install, installed};

fn installation(wheel: &Wheel, home: &Path) -> Toolchain {
    let folder = folder_with(&wheel.bytes);
    install(wheel, home, &folder.path().display().to_string()).expect("installed")
}

/// The result of a verification, one line for each file.
fn found(wheel: &Wheel, home: &Path) -> String {
    let differences = verify(&wheel.release(), home, &()).expect("readable");
    let lines: Vec<_> = differences.iter().map(ToString::to_string).collect();
    lines.join("\n").replace(&home.display().to_string(), "[home]")
}

#[test]
fn every_file_that_differs_is_named() {
    let wheel = Wheel::new(1_000);
    let home = tempfile::tempdir().expect("a folder");
    let toolchain = installation(&wheel, home.path());
    assert_eq!(found(&wheel, home.path()), "");

    // Of the same size, so that only its digest differs.
    let mut library = wheel.library.clone();
    library[999] ^= 1;
    fs::write(&toolchain.library, library).expect("a library");
    assert!(locate_release(&wheel.release(), home.path()).is_some());
    insta::assert_snapshot!(found(&wheel, home.path()), @"[home]/toolchains/iree-compiler-0.0.1-linux-x86_64/libIREECompiler.so: its SHA-256 is edc3265dd4d6befe36deaa8d9ae0effc034a962550a070d29e2fa05762be705b instead of b8d77f2d825b2355d85a24ab8113730a7c8dcdda8c829270e1b648b617a3b88a");

    fs::remove_file(&toolchain.linker).expect("a linker");
    fs::write(&toolchain.program, "longer than the program is").expect("a program");
    fs::write(toolchain.folder.join("complete"), "sha256 0").expect("a marker");
    insta::assert_snapshot!(found(&wheel, home.path()), @r"
    [home]/toolchains/iree-compiler-0.0.1-linux-x86_64/complete: it is not the marker of this release
    [home]/toolchains/iree-compiler-0.0.1-linux-x86_64/libIREECompiler.so: its SHA-256 is edc3265dd4d6befe36deaa8d9ae0effc034a962550a070d29e2fa05762be705b instead of b8d77f2d825b2355d85a24ab8113730a7c8dcdda8c829270e1b648b617a3b88a
    [home]/toolchains/iree-compiler-0.0.1-linux-x86_64/iree-lld: it is missing
    [home]/toolchains/iree-compiler-0.0.1-linux-x86_64/iree-compile: it has 26 bytes instead of 17
    ");
}

#[test]
fn what_is_not_installed_lacks_everything() {
    let home = tempfile::tempdir().expect("a folder");
    let wheel = Wheel::new(1);
    let missing = || found(&wheel, home.path()).matches("it is missing").count();
    assert_eq!(missing(), 5);
    let folder = sheaf_toolchain::folder(&wheel.release(), home.path());
    fs::create_dir_all(folder.parent().expect("a parent")).expect("a folder");
    fs::write(folder, "a file in its place").expect("a file");
    assert_eq!(missing(), 5);
}

#[test]
fn the_marker_has_the_hash_of_every_file() {
    let wheel = Wheel::new(1_000);
    let home = tempfile::tempdir().expect("a folder");
    let toolchain = installation(&wheel, home.path());
    let marker = fs::read_to_string(toolchain.folder.join("complete")).expect("a marker");
    for entry in fs::read_dir(&toolchain.folder).expect("a folder") {
        let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
        assert_eq!(marker.contains(&format!(" {name}\n")), name != "complete", "{name} in\n{marker}");
    }
    for member in wheel.release().members() {
        assert!(marker.contains(member.sha256), "{member:?}");
    }
}

#[test]
fn what_is_removed_is_gone_and_installs_again() {
    let wheel = Wheel::new(1_000);
    let home = tempfile::tempdir().expect("a folder");
    assert!(!remove(&wheel.release(), home.path(), &()).expect("nothing"));
    installation(&wheel, home.path());
    assert!(remove(&wheel.release(), home.path(), &()).expect("removed"));
    assert_eq!(installed(home.path()), [""; 0]);
    installation(&wheel, home.path());
    assert_installed(&wheel, home.path());
}
