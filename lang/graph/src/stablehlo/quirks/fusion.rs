//! Uses of reductions that IREE fuses with them wrongly: broadcasts in shaders (Q53), and transpositions (Q53, Q55).

use std::collections::HashSet;

use crate::primitives::Primitive;
use crate::stablehlo::Lowering;

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
