//! An LSTM, and a network that grows.

use std::fs;

use crate::{figures, run, sandbox};

/// The LSTM and the modules and the text that it reads.
const LSTM: [&str; 4] =
    ["lstm/train.shf", "nanogpt/model.shf", "nanogpt/text.shf", "nanogpt/shakespeare.txt"];

/// Checks the loss on the test's part of the text: trained, untrained, and by the frequency of letters.
#[track_caller]
fn loss(output: &str, most: f64) {
    let [trained, untrained, frequencies] = figures(output, "test loss:");
    assert!(trained <= most && untrained > 4.0 && (3.2..3.5).contains(&frequencies), "{output}");
}

#[test]
fn an_lstm() {
    let Some(sandbox) = sandbox(&LSTM) else { return };
    // A debug build reads slowly.
    let text = fs::read(sandbox.path("nanogpt/shakespeare.txt")).expect("a text");
    sandbox.write("nanogpt/shakespeare.txt", &text[..60_000]);
    loss(&run(&sandbox, "lstm/train.shf", &[], Some("40")), 2.9);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn an_lstm_of_full_size() {
    let Some(sandbox) = sandbox(&LSTM) else { return };
    loss(&run(&sandbox, "lstm/train.shf", &[], None), 1.75);
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
