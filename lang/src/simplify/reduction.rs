//! Reductions of nothing: over no axes, or over axes of extent 1.

use super::{Simplifier, downcast, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{
    ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum, Reshape, axes_except,
};
use crate::tensor::Shape;

/// The axes of a reduction.
fn reduced(op: &Op) -> Option<&Shape> {
    None.or_else(|| downcast::<ReduceSum>(op).map(|r| &r.axes))
        .or_else(|| downcast::<ReduceMax>(op).map(|r| &r.axes))
        .or_else(|| downcast::<ReduceMin>(op).map(|r| &r.axes))
        .or_else(|| downcast::<ReduceProd>(op).map(|r| &r.axes))
        .or_else(|| downcast::<ReduceAnd>(op).map(|r| &r.axes))
        .or_else(|| downcast::<ReduceOr>(op).map(|r| &r.axes))
}

/// Each element reduced with no other stays as it is; that a sum from 0 makes 0 of -0 is left out.
pub(super) fn single(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let axes = reduced(op)?;
    let shape = &s.ty(operands[0]).shape;
    if axes.iter().any(|axis| shape[*axis] != 1) {
        return None;
    }
    let shape = axes_except(shape.len(), axes).map(|axis| shape[axis]).collect();
    one(s.record(Reshape { shape }, operands))
}
