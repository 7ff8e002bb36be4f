//! An LSTM and a GPT that read Shakespeare, and a network that grows.

use std::fs;

use sheaf_tests::Sandbox;

use crate::{figures, run, sandbox};

/// The LSTM and the modules and the text that it reads.
const LSTM: [&str; 4] =
    ["lstm/train.shf", "nanogpt/model.shf", "nanogpt/text.shf", "nanogpt/shakespeare.txt"];

/// Checks the loss on the test's part of the text: trained, untrained, and by the frequency of letters.
#[track_caller]
fn loss(output: &str, most: f64) {
    let [trained, untrained, frequencies] = figures(output, "test loss:");
    assert!(trained <= most && untrained > 4.0 && (3.1..3.5).contains(&frequencies), "{output}");
}

/// Leaves a part of the text: a debug build reads slowly.
fn shorten(sandbox: &Sandbox) {
    let text = fs::read(sandbox.path("nanogpt/shakespeare.txt")).expect("a text");
    sandbox.write("nanogpt/shakespeare.txt", &text[..30_000]);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn an_lstm() {
    let Some(sandbox) = sandbox(&LSTM) else { return };
    shorten(&sandbox);
    loss(&run(&sandbox, "lstm/train.shf", &["--jit", "always"], Some("30")), 2.9);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn an_lstm_of_full_size() {
    let Some(sandbox) = sandbox(&LSTM) else { return };
    loss(&run(&sandbox, "lstm/train.shf", &[], None), 1.75);
}

/// The GPT, its modules and its text.
const GPT: [&str; 4] =
    ["nanogpt/train.shf", "nanogpt/model.shf", "nanogpt/text.shf", "nanogpt/shakespeare.txt"];

#[test]
fn a_gpt() {
    let Some(sandbox) = sandbox(&GPT) else { return };
    shorten(&sandbox);
    let model = fs::read_to_string(sandbox.path("nanogpt/model.shf")).expect("a module");
    let smaller = model.replace(":context 64", ":context 16").replace(":width 128", ":width 32");
    sandbox.write("nanogpt/model.shf", smaller.replace(":n-layers 4", ":n-layers 1"));
    let output = run(&sandbox, "nanogpt/train.shf", &["--jit", "always"], Some("60"));
    loss(&output, 3.18);
    assert!(output.contains("\nHAMLET.\n"), "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_gpt_of_full_size() {
    let Some(sandbox) = sandbox(&GPT) else { return };
    loss(&run(&sandbox, "nanogpt/train.shf", &[], None), 2.2);
}

/// Checks the accuracy: grown, without blocks, untrained, and of a constant. The program checks that each growth lowers the
/// loss.
#[track_caller]
fn growth(output: &str, least: f64) {
    let [grown, small, untrained, constant] = figures(output, "test accuracy:");
    assert!(grown >= least && small < 0.65 && untrained < 0.6 && (constant - 0.5).abs() < 1e-9, "{output}");
    let losses: Vec<f64> = (1..=4).map(|n| figures::<2>(output, &format!("{n} blocks"))[0]).collect();
    assert!(losses.is_sorted_by(|a, b| a > b), "{output}");
}

#[test]
fn a_network_that_grows() {
    let Some(sandbox) = sandbox(&["growing/train.shf"]) else { return };
    growth(&run(&sandbox, "growing/train.shf", &["--no-jit"], Some("40")), 0.7);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_network_that_grows_to_full_size() {
    let Some(sandbox) = sandbox(&["growing/train.shf"]) else { return };
    growth(&run(&sandbox, "growing/train.shf", &[], None), 0.88);
}
