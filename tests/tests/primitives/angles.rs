//! Sine and cosine keep their digits near their zeros and far from zero.

use sheaf_graph::graph::Builder;
use sheaf_graph::primitives::{Cos, Sin, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_runtime::{Runtime, Target};
use sheaf_toolchain::Compiler;

/// Maximum error relative to the value, and absolute: π has so many digits in what is taken off.
const RELATIVE: f64 = 2.5e-7;
const ABSOLUTE: f64 = 1e-10;

#[test]
fn sine_and_cosine_keep_their_digits() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let device = Runtime::new().expect("a runtime").device(Target::LocalSync).expect("a device");
    let near = |place: f32| [-0.3, -0.01, -1e-3, -1e-5, 0.0, 1e-5, 1e-3, 0.01, 0.3].map(|x| place + x);
    let mut angles: Vec<f32> =
        (-8..9).flat_map(|quarters| near(quarters as f32 * std::f32::consts::FRAC_PI_2)).collect();
    angles.extend([50.0, -77.3, 1000.0, -3000.5]);
    let shape = [angles.len()];
    let mut b = Builder::new();
    let x = b.input(TensorType::new(DType::F32, shape.as_slice()));
    let results = vec![b.apply(Unary(Sin), &[x]), b.apply(Unary(Cos), &[x])];
    let graph = b.finish(results);
    let operands = vec![HostTensor::new(shape.as_slice(), angles.clone())];
    for model in [Model::Kernels(KernelSize::Small), Model::Hal] {
        let calls = std::slice::from_ref(&operands);
        let results = super::execute(&graph, calls, &mut compiler, &device, model).expect("a run");
        for (name, result, exact) in
            [("sin", &results[0][0], f64::sin as fn(f64) -> f64), ("cos", &results[0][1], f64::cos)]
        {
            for (i, angle) in angles.iter().enumerate() {
                let found = result.element_f64(i);
                let wanted = exact(f64::from(*angle));
                // Beyond a few turns what is taken off has rounded too.
                let bound = RELATIVE * wanted.abs() + ABSOLUTE * f64::from(angle.abs()).max(1.0);
                assert!(
                    (found - wanted).abs() <= bound,
                    "{model:?}: {name} {angle} is {found}, not {wanted}"
                );
            }
        }
    }
}
