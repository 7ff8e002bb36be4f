//! GPT-2 beside a reference: a tiny model under the published names, whose logits NumPy or `transformers` computes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheaf_tests::{Sandbox, skip};

use crate::{figures, jax_python, run};

/// Largest difference of a logit; logits are up to 7.
const TOLERANCE: f64 = 1e-4;

/// A sandbox with the example, and the model that a Python writes.
fn with_model(python: &Path, arguments: &[&str]) -> Option<Sandbox> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sandbox = Sandbox::with_shared_store()?;
    sandbox.example("gpt2/model.shf");
    sandbox.write("gpt2/logits.shf", fs::read(tests.join("gpt2/logits.shf")).expect("a program"));
    let written = Command::new(python)
        .arg(tests.join("gpt2/reference.py"))
        .arg(sandbox.path("gpt2/model"))
        .args(arguments)
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    Some(sandbox)
}

/// Runs the program in two ways, and compares logits and the likeliest text with the reference's.
fn agrees(sandbox: &Sandbox, what: Option<&str>) {
    let likeliest = fs::read_to_string(sandbox.path("gpt2/model/likeliest.json")).expect("a list");
    let likeliest: Vec<u32> = serde_json::from_str(&likeliest).expect("numbers");
    for jit in [&["--no-jit"][..], &["--jit", "always"]] {
        let output = run(sandbox, "gpt2/logits.shf", jit, what);
        let [difference] = figures(&output, "logits differ by");
        assert!(difference < TOLERANCE, "{output}");
        let line = output.lines().find_map(|line| line.strip_prefix("likeliest: [")).expect("a text");
        let ids: Vec<u32> =
            line.trim_end_matches(']').split_whitespace().map(|id| id.parse().expect("an id")).collect();
        assert_eq!(ids, likeliest, "{output}");
        if what == Some("train") {
            let [before, after] = figures(&output, "loss");
            assert!(before > 4.0 && after < 0.1, "{output}");
        }
    }
}

#[test]
fn logits_are_those_of_numpy() {
    let Some(python) = jax_python() else { return };
    let Some(sandbox) = with_model(&python, &[]) else { return };
    agrees(&sandbox, None);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn training_lowers_the_loss() {
    let Some(python) = jax_python() else { return };
    let Some(sandbox) = with_model(&python, &[]) else { return };
    agrees(&sandbox, Some("train"));
}

/// A vocabulary of 101 pieces, as many as the model knows: the characters of ASCII, a blank, and six joined ones.
fn write_vocabulary(sandbox: &Sandbox) {
    let joined = ["l o", "lo w", "e r", "Ġ low", "t h", "th e"];
    let characters = ('!'..='~').chain(['Ġ']).map(String::from);
    let pieces = characters.chain(joined.map(|pair| pair.replace(' ', "")));
    let vocabulary: serde_json::Map<String, serde_json::Value> =
        pieces.enumerate().map(|(i, piece)| (piece, i.into())).collect();
    assert_eq!(vocabulary.len(), 101);
    sandbox.write("gpt2/model/vocab.json", serde_json::Value::from(vocabulary).to_string());
    sandbox.write("gpt2/model/merges.txt", format!("#version: 0.2\n{}\n", joined.join("\n")));
}

#[test]
fn a_text_is_continued() {
    let Some(python) = jax_python() else { return };
    let Some(sandbox) = with_model(&python, &[]) else { return };
    sandbox.example("gpt2/generate.shf");
    write_vocabulary(&sandbox);
    let arguments = ["generate.shf", "--", "model", "the lower", "9"];
    let output = sandbox.sheaf(&arguments).at("gpt2").run();
    assert_eq!(output.code, Some(0), "{output}");
    let text = output.stdout.trim_end_matches('\n');
    assert!(text.starts_with("the lower") && text.len() >= "the lower".len() + 9, "{output}");
}

/// With PyTorch and `transformers` in the Python that `SHEAF_TORCH_PYTHON` names: they take 5 GB.
#[test]
fn logits_are_those_of_transformers() {
    let Some(python) = std::env::var_os("SHEAF_TORCH_PYTHON") else {
        return skip("SHEAF_TORCH_PYTHON names no Python with transformers");
    };
    let Some(sandbox) = with_model(&PathBuf::from(python), &["--torch"]) else { return };
    agrees(&sandbox, None);
}
