//! Models of handwritten digits.

use sheaf_tests::Sandbox;

use crate::{figures, run, sandbox};

/// A sandbox with the data and a program.
fn with_data(program: &str) -> Option<Sandbox> {
    sandbox(&["digits/digits.csv", "digits/data.shf", program])
}

/// Compiles all that can be, however short the training.
const ALWAYS: [&str; 2] = ["--jit", "always"];

/// Accuracy in the last line, checked against its baselines: untrained, and always the most frequent.
#[track_caller]
fn accuracy(output: &str, label: &str, least: f64) {
    let [trained, untrained, trivial] = figures(output, label);
    assert!(trained >= least && untrained < 0.6 && trivial < 0.6, "{output}");
}

#[test]
fn a_convolutional_network() {
    let Some(sandbox) = with_data("digits/cnn.shf") else { return };
    accuracy(&run(&sandbox, "digits/cnn.shf", &ALWAYS, Some("2")), "test accuracy:", 0.9);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_convolutional_network_of_full_size() {
    let Some(sandbox) = with_data("digits/cnn.shf") else { return };
    accuracy(&run(&sandbox, "digits/cnn.shf", &[], None), "test accuracy:", 0.975);
}

/// Checks the cost of an image in nats: trained, untrained, and with the average image as the model.
#[track_caller]
fn nats(output: &str, most: f64) {
    let [trained, untrained, average] = figures(output, "nats per image:");
    assert!(trained <= most && untrained > 200.0 && (58.0..60.0).contains(&average), "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_variational_autoencoder() {
    let Some(sandbox) = with_data("digits/vae.shf") else { return };
    nats(&run(&sandbox, "digits/vae.shf", &ALWAYS, Some("5")), 40.0);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_variational_autoencoder_of_full_size() {
    let Some(sandbox) = with_data("digits/vae.shf") else { return };
    nats(&run(&sandbox, "digits/vae.shf", &[], None), 26.0);
}

/// Checks the distances to test images: of new images, of those of an untrained network, of pixels drawn one by one, and of
/// training images.
#[track_caller]
fn distance(output: &str, most: f64) {
    let [trained, untrained, pixels, training] = figures(output, "distance to test images:");
    assert!(trained <= most && untrained > 1.0 && pixels > 0.1 && training < 0.05, "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_diffusion_model() {
    let Some(sandbox) = with_data("digits/diffusion.shf") else { return };
    distance(&run(&sandbox, "digits/diffusion.shf", &[], Some("40")), 0.13);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_diffusion_model_of_full_size() {
    let Some(sandbox) = with_data("digits/diffusion.shf") else { return };
    distance(&run(&sandbox, "digits/diffusion.shf", &[], None), 0.07);
}

#[test]
#[ignore = "long: make nightly runs it"]
fn questions_about_scenes() {
    let Some(sandbox) = with_data("digits/query.shf") else { return };
    let output = run(&sandbox, "digits/query.shf", &ALWAYS, Some("100"));
    accuracy(&output, "right answers:", 0.85);
    let [known, untrained] = figures(&output, "digits known without a label:");
    assert!(known > 0.85 && untrained < 0.3, "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn questions_about_scenes_of_full_size() {
    let Some(sandbox) = with_data("digits/query.shf") else { return };
    let output = run(&sandbox, "digits/query.shf", &[], None);
    accuracy(&output, "right answers:", 0.96);
    let [known, untrained] = figures(&output, "digits known without a label:");
    assert!(known > 0.96 && untrained < 0.3, "{output}");
}
