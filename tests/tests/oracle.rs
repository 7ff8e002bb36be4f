//! The oracle suite itself: its behaviour without JAX, and its reduction of failing programs. Neither needs JAX.

#![cfg(unix)]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use sheaf_tests::skip;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above").to_owned()
}

/// The output of `scripts/oracle` with an empty target folder.
fn oracle(folder: &Path, set: &[(&str, &str)]) -> Output {
    let mut command = Command::new(root().join("scripts/oracle"));
    command.env_remove("SHEAF_JAX_PYTHON").env("CARGO_TARGET_DIR", folder.join("target"));
    command.env("SHEAF", folder.join("no-sheaf"));
    command.envs(set.iter().copied()).output().expect("scripts/oracle starts")
}

/// A folder with this text as `python3`, and no newer version; and a `PATH` with it first.
fn python(text: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    for name in ["python3", "python3.11", "python3.12", "python3.13"] {
        let path = folder.path().join(name);
        fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a permission");
    }
    let path = std::env::var("PATH").expect("a PATH");
    let path = format!("{}:{path}", folder.path().display());
    (folder, path)
}

/// Asserts that the suite was skipped, with one message that gives the reason, and did not fail.
fn assert_skipped(output: &Output, reason: &str) {
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert_eq!(said.matches("SKIPPED").count(), 1, "{said}");
    assert!(said.contains("0 comparisons ran"), "{said}");
    assert_eq!(said.matches(reason).count(), 1, "{said}");
    assert!(output.stdout.is_empty(), "{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn without_a_fitting_python_the_suite_is_skipped() {
    let (folder, path) = python("exit 1");
    assert_skipped(&oracle(folder.path(), &[("PATH", path.as_str())]), "there is no Python 3.11 or newer");
}

#[test]
fn where_jax_cannot_be_installed_the_suite_is_skipped_and_tried_again() {
    // Accepts every version, creates the environment, and has a pip without an index.
    let pip = r#"case "$*" in
    "-m venv "*) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" ;;
    "-m pip "*) echo 'ERROR: no matching distribution' >&2; exit 1 ;;
    esac"#;
    let (folder, path) = python(pip);
    for _ in 0..2 {
        let output = oracle(folder.path(), &[("PATH", path.as_str())]);
        assert_skipped(&output, "cannot be installed");
        assert!(String::from_utf8_lossy(&output.stderr).contains("no matching distribution"));
    }
}

#[test]
fn where_the_named_python_has_no_jax_the_suite_is_skipped() {
    let (folder, _) = python("exit 1");
    let named = folder.path().join("python3").display().to_string();
    assert_skipped(
        &oracle(folder.path(), &[("SHEAF_JAX_PYTHON", named.as_str())]),
        "(SHEAF_JAX_PYTHON) has no jax",
    );
}

#[test]
fn a_program_that_differs_is_made_small() {
    unittest("test_shrink");
}

#[test]
fn a_run_without_an_end_is_a_failure_of_its_file() {
    unittest("test_limits");
}

/// Runs the suite's own tests in Python.
fn unittest(module: &str) {
    let run = Command::new("python3")
        .args(["-m", "unittest", "-q", module])
        .current_dir(root().join("tests/oracle"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    let Ok(output) = run else { return skip("there is no python3") };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
