//! Reductions.

use crate::graph::{DefUse, Var};
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

/// True if a variable is a broadcast tensor, perhaps in another layout.
fn repeats(graph: &DefUse<'_>, var: Var) -> bool {
    graph.definition(var).is_some_and(|eqn| match eqn.op.name() {
        "broadcast_in_dim" => true,
        "reshape" | "transpose" => repeats(graph, eqn.inputs[0]),
        _ => false,
    })
}
