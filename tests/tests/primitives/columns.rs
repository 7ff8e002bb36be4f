//! Reductions down the columns of large tensors, compiled, against `f64` on the host: with element-wise operations before and behind them,
//! tensors that are broadcast along rows and columns, and extents that no vector or tile divides.

use sheaf_graph::graph::{Builder, Graph, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{
    Binary, Direction, Div, Exp, ReduceAnd, ReduceMax, ReduceMin, ReduceOr, Select, Tanh, Unary,
};
use sheaf_graph::stablehlo::Model;
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType, element_count};
use sheaf_runtime::{Runtime, Target, Workers};
use sheaf_toolchain::Compiler;

/// Maximum difference of a number and of the same in `f64`, relative to its magnitude where that is above 1.
const BOUND: f64 = 2e-6;

/// Shapes, and the axes that are reduced.
const SHAPES: &[(&[usize], &[usize])] = &[
    (&[301, 401], &[0]),
    (&[40_000, 17], &[0]),
    (&[10_007, 33], &[0]),
    (&[9, 200, 70], &[1]),
    (&[4, 25, 7, 300], &[1, 2]),
];

/// Numbers of 0 to 1.
fn numbers(random: &mut Random, shape: &[usize]) -> HostTensor {
    HostTensor::new(
        shape,
        (0..element_count(shape)).map(|_| random.uniform(0.0, 1.0) as f32).collect::<Vec<_>>(),
    )
}

/// The mean of exponentials of differences from each column's maximum, as in a softmax, which is divided by their sum as well; then
/// squares weighted by row and by column, signs by comparison, and truth values.
fn graph(shape: &[usize], axes: &[usize], dtype: DType) -> Graph {
    let mut b = Builder::new();
    let x = b.input(TensorType::new(dtype, shape));
    let last = shape.len() - 1;
    let [first_axis, last_axis] = [axes[0], last];
    let by_column = b.input(TensorType::new(dtype, [shape[last_axis]].as_slice()));
    let by_row = b.input(TensorType::new(dtype, [shape[first_axis]].as_slice()));
    let [columns, rows] =
        [(by_column, last_axis), (by_row, first_axis)].map(|(v, axis)| b.broadcast_in_dim(v, shape, &[axis]));
    let reduced = Shape::from_slice(axes);
    let kept: Vec<usize> = (0..shape.len()).filter(|axis| !axes.contains(axis)).collect();

    let most = b.apply(ReduceMax { axes: reduced.clone() }, &[x]);
    let most_again = b.broadcast_in_dim(most, shape, &kept);
    let below = b.sub(x, most_again);
    let exponentials = b.apply(Unary(Exp), &[below]);
    let sum = b.sum(exponentials, axes);
    let sum_again = b.broadcast_in_dim(sum, shape, &kept);
    let softmax = b.apply(Binary(Div), &[exponentials, sum_again]);

    let squares = b.mul(x, x);
    let weighted = b.mul(squares, rows);
    let weighted = b.mul(weighted, columns);
    let weighted = b.sum(weighted, axes);
    let weighted = b.apply(Unary(Tanh), &[weighted]);

    let half = b.full_like(x, 0.5);
    let is_high = b.compare(Direction::Gt, x, half);
    let chosen = b.apply(Select, &[is_high, x, columns]);
    let least = b.apply(ReduceMin { axes: reduced.clone() }, &[chosen]);
    let count = b.convert(is_high, dtype);
    let count = b.sum(count, axes);
    let near = b.full_like(x, 0.999);
    let is_near = b.compare(Direction::Gt, x, near);
    let any = b.apply(ReduceOr { axes: reduced.clone() }, &[is_near]);
    let tiny = b.full_like(x, 0.001);
    let is_above = b.compare(Direction::Gt, x, tiny);
    let all = b.apply(ReduceAnd { axes: reduced }, &[is_above]);
    b.finish(vec![most, sum, softmax, weighted, least, count, any, all])
}

#[test]
fn columns_are_reduced_as_on_the_host() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    let device = runtime.device(Target::LocalTask(Workers::Cores)).expect("a device");
    let mut random = Random(11);
    for (shape, axes) in SHAPES {
        let operands: Vec<HostTensor> = [shape, &[shape[shape.len() - 1]][..], &[shape[axes[0]]]]
            .map(|shape| numbers(&mut random, shape))
            .into();
        let program = graph(shape, axes, DType::F32);
        let results =
            super::execute(&program, std::slice::from_ref(&operands), &mut compiler, &device, Model::Hal)
                .expect("a run");
        let doubles: Vec<HostTensor> = operands
            .iter()
            .map(|x| HostTensor::new(x.shape(), (0..x.count()).map(|i| x.element_f64(i)).collect::<Vec<_>>()))
            .collect();
        let exact = evaluate(&graph(shape, axes, DType::F64), &doubles);
        for (n, (result, exact)) in results[0].iter().zip(exact).enumerate() {
            assert_eq!(result.shape(), exact.shape(), "result {n} of {shape:?}");
            for i in 0..exact.count() {
                let (got, right) = (result.element_f64(i), exact.element_f64(i));
                let bound = BOUND * right.abs().max(1.0);
                assert!((got - right).abs() <= bound, "result {n} of {shape:?}, {i}: {got} for {right}");
            }
        }
    }
}
