//! 16-bit floats are rounded after each operation in compiled programs too, even in fused kernels.

use sheaf_graph::graph::{Builder, Graph, Var, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{Sqrt, Unary};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_runtime::{Runtime, Target};
use sheaf_toolchain::Compiler;

/// Operations of a chain.
const LENGTH: usize = 24;

/// A chain of operations that are correctly rounded by IEEE 754, and so on every processor; with conversions.
fn chain(b: &mut Builder, dtype: DType, random: &mut Random, x: &[Var]) -> Var {
    let mut values: Vec<Var> = x.iter().map(|x| b.convert(*x, dtype)).collect();
    for _ in 0..LENGTH {
        let mut pick = || values[values.len() - 1 - random.below(values.len().min(4) as u64) as usize];
        let (x, y) = (pick(), pick());
        let shape = b.shape(x);
        let next = match random.below(9) {
            0 | 1 => b.add(x, y),
            2 => b.sub(x, y),
            3 | 4 => b.mul(x, y),
            5 => {
                // Away from zero, so that results stay finite.
                let size = b.abs(y);
                let one = b.full_like(size, 1.0);
                let divisor = b.add(size, one);
                b.div(x, divisor)
            }
            6 => {
                let size = b.abs(x);
                b.apply(Unary(Sqrt), &[size])
            }
            7 => {
                let single = b.convert(x, DType::F32);
                let scaled = b.scale(single, 0.3);
                b.convert(scaled, dtype)
            }
            _ => {
                let sum = b.sum(x, &[0]);
                b.broadcast_in_dim(sum, &shape, &[])
            }
        };
        // Repeated sums and squares overflow f16.
        let small = b.scale(next, 0.37);
        values.push(small);
    }
    let last = values[values.len() - 1];
    b.convert(last, DType::F32)
}

fn chains(dtype: DType) -> Graph {
    let mut random = Random(5);
    let mut b = Builder::new();
    let ty = TensorType::new(DType::F32, [5].as_slice());
    let x: Vec<Var> = (0..2).map(|_| b.input(ty.clone())).collect();
    let chains = if sheaf_tests::nightly() { 12 } else { 3 };
    let results = (0..chains).map(|_| chain(&mut b, dtype, &mut random, &x)).collect();
    b.finish(results)
}

#[test]
fn chains_are_rounded_as_on_the_host() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    let mut random = Random(6);
    let mut draw = || {
        let numbers: Vec<f32> = (0..5).map(|_| random.uniform(-3.0, 3.0) as f32).collect();
        HostTensor::new([5].as_slice(), numbers)
    };
    let calls: Vec<Vec<HostTensor>> = (0..20).map(|_| vec![draw(), draw()]).collect();
    for dtype in [DType::BF16, DType::F16] {
        let graph = chains(dtype);
        for model in [Model::Kernels(KernelSize::Small), Model::Hal] {
            let device = runtime.device(Target::LocalSync).expect("a device");
            let results = super::execute(&graph, &calls, &mut compiler, &device, model).expect("a run");
            for (call, results) in calls.iter().zip(results) {
                assert_eq!(evaluate(&graph, call), results, "{dtype} {model:?} of {call:?}");
            }
        }
    }
}

/// Subnormal numbers, overflow to infinity, and NaN; integers, which convert through `f32`.
#[test]
fn conversions_round_at_the_ends() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let device = Runtime::new().expect("a runtime").device(Target::LocalSync).expect("a device");
    let singles: Vec<f32> = vec![
        1e-40,
        -3.4e-39,
        1e-38,
        6e-8,
        2e-8,
        65_519.0,
        65_520.0,
        3.39e38,
        3.4e38,
        f32::INFINITY,
        1.003_906_2,
        0.1,
    ];
    let integers: Vec<i32> =
        vec![257, 258, 259, -1_000_001, 65_535, i32::MAX, i32::MIN, 2049, 2050, 2051, 1, 0];
    let shape = [singles.len()];
    let mut b = Builder::new();
    let x = b.input(TensorType::new(DType::F32, shape.as_slice()));
    let i = b.input(TensorType::new(DType::I32, shape.as_slice()));
    let mut results = Vec::new();
    for dtype in [DType::BF16, DType::F16] {
        for from in [x, i] {
            let narrow = b.convert(from, dtype);
            results.push(b.convert(narrow, DType::F32));
        }
    }
    let graph = b.finish(results);
    let operands =
        vec![HostTensor::new(shape.as_slice(), singles), HostTensor::new(shape.as_slice(), integers)];
    let compiled =
        super::execute(&graph, std::slice::from_ref(&operands), &mut compiler, &device, Model::Hal)
            .expect("a run");
    assert_eq!(compiled[0], evaluate(&graph, &operands));
}
