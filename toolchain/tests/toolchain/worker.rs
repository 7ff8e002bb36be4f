//! The parent side against processes that are not compilers.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheaf_toolchain::{CompileError, Compiler, Toolchain};

use crate::child;

/// A missing toolchain.
pub(crate) fn nowhere() -> Toolchain {
    Toolchain {
        version: "3.13.0".to_owned(),
        folder: PathBuf::from("/nowhere"),
        library: PathBuf::from("/nowhere/libIREECompiler.so"),
        linker: PathBuf::from("/nowhere/iree-lld"),
        program: PathBuf::from("/nowhere/iree-compile"),
    }
}

/// The error of compiling with this shell script as the worker.
fn with_script(script: &'static str) -> CompileError {
    let command = move || {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    };
    Compiler::new(command, nowhere()).compile("module {}", &[]).expect_err("no compiler")
}

#[test]
fn a_worker_that_crashes() {
    insta::assert_snapshot!(with_script("echo 'LLVM ERROR: out of registers' >&2; kill -SEGV $$"), @r"
    the compiler crashed: signal 11, invalid memory access; it last said:
    LLVM ERROR: out of registers
    ");
    insta::assert_snapshot!(with_script("kill -KILL $$"), @"the compiler crashed: signal 9, killed, perhaps for want of memory");
    insta::assert_snapshot!(with_script("exit 3"), @"the compiler crashed: exit code 3");
}

#[test]
fn a_worker_is_ended_when_its_program_is_not_wanted_any_more() {
    let folder = tempfile::tempdir().expect("a folder");
    let begun = folder.path().join("begun");
    let script = format!("echo $$ > '{}'; exec sleep 600", begun.display());
    let command = move || {
        let mut command = Command::new("sh");
        command.args(["-c", &script]);
        command
    };
    let pid = || fs::read_to_string(&begun).ok();
    let seen = begun.clone();
    let mut compiler = Compiler::new(command, nowhere())
        .stopped_by(move || fs::read_to_string(&seen).is_ok_and(|pid| pid.ends_with('\n')));
    let error = compiler.compile("module {}", &[]).expect_err("no program");
    assert!(matches!(error, CompileError::Interrupted), "{error}");
    let process = format!("/proc/{}", pid().expect("a process").trim());
    assert!(!Path::new(&process).exists(), "the worker goes on");
    assert_eq!(compiler.worker_id(), None);
    // A worker interrupted first by the terminal has not crashed. A test in the background may have inherited that the
    // signal is ignored, which a shell cannot undo.
    let error = with_script("exec env --default-signal=INT sh -c 'kill -INT $$'");
    assert!(matches!(error, CompileError::Interrupted), "{error}");
}

#[test]
fn a_worker_that_says_something_else() {
    insta::assert_snapshot!(with_script("echo 'unknown command' >&2; echo 'usage: sheaf [options]'"), @r#"
    the compile worker does not speak Sheaf's protocol: a frame cannot begin with "usag"; it last said:
    unknown command
    "#);
}

#[test]
fn a_worker_that_cannot_be_started() {
    let mut compiler = Compiler::new(|| Command::new("/nowhere/sheaf"), nowhere());
    insta::assert_snapshot!(compiler.compile("module {}", &[]).expect_err("no worker"), @"cannot start the compile worker /nowhere/sheaf: No such file or directory (os error 2)");
}

fn compiler(library: &Path) -> Compiler {
    Compiler::new(|| child(&["worker"]), Toolchain { library: library.to_owned(), ..nowhere() })
}

#[test]
fn a_library_that_is_missing_or_damaged() {
    insta::assert_snapshot!(
        compiler(Path::new("/nowhere/libIREECompiler.so")).start().expect_err("no library"),
        @"the compiler /nowhere/libIREECompiler.so cannot be loaded: /nowhere/libIREECompiler.so: cannot open shared object file: No such file or directory"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let library = folder.path().join("libIREECompiler.so");
    fs::write(&library, "not a library").expect("a file");
    let message = compiler(&library).start().expect_err("no library").to_string();
    insta::assert_snapshot!(message.replace(&folder.path().display().to_string(), "[folder]"), @"the compiler [folder]/libIREECompiler.so cannot be loaded: [folder]/libIREECompiler.so: file too short");
}
