//! Trivial reductions: over no axes, or over axes of extent 1.

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{
    ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum, Reshape, axes_except,
};
use crate::tensor::Shape;

/// The axes of a reduction.
fn reduced(op: &Op) -> Option<&Shape> {
    None.or_else(|| op.downcast_ref::<ReduceSum>().map(|r| &r.axes))
        .or_else(|| op.downcast_ref::<ReduceMax>().map(|r| &r.axes))
        .or_else(|| op.downcast_ref::<ReduceMin>().map(|r| &r.axes))
        .or_else(|| op.downcast_ref::<ReduceProd>().map(|r| &r.axes))
        .or_else(|| op.downcast_ref::<ReduceAnd>().map(|r| &r.axes))
        .or_else(|| op.downcast_ref::<ReduceOr>().map(|r| &r.axes))
}

/// A reduction of single elements is a reshape; that a sum turns -0 into 0 is ignored.
pub(super) fn single(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let axes = reduced(op)?;
    let shape = &s.ty(operands[0]).shape;
    if axes.iter().any(|axis| shape[*axis] != 1) {
        return None;
    }
    let shape = axes_except(shape.len(), axes).map(|axis| shape[axis]).collect();
    one(s.record(Reshape { shape }, operands))
}
