//! MiniLM with its published weights.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheaf_tests::{Sandbox, skip};

use crate::{figures, jax_python, run};

/// Largest difference of an element of a vector of length 1.
const TOLERANCE: f64 = 1e-4;

/// The folder of the model. `None`, after a message, if it has not been fetched.
fn model() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name(".data/minilm");
    if !folder.join("model.safetensors").exists() {
        skip("there is no MiniLM: run scripts/fetch-minilm");
        return None;
    }
    Some(folder)
}

fn sandbox() -> Option<Sandbox> {
    let sandbox = Sandbox::with_shared_store()?;
    sandbox.example("minilm/model.shf");
    sandbox.example("minilm/match.shf");
    Some(sandbox)
}

#[test]
#[ignore = "long: make nightly runs it"]
fn sentences_are_matched_by_what_they_mean() {
    let Some((model, sandbox)) = model().zip(sandbox()) else { return };
    let output = run(&sandbox, "minilm/match.shf", &["--jit", "always"], model.to_str());
    let [trained, untrained, words] = figures(&output, "matched:");
    assert!(trained >= 0.99 && untrained <= 0.35 && words <= 0.35, "{output}");
}

#[test]
fn vectors_are_those_of_numpy() {
    let Some((model, sandbox)) = model().zip(sandbox()) else { return };
    let Some(python) = jax_python() else { return };
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    sandbox.write("minilm/vectors.shf", fs::read(tests.join("minilm/vectors.shf")).expect("a program"));
    let _ = run(&sandbox, "minilm/vectors.shf", &["--jit", "always"], model.to_str());
    let compared = Command::new(python)
        .arg(tests.join("minilm/reference.py"))
        .args([&model, &sandbox.path("minilm")])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&compared.stdout);
    assert!(compared.status.success(), "{said}{}", String::from_utf8_lossy(&compared.stderr));
    let [difference] = figures(&said, "vectors differ by");
    assert!(difference < TOLERANCE, "{said}");
}
