//! Tests of the transformations on whole graphs; `tests/registry.rs` checks the rules of each primitive.

use super::{jvp, value_and_grad, vjp, vmap};
use crate::graph::{Builder, Graph, Var, evaluate};
use crate::primitives::{Compare, Direction, StopGradient, Tanh, Unary};
use crate::tensor::{DType, HostTensor, TensorType};
use sheaf_syntax::{SourceId, Span};

fn float(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn numbers(shape: &[usize], elements: &[f32]) -> HostTensor {
    HostTensor::new(shape, elements.to_vec())
}

fn names(graph: &Graph) -> Vec<&str> {
    graph.equations.iter().map(|eqn| eqn.op.name()).collect()
}

/// `f(x, y) = x y + x`, with `x` as a second result.
fn branching() -> Graph {
    let mut b = Builder::new();
    let (x, y) = (b.input(float(&[])), b.input(float(&[])));
    let product = b.mul(x, y);
    let sum = b.add(product, x);
    b.finish(vec![sum, x])
}

#[test]
fn cotangents_add_up_where_paths_meet() {
    let graph = value_and_grad(&branching(), 0, &[0, 1]);
    let results = evaluate(&graph, &[HostTensor::scalar(3.0_f32), HostTensor::scalar(5.0_f32)]);
    let expected = [18.0_f32, 3.0, 6.0, 3.0].map(HostTensor::scalar);
    assert_eq!(results, expected, "{graph}");
}

#[test]
fn one_barrier_holds_value_and_gradients() {
    let graph = value_and_grad(&branching(), 0, &[0, 1]);
    let barriers: Vec<_> = graph.equations.iter().filter(|e| e.op.name() == "optimization_barrier").collect();
    assert_eq!(barriers.len(), 1);
    assert_eq!(barriers[0].outputs.as_slice(), [graph.outputs[0], graph.outputs[2], graph.outputs[3]]);
}

#[test]
fn what_does_not_flow_is_zeros_of_the_parameter_type() {
    let mut b = Builder::new();
    let x = b.input(float(&[2]));
    let _unused = b.input(float(&[3]));
    let integer = b.input(TensorType::new(DType::I32, [2].as_slice()));
    let _weak = b.input(TensorType::weak(DType::F32));
    let as_float = b.convert(integer, DType::F32);
    let product = b.mul(x, as_float);
    let stopped = b.apply(StopGradient, &[product]);
    let both = b.add(product, stopped);
    let sum = b.sum(both, &[0]);
    let graph = value_and_grad(&b.finish(vec![sum]), 0, &[0, 1, 2, 3]);
    let inputs = [
        numbers(&[2], &[1.0, 2.0]),
        numbers(&[3], &[0.0; 3]),
        HostTensor::new([2].as_slice(), vec![3_i32, 4]),
        HostTensor::scalar(0.0_f32),
    ];
    let results = evaluate(&graph, &inputs);
    assert_eq!(results[0], HostTensor::scalar(22.0_f32));
    assert_eq!(results[1], numbers(&[2], &[3.0, 4.0]));
    assert_eq!(results[2], numbers(&[3], &[0.0; 3]));
    assert_eq!(results[3], HostTensor::new([2].as_slice(), vec![0_i32, 0]));
    assert_eq!(results[4], HostTensor::scalar(0.0_f32));
}

#[test]
fn only_what_lies_between_is_walked() {
    let mut b = Builder::new();
    let (x, y) = (b.input(float(&[])), b.input(float(&[])));
    // Neither the branch that only `y` reaches nor the dead one needs a derivative.
    let constant = b.apply(Unary(Tanh), &[y]);
    let product = b.mul(x, constant);
    let aside = b.div(x, y);
    let graph = b.finish(vec![product, aside]);
    let expected = ["tanh", "mul", "div", "constant", "mul", "optimization_barrier"];
    assert_eq!(names(&value_and_grad(&graph, 0, &[0])), expected);
}

#[test]
fn vjp_takes_a_cotangent_for_each_float_result() {
    let mut b = Builder::new();
    let x = b.input(float(&[2]));
    let zero = b.full_like(x, 0.0);
    let positive = b.apply(Compare { direction: Direction::Gt }, &[x, zero]);
    let kept = b.select(positive, x, zero);
    let double = b.add(x, x);
    let graph = vjp(&b.finish(vec![kept, positive, double]), &[0]);
    let x = numbers(&[2], &[-1.0, 1.0]);
    let results = evaluate(&graph, &[x, numbers(&[2], &[10.0, 20.0]), numbers(&[2], &[1.0, 2.0])]);
    assert_eq!(results[3], numbers(&[2], &[2.0, 24.0]));
}

#[test]
fn jvp_gives_tangents_and_zeros() {
    let mut b = Builder::new();
    let (x, y) = (b.input(float(&[])), b.input(float(&[])));
    let square = b.mul(x, x);
    let whole = b.convert(square, DType::I32);
    let graph = jvp(&b.finish(vec![square, whole, y]), &[0]);
    let results = evaluate(&graph, &[3.0_f32, 5.0, 1.0].map(HostTensor::scalar));
    let expected = [
        HostTensor::scalar(9.0_f32),
        HostTensor::scalar(9_i32),
        HostTensor::scalar(5.0_f32),
        HostTensor::scalar(6.0_f32),
        HostTensor::scalar(0_i32),
        HostTensor::scalar(0.0_f32),
    ];
    assert_eq!(results, expected);
}

#[test]
fn vmap_puts_the_batch_in_front() {
    let mut b = Builder::new();
    let (x, y) = (b.input(float(&[2])), b.input(float(&[2])));
    let sum = b.add(x, y);
    let graph = vmap(&b.finish(vec![sum, y, x]), &[Some(1), None], 3);
    let x = numbers(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let results = evaluate(&graph, &[x, numbers(&[2], &[10.0, 20.0])]);
    assert_eq!(results[0], numbers(&[3, 2], &[11.0, 24.0, 12.0, 25.0, 13.0, 26.0]));
    assert_eq!(results[1], numbers(&[3, 2], &[10.0, 20.0, 10.0, 20.0, 10.0, 20.0]));
    assert_eq!(results[2], numbers(&[3, 2], &[1.0, 4.0, 2.0, 5.0, 3.0, 6.0]));
}

/// A batch of vectors times one matrix is one product, and its gradient contracts the batch.
#[test]
fn a_shared_matrix_is_not_repeated() {
    let mut b = Builder::new();
    let (x, w) = (b.input(float(&[4])), b.input(float(&[4, 2])));
    let y = b.apply(
        crate::primitives::DotGeneral {
            contract: [[0].as_slice().into(), [0].as_slice().into()],
            ..Default::default()
        },
        &[x, w],
    );
    let graph = vmap(&b.finish(vec![y]), &[Some(0), None], 5);
    assert_eq!(names(&graph), ["dot_general"]);
}

#[test]
fn spans_follow_the_original_equations() {
    let mut b = Builder::new();
    let x = b.input(float(&[]));
    let span = Span { source: SourceId::new(0), start: 3, end: 7 };
    b.span = Some(span);
    let y = b.apply(Unary(Tanh), &[x]);
    b.span = None;
    let graph = b.finish(vec![y]);
    for transformed in [vjp(&graph, &[0]), jvp(&graph, &[0]), vmap(&graph, &[Some(0)], 2)] {
        let spans: Vec<_> = transformed.equations.iter().map(|e| e.span).collect();
        assert!(spans.iter().all(|s| *s == Some(span)), "{spans:?}\n{transformed}");
    }
}

#[test]
fn long_graphs_need_no_stack() {
    const LENGTH: usize = 100_000;
    let mut b = Builder::new();
    let x = b.input(float(&[]));
    let mut y: Var = x;
    for _ in 0..LENGTH {
        y = b.add(y, x);
    }
    let graph = b.finish(vec![y]);
    let one = HostTensor::scalar(1.0_f32);
    let results = evaluate(&value_and_grad(&graph, 0, &[0]), std::slice::from_ref(&one));
    assert_eq!(results[1], HostTensor::scalar(LENGTH as f32 + 1.0));
    let results = evaluate(&jvp(&graph, &[0]), &[one.clone(), one]);
    assert_eq!(results[1], HostTensor::scalar(LENGTH as f32 + 1.0));
    let results = evaluate(&vmap(&graph, &[Some(0)], 2), &[numbers(&[2], &[1.0, 2.0])]);
    assert_eq!(results[0], numbers(&[2], &[LENGTH as f32 + 1.0, 2.0 * LENGTH as f32 + 2.0]));
}
