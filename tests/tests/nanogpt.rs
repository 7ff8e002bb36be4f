//! `examples/nanogpt`: a training step against JAX, and the causes of recompilation.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sheaf_tests::{Sandbox, jax_python, skip, smaller_gpt};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("a folder above").to_owned()
}

/// A sandbox with the compiler, the example's modules and the start of its text. `None`, after a message, if one is
/// unavailable.
fn sandbox() -> Option<Sandbox> {
    let Ok(text) = fs::read(root().join("examples/nanogpt/shakespeare.txt")) else {
        skip("there is no text: run scripts/fetch-shakespeare");
        return None;
    };
    let sandbox = Sandbox::with_compiler()?;
    for name in ["model.shf", "text.shf"] {
        sandbox.write(name, fs::read(root().join("examples/nanogpt").join(name)).expect("a module"));
    }
    // A debug build reads slowly.
    sandbox.write("text.txt", &text[..20_000]);
    Some(sandbox)
}

#[test]
#[ignore = "long: a whole GPT step is compiled; make nightly runs it"]
fn one_step_is_that_of_jax_python() {
    let Some((sandbox, python)) = sandbox().zip(jax_python()) else { return };
    sandbox.write("step.shf", fs::read(root().join("tests/nanogpt/step.shf")).expect("a program"));
    let _ = sandbox.run(&["step.shf", "--jit", "always"]).compiled();
    assert_eq!(compilations(&sandbox, "train-step"), 1);
    let compared = Command::new(python)
        .arg(root().join("tests/nanogpt/compare.py"))
        .arg(sandbox.path(""))
        .env("JAX_PLATFORMS", "cpu")
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output()
        .expect("Python starts");
    let said = String::from_utf8_lossy(&compared.stdout) + String::from_utf8_lossy(&compared.stderr);
    assert!(compared.status.success(), "{said}");
    for what in ["start", "loss", "parameters", "m ", "v "] {
        assert!(said.lines().any(|line| line.starts_with(what)), "{what} was not compared:\n{said}");
    }
}

/// Number of compilations of a function, by the manifest.
fn compilations(sandbox: &Sandbox, function: &str) -> usize {
    let json = fs::read(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    let manifest: serde_json::Value = serde_json::from_slice(&json).expect("JSON");
    let entries = manifest["entries"].as_array().expect("entries");
    entries.iter().filter(|entry| entry["function"] == function).count()
}

/// Training of a smaller GPT; its arguments are steps, learning rate, batch size and seed.
const TRAIN_GPT: &str = r#"
(use ./model.shf)
(use ./text.shf)
(def given (io "load" "given.json"))
(def text (io "read" "text.txt"))
(def ids (encode text (alphabet text)))
(let [{:keys [steps rate size seed]} given]
  (repeat [i steps] [state (init-state (init-params (random-key seed) 73 config))]
    (let [[x y] (batch (fold-in (random-key seed) i) ids size (get config :context))
          [state value] (train-step state x y rate)]
      (print "{:.6f}" value)
      state)))
"#;

/// Command line arguments of a training: steps, learning rate, batch size, seed.
fn given(steps: u32, rate: f32, size: u32, seed: u32) -> String {
    format!("{{\"steps\": {steps}, \"rate\": {rate}, \"size\": {size}, \"seed\": {seed}}}")
}

/// Runs `program` with one setting, which compiles `step`; with others, which compile nothing; and with two other batch
/// sizes, which compile it once each.
fn compiles_for_the_batch_size_alone(sandbox: &Sandbox, program: &str, step: &str) {
    let train = |setting: String| {
        sandbox.write("given.json", setting);
        sandbox.run(&[program, "--jit", "always"])
    };
    let first = train(given(2, 0.01, 4, 1)).compiled();
    assert_eq!(compilations(sandbox, step), 1);
    let manifest = || fs::read(sandbox.path("__sheaf__/manifest.json")).expect("a manifest");
    let before = manifest();
    let again = train(given(2, 0.01, 4, 1)).compiled_nothing();
    assert_eq!(again, first);
    for other in [given(2, 0.02, 4, 1), given(2, 0.01, 4, 2), given(5, 0.01, 4, 1)] {
        let output = train(other.clone()).compiled_nothing();
        assert_ne!(output, first, "{other} changes nothing");
        assert_eq!(manifest(), before, "{other}");
    }
    for (count, size) in [(2, 3), (3, 5)] {
        let output = train(given(2, 0.01, size, 1));
        let compiled = output.stderr.matches(&format!("compiling {step}\n")).count();
        assert_eq!((output.code, compiled), (Some(0), 1), "batch size {size}:\n{output}");
        assert_eq!(compilations(sandbox, step), count);
        assert!(train(given(3, 0.03, size, 2)).compiled_nothing().lines().count() >= 3);
    }
    assert_eq!(train(given(2, 0.01, 4, 1)).compiled_nothing(), first);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn the_gpt_step_compiles_again_for_another_batch_size_alone() {
    let Some(sandbox) = sandbox() else { return };
    sandbox.write("model.shf", smaller_gpt(8, 16, 2));
    sandbox.write("train.shf", TRAIN_GPT);
    compiles_for_the_batch_size_alone(&sandbox, "train.shf", "train-step");
}

/// Linear regression; the arguments are those of [`TRAIN_GPT`], with epochs for steps.
const TRAIN_LINE: &str = r#"
(use optim)
(def given (io "load" "given.json"))
(defn loss [p x y] (mean (square (- (+ (* x (get p :w)) (get p :b)) y))))
(defn train-step [p m v t x y rate]
  (let [[value grads] ((value-and-grad loss) p x y)
        [p m v t] (adam-step p grads m v t rate)]
    (list p m v t value)))
(let [{:keys [steps rate size seed]} given
      x (random-normal (random-key seed) (list size))
      y (+ (* 3 x) 1)
      p {:w (zeros 1) :b (zeros 1)}
      zeros (tree-map-zeros p)]
  (repeat [i steps] [state (list p zeros zeros 0 0.0)]
    (let [[p m v t value] state
          state (train-step p m v t x y rate)]
      (print "{:.6f}" (last state))
      state)))
"#;

#[test]
fn a_small_step_compiles_again_for_another_batch_size_alone() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.write("line.shf", TRAIN_LINE);
    compiles_for_the_batch_size_alone(&sandbox, "line.shf", "train-step");
}
