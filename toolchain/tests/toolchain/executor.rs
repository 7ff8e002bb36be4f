//! What another machine is sent to compile there.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use sheaf_toolchain::{Platform, Release, Target, TwoRuns, bytecode_version, executor_files};

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
        // In the place and under the name that they have there.
        fs::hard_link(&installed, folder.path().join(file.path)).expect("a link");
    }
    let release = Release::host().expect("a release");
    let mut own = compiler(toolchain);
    let program = folder.path().join("iree-compile");
    let run = |flags: &[String], input: &[u8]| run(&program, flags, input);

    let flags = Target::CPU.flags();
    assert_eq!(TwoRuns::needed(&flags), None);
    let remote = run(&flags, ADD.as_bytes());
    assert_eq!(bytecode_version(&remote), Some(release.bytecode));
    assert!(own.compile(ADD, &flags).expect("a program") == remote, "another program");

    // In the inline model one run makes one buffer of what lies between and the result.
    let twice = "module @sheaf {
  func.func @main(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
    %0 = stablehlo.dot_general %a, %a, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = stablehlo.dot_general %0, %a, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
";
    let flags = Target::CPU_INLINE.flags();
    let runs = TwoRuns::needed(&flags).expect("two runs");
    let with = |flag: &str| [&flags[..], &[flag.to_owned()]].concat();
    let lowered = String::from_utf8(run(&with(runs.first), twice.as_bytes())).expect("text");
    let remote = run(&with(runs.second), runs.between(&lowered).as_bytes());
    assert!(own.compile(twice, &flags).expect("a program") == remote, "another program");
    assert!(run(&flags, twice.as_bytes()) != remote, "one run would do");
}

/// What `iree-compile` makes of a text, in an empty environment.
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
