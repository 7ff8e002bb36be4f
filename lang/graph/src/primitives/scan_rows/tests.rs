//! Loops that are taken by rows, and others.

use std::sync::Arc;

use super::plan::Plan;
use crate::graph::{Builder, Var};
use crate::primitives as p;
use crate::primitives::{Binary, DotGeneral, Scan, Unary};
use crate::stablehlo::{Model, emit};
use crate::tensor::{DType, Shape, TensorType};

const BATCH: usize = 32;
const WIDTH: usize = 64;

fn is_by_rows(scan: &Scan) -> bool {
    Plan::of(scan).is_some()
}

fn float(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

fn product(contract: [usize; 2]) -> DotGeneral {
    let contract = contract.map(|axis| Shape::from_slice(&[axis]));
    DotGeneral { contract, ..DotGeneral::default() }
}

/// A loop with weights and a vector, over a state and rows of shape `[BATCH, WIDTH]`; the step's results given these.
fn scan(step: impl FnOnce(&mut Builder, [Var; 4]) -> Vec<Var>) -> Scan {
    let mut b = Builder::new();
    let state = float(&[BATCH, WIDTH]);
    let types = [float(&[WIDTH, WIDTH]), float(&[WIDTH]), state.clone(), state];
    let inputs = types.map(|ty| b.input(ty));
    let outputs = step(&mut b, inputs);
    Scan { body: Arc::new(b.finish(outputs)), length: 5, constants: 2, states: 1, reverse: false }
}

/// A step of a recurrent net, whose next state is changed.
fn recurrent(change: impl FnOnce(&mut Builder, Var, [Var; 4]) -> Var) -> Scan {
    scan(|b, inputs @ [weights, vector, state, row]| {
        let made = b.apply(product([1, 0]), &[state, weights]);
        let bias = b.broadcast_in_dim(vector, &[BATCH, WIDTH], &[1]);
        let sum = b.add(made, bias);
        let sum = b.add(sum, row);
        let next = b.apply(Unary(p::Tanh), &[sum]);
        let next = change(b, next, inputs);
        vec![next, next]
    })
}

#[test]
fn a_recurrent_net_is_taken_by_rows() {
    assert!(is_by_rows(&recurrent(|_, next, _| next)));
}

#[test]
fn pieces_of_rows_stay_in_them() {
    assert!(is_by_rows(&recurrent(|b, next, [weights, _, state, _]| {
        let joined = b.concatenate(&[next, state], 1);
        let piece = b.slice_axis(joined, 1, 5, 5 + WIDTH);
        let parted = b.reshape(piece, &[BATCH, 2, WIDTH / 2]);
        let last = b.slice_axis(parted, 1, 1, 2);
        let last = b.reshape(last, &[BATCH, WIDTH / 2]);
        let twice = b.concatenate(&[last, last], 1);
        b.apply(product([1, 1]), &[twice, weights])
    })));
}

#[test]
fn rows_that_depend_on_each_other_are_not() {
    let sum = recurrent(|b, next, _| {
        let sum = b.sum(next, &[0]);
        b.broadcast_in_dim(sum, &[BATCH, WIDTH], &[1])
    });
    let reversed = recurrent(|b, next, _| b.apply(p::Reverse { axes: Shape::from_slice(&[0]) }, &[next]));
    let moved = recurrent(|b, next, _| {
        let (first, rest) = (b.slice_axis(next, 0, 0, 1), b.slice_axis(next, 0, 1, BATCH));
        b.concatenate(&[rest, first], 0)
    });
    let mixed = recurrent(|b, next, _| b.reshape(next, &[WIDTH, BATCH]));
    let mixed = Scan { states: 0, constants: 3, ..mixed };
    for scan in [sum, reversed, moved, mixed] {
        assert!(!is_by_rows(&scan), "{}", scan.body);
    }
}

#[test]
fn weights_that_change_are_not() {
    assert!(!is_by_rows(&scan(|b, [_, _, state, row]| {
        let square = b.apply(product([0, 0]), &[state, row]);
        let next = b.apply(product([1, 0]), &[state, square]);
        vec![next]
    })));
}

#[test]
fn other_numbers_than_floats_of_32_bits_are_not() {
    assert!(!is_by_rows(&recurrent(|b, next, _| {
        let double = b.convert(next, DType::F64);
        let double = b.apply(Unary(p::Tanh), &[double]);
        b.convert(double, DType::F32)
    })));
}

#[test]
fn little_work_is_not() {
    assert!(!is_by_rows(&scan(|b, [_, _, state, row]| vec![b.add(state, row)])));
}

/// Values that a later phase reads are in memory; those of one phase are in registers.
#[test]
fn products_are_phases() {
    let scan = recurrent(|b, next, [weights, ..]| {
        let made = b.apply(product([1, 0]), &[next, weights]);
        b.apply(Binary(p::Mul), &[made, next])
    });
    let plan = Plan::of(&scan).expect("a loop by rows");
    let phases: Vec<[usize; 2]> =
        plan.phases.iter().map(|phase| [phase.products.len(), phase.stores.len()]).collect();
    // The first product; the hidden value in memory; the second product and both results.
    assert_eq!(phases, [[0, 0], [1, 1], [1, 2]]);
    assert_eq!((plan.groups, plan.rows), (4, 8));
}

#[test]
fn a_loop_by_rows_is_one_kernel_of_as_many_workgroups_as_fill_its_tiles() {
    let scan = recurrent(|_, next, _| next);
    let mut b = Builder::new();
    let shapes: [&[usize]; 4] = [&[WIDTH, WIDTH], &[WIDTH], &[BATCH, WIDTH], &[5, BATCH, WIDTH]];
    let inputs = shapes.map(|shape| b.input(float(shape)));
    let results = b.apply_all(scan, &inputs).to_vec();
    let graph = b.finish(results);
    assert_eq!(graph.work_at_once().operations, graph.cost());
    for model in [Model::Hal, Model::Blocks] {
        let module = emit(&graph, model);
        assert!(!module.features.may_be_rejected());
        assert!(module.text.contains("flow.dispatch.workgroups"), "{}", module.text);
    }
    assert!(!emit(&graph, Model::Cuda).text.contains("flow.dispatch.workgroups"));
}
