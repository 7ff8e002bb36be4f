//! Whole programs, interpreted.

mod support;

use support::run;

/// The figures of JAX 0.10.2 for the same seed, weights and data.
#[test]
fn xor_losses_are_those_of_jax() {
    let program = include_str!("../../examples/xor/train.shf");
    let out = run(program);
    for (epoch, loss) in [(100, 0.022934), (200, 0.007262), (300, 0.004058), (400, 0.002744), (500, 0.002041)]
    {
        let line =
            out.lines().find(|l| l.starts_with(&format!("epoch {epoch:3}"))).expect("a line for the epoch");
        let found: f64 = line.rsplit(' ').next().expect("a loss").parse().expect("a number");
        assert!((found - loss).abs() < 0.5e-3 * loss, "epoch {epoch}: {found}, JAX has {loss}");
    }
}
