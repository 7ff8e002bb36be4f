//! The first example, from source to trained model; the expected losses are from JAX.

use std::fs;

use sheaf_tests::{Output, Sandbox};

use crate::manifest;

/// Epochs and their losses in JAX, to four significant digits.
const LOSSES: [(u32, &str); 5] =
    [(100, "0.022934"), (200, "0.007262"), (300, "0.004058"), (400, "0.002744"), (500, "0.002041")];

/// Checks the output of the training.
#[track_caller]
pub fn check(output: &str) {
    for (epoch, loss) in LOSSES {
        let line = format!("epoch {epoch:3}  loss {loss}\n");
        assert!(output.contains(&line), "no `{}` in\n{output}", line.trim_end());
    }
    let predictions: Vec<f64> =
        output.lines().filter_map(|line| line.rsplit_once("-> ")?.1.parse().ok()).collect();
    let [a, b, c, d] = predictions[..] else { panic!("four predictions in\n{output}") };
    assert!(a < 0.1 && b > 0.9 && c > 0.9 && d < 0.1, "{output}");
}

/// The example's training, and a longer one that is worth compiling.
const TRAINING: [&str; 2] = [" 500 0.7)", " 25000 0.7)"];

/// A sandbox with the example, trained for enough epochs that compiling pays.
fn trained(options: &[&str]) -> Option<(Sandbox, Output)> {
    let sandbox = Sandbox::with_compiler()?;
    sandbox.example("xor/train.shf");
    let source = fs::read_to_string(sandbox.path("xor/train.shf")).expect("a source");
    assert!(source.contains(TRAINING[0]));
    sandbox.write("xor/train.shf", source.replace(TRAINING[0], TRAINING[1]));
    let output = sandbox.run(&[&["xor/train.shf"], options].concat());
    Some((sandbox, output))
}

#[test]
fn interpreted() {
    let sandbox = Sandbox::new();
    sandbox.example("xor/train.shf");
    check(&sandbox.run(&["xor/train.shf", "--no-jit"]).silent());
    assert!(!sandbox.path("xor/__sheaf__").exists());
}

#[test]
fn a_short_training_is_interpreted() {
    let Some(sandbox) = Sandbox::with_compiler() else { return };
    sandbox.example("xor/train.shf");
    let output = sandbox.run(&["xor/train.shf", "--explain"]);
    check(&output.stdout);
    assert!(output.stderr.contains("worth compiling: init-params, train-step"), "{output}");
}

#[test]
fn compiled_where_it_pays() {
    let Some((sandbox, output)) = trained(&["--explain"]) else { return };
    check(&output.stdout);
    insta::assert_snapshot!(output.stderr);
    assert!(output.stderr.contains("compiled, 25000 calls"));
    let entries = manifest(&sandbox.path("xor"));
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["function"], "train-step");
}

#[test]
fn compiled_throughout() {
    let Some((_, output)) = trained(&["--jit", "always"]) else { return };
    check(&output.compiled());
}

#[test]
fn compiled_once() {
    let Some((sandbox, output)) = trained(&[]) else { return };
    let first = output.compiled();
    check(&first);
    // From the folder beside the program.
    assert_eq!(sandbox.run(&["xor/train.shf"]).silent(), first);
    // From the user's cache, which refills the folder.
    let artifacts = sandbox.path("xor/__sheaf__");
    let before = Sandbox::files(&artifacts);
    fs::remove_dir_all(&artifacts).expect("artifacts");
    assert_eq!(sandbox.run(&["xor/train.shf"]).silent(), first);
    assert_eq!(Sandbox::files(&artifacts), before);
    // Recompiled on request.
    assert_eq!(sandbox.run(&["xor/train.shf", "--recompile"]).compiled(), first);

    // On another machine: no compiler, no cache, no network.
    let other = Sandbox::new();
    other.copy_from(&sandbox);
    fs::remove_dir_all(other.home()).expect("a home");
    assert_eq!(other.run(&["xor/train.shf", "--offline"]).silent(), first);
    assert!(!other.home().join("data").exists());
}

#[test]
fn another_learning_rate_compiles_nothing() {
    let Some((sandbox, output)) = trained(&[]) else { return };
    let first = output.compiled();
    let source = fs::read_to_string(sandbox.path("xor/train.shf")).expect("a source");
    sandbox.write("xor/train.shf", source.replace(TRAINING[1], " 400 0.5)"));
    let second = sandbox.run(&["xor/train.shf"]).silent();
    assert_ne!(first, second);
    assert!(second.contains("epoch 400") && !second.contains("epoch 450"));
}

#[test]
fn another_model_replaces_the_artifact() {
    let Some((sandbox, output)) = trained(&[]) else { return };
    check(&output.compiled());
    let before = manifest(&sandbox.path("xor"));
    let source = fs::read_to_string(sandbox.path("xor/train.shf")).expect("a source");
    assert!(source.contains("relu"));
    sandbox.write("xor/train.shf", source.replace("relu", "tanh"));
    let _ = sandbox.run(&["xor/train.shf"]).compiled();
    let after = manifest(&sandbox.path("xor"));
    assert_eq!((before.len(), after.len()), (1, 1));
    assert_eq!(before[0]["file"], after[0]["file"]);
    assert_ne!(before[0]["key"], after[0]["key"]);
    assert_eq!(
        Sandbox::files(&sandbox.path("xor/__sheaf__")),
        [".lock", "manifest.json", "train-step.cpu.vmfb"]
    );
    // Both are in the cache: reverting compiles nothing.
    sandbox.write("xor/train.shf", source);
    check(&sandbox.run(&["xor/train.shf"]).silent());
}
