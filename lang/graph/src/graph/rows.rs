//! Programs whose sums along the last axis gain if the compiler may change their order
//! (`--iree-llvmcpu-reassociate-fp-reductions=true`): each lane of a vector has a chain of its own.

use std::collections::HashSet;

use super::{Equation, Graph, adds_rows};
use crate::primitives::{Binary, Mul, ReduceSum};
use crate::tensor::DType;

/// Lengths of short rows that gain: sums of such take 0.2 to 0.5 of the time, softmax 0.5 to 0.8. One of 16 takes 1.7 times as long.
const SHORT: std::ops::RangeInclusive<usize> = 32..=128;

/// Elements that a short row is a multiple of: others have no whole vectors, and stay as they are.
const VECTOR: usize = 16;

/// Minimum elements of an operand whose short rows count: less is over in microseconds.
const MANY: usize = 1 << 16;

/// True for a program that adds up many long rows, or short ones, unless some of those are squares: such a sum takes 1.4 to 1.6 times as
/// long (`docs/benchmarks.md`).
pub fn gains_by_order(graph: &Graph) -> bool {
    let (mut long, mut short, mut squares) = (false, false, false);
    let mut known = HashSet::new();
    graph.visit(&mut |function, eqn| {
        let of = std::ptr::from_ref(function);
        if eqn.op.is::<Binary<Mul>>() && eqn.inputs[0] == eqn.inputs[1] {
            known.insert((of, eqn.outputs[0]));
        }
        long |= adds_rows(function, eqn);
        if adds_short_rows(function, eqn) {
            let of_squares = known.contains(&(of, eqn.inputs[0]));
            squares |= of_squares;
            short |= !of_squares;
        }
    });
    long || short && !squares
}

fn adds_short_rows(graph: &Graph, eqn: &Equation) -> bool {
    let Some(op) = eqn.op.downcast_ref::<ReduceSum>() else { return false };
    let ty = graph.ty(eqn.inputs[0]);
    let first = ty.rank() - op.axes.len();
    let length: usize = op.axes.iter().map(|axis| ty.shape[*axis]).product();
    ty.dtype == DType::F32
        && op.axes.iter().all(|axis| *axis >= first)
        && SHORT.contains(&length)
        && length.is_multiple_of(VECTOR)
        && ty.count() >= MANY
}
