//! A Gaussian process, Bayesian regression, a Kalman filter, a neural differential equation and a normalising flow: the library's linear algebra,
//! distributions and solvers. Each program asserts its figure beside a trivial one, at any size.

use crate::{figures, run, sandbox};

/// Runs a program at this size, or at its own.
#[track_caller]
fn output_of(program: &str, size: Option<&str>) -> Option<String> {
    let sandbox = sandbox(&[program])?;
    Some(run(&sandbox, program, &[], size))
}

#[test]
fn a_gaussian_process() {
    let Some(output) = output_of("gaussian-process/train.shf", Some("20")) else { return };
    let [trained, untrained, average] = figures(&output, "test error:");
    assert!(trained < 0.3 && untrained > 0.5 && average > 0.6, "{output}");
}

#[test]
fn a_posterior_by_hamiltonian_monte_carlo() {
    let Some(output) = output_of("bayes/regression.shf", Some("100")) else { return };
    let [draws, prior, trivial] = figures(&output, "nats per test point:");
    assert!(draws < 0.8 && prior > 1.0 && trivial > 2.0, "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_kalman_filter() {
    let Some(output) = output_of("kalman/track.shf", Some("100")) else { return };
    let [trained, _untrained, raw, _middle] = figures(&output, "distance from the track:");
    assert!(trained < 0.7 * raw, "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_neural_differential_equation() {
    let Some(output) = output_of("neural-ode/train.shf", Some("60")) else { return };
    let [trained, untrained, still] = figures(&output, "distance from new swings:");
    assert!(trained < 0.7 * still.min(untrained), "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn a_normalising_flow() {
    let Some(output) = output_of("flow/train.shf", Some("150")) else { return };
    let [trained, untrained, normal] = figures(&output, "nats per test point:");
    assert!(trained < 1.7 && untrained > 2.0 && normal > 1.8, "{output}");
    let [error] = figures(&output, "there and back:");
    assert!(error < 1e-5, "{output}");
}

#[test]
#[ignore = "long: make nightly runs it"]
fn all_of_full_size() {
    for program in [
        "gaussian-process/train.shf",
        "bayes/regression.shf",
        "kalman/track.shf",
        "neural-ode/train.shf",
        "flow/train.shf",
    ] {
        let Some(_) = output_of(program, None) else { return };
    }
}
