//! Files for remote compilation.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use sheaf_target::{Platform, Release, Target, bytecode_version, executor_files};

use crate::compile::{ADD, compiler, toolchain};
use crate::skipped;

#[test]
fn its_files_alone_compile_what_the_worker_compiles() {
    if Platform::host() != Some(Platform::LinuxX86_64) {
        skipped("the files are for Linux on x86-64");
        return;
    }
    let Some(toolchain) = toolchain() else { return };
    let folder = tempfile::tempdir_in(toolchain.folder.parent().expect("a folder")).expect("a folder");
    for file in executor_files(&toolchain.version).expect("a release of the table") {
        let installed = toolchain.folder.join(file.path);
        assert_eq!(fs::metadata(&installed).expect("a file").len(), file.size, "{file:?}");
        let bytes = fs::read(&installed).expect("a file");
        assert_eq!(<[u8; 32]>::from(Sha256::digest(&bytes)), file.sha256, "{file:?}");
        // At the path that they have there.
        fs::hard_link(&installed, folder.path().join(file.path)).expect("a link");
    }
    let release = Release::host().expect("a release");
    let mut own = compiler(toolchain);
    let program = folder.path().join("iree-compile");

    let flags = Target::CPU.flags();
    let remote = run(&program, &flags, ADD.as_bytes());
    assert_eq!(bytecode_version(&remote), Some(release.bytecode));
    assert!(own.compile(ADD, &flags).expect("a program") == remote, "another program");
}

/// The output of `iree-compile` for a text, in an empty environment.
fn run(program: &Path, flags: &[String], input: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .args(flags)
        .args(["-", "-o", "-"])
        .env_clear()
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("iree-compile");
    child.stdin.take().expect("its input").write_all(input).expect("a reader");
    let output = child.wait_with_output().expect("its end");
    assert!(output.status.success(), "{:?}", output.status);
    output.stdout
}
