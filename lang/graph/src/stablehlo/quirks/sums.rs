//! Reductions.

use std::collections::HashSet;

use crate::graph::{DefUse, Var};
use crate::primitives::Primitive;
use crate::stablehlo::Lowering;
use crate::tensor::TensorType;

/// True if a reduction is written as a reshape, since all axes are of extent 1 (Q22): IREE fails on such reductions inside larger
/// programs for CUDA.
pub fn reduces_nothing(ty: &TensorType, axes: &[usize]) -> bool {
    axes.iter().all(|a| ty.shape[*a] == 1)
}

/// True if a reduction of operand 0 over several axes is written as one over the last axis, then one over the others (Q21): the
/// operand is a product, and a factor of it repeats a tensor somewhere. IREE takes the sum of such a product over several axes
/// for a contraction of two tensors, and fails ("invalid accumulator/result vector shape").
pub fn reduces_by_axis(to: &Lowering<'_>, axes: &[usize]) -> bool {
    let shape = &to.operand_type(0).shape;
    let is_repeated = |v: &Var| repeats(to.recorded, *v);
    axes.iter().filter(|axis| shape[**axis] != 1).count() > 1
        && to
            .recorded
            .definition(to.sources[0])
            .is_some_and(|eqn| eqn.op.name() == "mul" && eqn.inputs.iter().any(is_repeated))
}

/// True if a sum of operand 0 is written as the negative of the sum of its negative, for CUDA (Q52): the operand is a negative, perhaps
/// in another layout, and IREE takes a sum of negatives for differences, which it cannot share among threads.
pub fn sums_negatives(to: &Lowering<'_>, operation: &str) -> bool {
    operation == "stablehlo.add" && to.is_for_cuda() && is_negative(to.recorded, to.sources[0])
}

fn is_negative(graph: &DefUse<'_>, var: Var) -> bool {
    graph.definition(var).is_some_and(|eqn| match eqn.op.name() {
        "neg" => true,
        // A sum of negatives is a negative as it is written.
        "reshape" | "transpose" | "reduce_sum" => is_negative(graph, eqn.inputs[0]),
        _ => false,
    })
}

/// The name of operand 0 for a broadcast whose operand has these axes of the result. In shaders it is in memory if it comes of a reduction or
/// product and its elements do not lie along the first axes (Q53): IREE computes both in one kernel, whose workgroups each have a part
/// of the reduction and read other parts.
pub fn apart_from_reduction(to: &mut Lowering<'_>, axes: &[usize]) -> String {
    let (from, into) = (to.operand_type(0).clone(), to.result_type(0).shape.clone());
    let long = |shape: &[usize], axis: usize| shape[axis] != 1;
    let along = axes.iter().enumerate().filter(|(i, _)| long(&from.shape, *i)).map(|(_, axis)| *axis);
    let first = (0..into.len()).filter(|axis| long(&into, *axis));
    let is_of = |op: &dyn Primitive| op.name() == "dot_general" || is_reduction(op);
    if along.zip(first).all(|(a, b)| a == b) || !to.is_for_shaders() || !comes_of(to, is_of) {
        return to.operand(0);
    }
    to.value("stablehlo.optimization_barrier", &[&to.operand(0)], &from)
}

/// The name of operand 0 for a transposition. It is in memory if it comes of a reduction, in shaders for the same reason, and on
/// processors if it comes of positions of extremes: IREE fuses the transposition with the reduction of pairs, and loses one of its two
/// results (Q55).
pub fn apart_for_transpose(to: &mut Lowering<'_>) -> String {
    let ty = to.operand_type(0).clone();
    let is_apart = if to.is_for_shaders() {
        comes_of(to, is_reduction)
    } else {
        to.is_for_processor() && !to.in_kernel() && comes_of(to, |op| op.name() == "arg_reduce")
    };
    if !is_apart {
        return to.operand(0);
    }
    to.value("stablehlo.optimization_barrier", &[&to.operand(0)], &ty)
}

fn is_reduction(op: &dyn Primitive) -> bool {
    op.name().starts_with("reduce_") || op.name() == "arg_reduce"
}

/// True if operand 0 is made of a result of one of these operations, by element-wise operations and in other layouts.
fn comes_of(to: &Lowering<'_>, is_of: impl Fn(&dyn Primitive) -> bool) -> bool {
    let (mut open, mut seen) = (vec![to.sources[0]], HashSet::new());
    while let Some(var) = open.pop() {
        let Some(eqn) = to.recorded.definition(var).filter(|_| seen.insert(var)) else { continue };
        if is_of(&*eqn.op) {
            return true;
        }
        if eqn.op.is_elementwise() || matches!(eqn.op.name(), "reshape" | "transpose" | "broadcast_in_dim") {
            open.extend(&eqn.inputs);
        }
    }
    false
}

/// True if a variable is a broadcast tensor, perhaps in another layout.
fn repeats(graph: &DefUse<'_>, var: Var) -> bool {
    graph.definition(var).is_some_and(|eqn| match eqn.op.name() {
        "broadcast_in_dim" => true,
        "reshape" | "transpose" => repeats(graph, eqn.inputs[0]),
        _ => false,
    })
}
