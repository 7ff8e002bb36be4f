//! Trivial reductions: over no axes, or over axes of extent 1. Sums of sums.

use std::sync::Arc;

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{
    ReduceAnd, ReduceMax, ReduceMin, ReduceOr, ReduceProd, ReduceSum, Reshape, axes_except,
};
use crate::tensor::{DType, Shape};

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

/// A sum over all axes is the sum of one over the first axes that is there already: the tensor is read once.
pub(super) fn of_sums(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let axes = &op.downcast_ref::<ReduceSum>()?.axes;
    let ty = s.ty(operands[0]);
    // A sum of 16-bit floats is rounded once.
    if axes.len() < 2 || axes.len() != ty.rank() || matches!(ty.dtype, DType::F16 | DType::BF16) {
        return None;
    }
    let partial = (1..axes.len()).find_map(|count| {
        let first = ReduceSum { axes: axes[..count].into() };
        Some(s.recorded.get(&(Arc::new(first) as Op, Vars::from_slice(operands)))?[0])
    })?;
    let rest = (0..s.ty(partial).rank()).collect();
    one(s.record(ReduceSum { axes: rest }, &[partial]))
}
