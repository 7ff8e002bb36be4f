//! Long sums are as exact compiled as on the host: within 2e-6 of the sum of magnitudes.

use sheaf_graph::graph::{Builder, Graph, Var, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{Cumsum, DotGeneral};
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, HostTensor, TensorType, element_count};
use sheaf_runtime::{Device, Runtime, Target};
use sheaf_toolchain::Compiler;

const BOUND: f64 = 2e-6;

/// A tensor and its reduction.
struct Case {
    shape: &'static [usize],
    sum: fn(&mut Builder, Var) -> Var,
}

/// Sums of a tensor, of squares and of products, over axes of all kinds; cumulative sums and contractions.
const CASES: &[Case] = &[
    Case { shape: &[1_000_000], sum: |b, x| b.sum(x, &[0]) },
    Case { shape: &[1_000_003], sum: |b, x| b.sum(x, &[0]) },
    Case { shape: &[3, 50_257], sum: |b, x| b.sum(x, &[1]) },
    Case { shape: &[60_000, 10], sum: |b, x| b.sum(x, &[0]) },
    Case { shape: &[1009, 37], sum: |b, x| b.sum(x, &[0, 1]) },
    Case { shape: &[8, 130, 5, 150], sum: |b, x| b.sum(x, &[1, 3]) },
    Case { shape: &[2, 2, 2, 2, 2, 2, 2, 3, 2], sum: |b, x| b.sum(x, &[0, 1, 2, 3, 4, 6, 7, 8]) },
    Case { shape: &[100_000], sum: squares },
    Case { shape: &[7, 1000], sum: squares },
    Case { shape: &[65_536], sum: |b, x| b.apply(dot(0, 0), &[x, x]) },
    Case { shape: &[3, 10_007], sum: |b, x| b.apply(dot(1, 1), &[x, x]) },
    Case { shape: &[20_000, 8], sum: |b, x| b.apply(dot(0, 0), &[x, x]) },
    Case { shape: &[30_000], sum: |b, x| b.apply(Cumsum { axis: 0, reverse: false }, &[x]) },
];

fn squares(b: &mut Builder, x: Var) -> Var {
    let squares = b.mul(x, x);
    let last = b.ty(x).rank() - 1;
    b.sum(squares, &[last])
}

fn dot(left: usize, right: usize) -> DotGeneral {
    DotGeneral { contract: [[left].as_slice().into(), [right].as_slice().into()], ..DotGeneral::default() }
}

fn graph(cases: &[Case], dtype: DType) -> Graph {
    let mut b = Builder::new();
    let inputs: Vec<Var> = cases.iter().map(|case| b.input(TensorType::new(dtype, case.shape))).collect();
    let results = cases.iter().zip(inputs).map(|(case, x)| (case.sum)(&mut b, x)).collect();
    b.finish(results)
}

/// Equal numbers, whose roundings do not cancel, or numbers of 0 to 1.
fn numbers(shape: &[usize], alike: bool) -> HostTensor {
    let mut random = Random(7);
    let one = |random: &mut Random| if alike { 0.1 } else { random.uniform(0.0, 1.0) as f32 };
    HostTensor::new(shape, (0..element_count(shape)).map(|_| one(&mut random)).collect::<Vec<f32>>())
}

/// Runs the cases as one program, and compares with sums in `f64`.
fn check(cases: &[Case], compiler: &mut Compiler, device: &Device) {
    let program = graph(cases, DType::F32);
    let exact = graph(cases, DType::F64);
    for alike in [true, false] {
        let operands: Vec<HostTensor> = cases.iter().map(|case| numbers(case.shape, alike)).collect();
        let results = super::execute(&program, std::slice::from_ref(&operands), compiler, device, Model::Hal)
            .expect("a run");
        let doubles: Vec<HostTensor> = operands
            .iter()
            .map(|x| HostTensor::new(x.shape(), (0..x.count()).map(|i| x.element_f64(i)).collect::<Vec<_>>()))
            .collect();
        for ((case, result), exact) in cases.iter().zip(&results[0]).zip(evaluate(&exact, &doubles)) {
            for i in 0..exact.count() {
                let (got, right) = (result.element_f64(i), exact.element_f64(i));
                let (shape, target) = (case.shape, device.target());
                assert!((got - right).abs() <= BOUND * right, "{target:?} {shape:?} {i}: {got} for {right}");
            }
        }
    }
}

#[test]
fn long_sums_are_exact_to_a_few_roundings() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    check(CASES, &mut compiler, &runtime.device(Target::LocalSync).expect("a device"));
    let largest = [Case { shape: &[1 << 24], sum: |b, x| b.sum(x, &[0]) }];
    check(&largest, &mut compiler, &runtime.device(Target::LocalSync).expect("a device"));
}
