//! Slices, concatenations, pads and reverses.

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{Concatenate, Cumsum, DynamicSlice, DynamicUpdateSlice, Pad, Reverse, Slice, Split};
use crate::tensor::Shape;

/// Identities: a slice of the whole tensor, a concatenation of one, a pad of zero width, a reverse of an axis of extent
/// 1.
pub(super) fn whole(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let x = *operands.first()?;
    let shape = &s.ty(x).shape;
    let flat = |axis: &usize| shape[*axis] == 1;
    if op.is::<DynamicUpdateSlice>() && s.ty(operands[1]).shape == *shape {
        return one(operands[1]);
    }
    let same =
        op.downcast_ref::<Slice>().is_some_and(|to| to.limit == *shape && to.start.iter().all(|n| *n == 0))
            || op.downcast_ref::<DynamicSlice>().is_some_and(|to| to.sizes == *shape)
            || op.downcast_ref::<Pad>().is_some_and(|to| to.low.iter().chain(&to.high).all(|n| *n == 0))
            || op.downcast_ref::<Concatenate>().is_some_and(|_| operands.len() == 1)
            || op.downcast_ref::<Reverse>().is_some_and(|to| to.axes.iter().all(flat))
            || op.downcast_ref::<Cumsum>().is_some_and(|to| flat(&to.axis));
    if same { one(x) } else { None }
}

/// `split` is its slices: only differentiation gains from it.
pub(super) fn split(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let Split { axis, sizes } = op.downcast_ref()?;
    let x = operands[0];
    let (mut start, mut limit) = (Shape::from_elem(0, s.ty(x).rank()), s.ty(x).shape.clone());
    limit[*axis] = 0;
    let mut parts = Vars::new();
    for size in sizes {
        start[*axis] = limit[*axis];
        limit[*axis] += size;
        parts.push(s.record(Slice { start: start.clone(), limit: limit.clone() }, &[x]));
    }
    Some(parts)
}

/// A slice of a slice is one slice.
pub(super) fn slice_of_slice(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let outer = op.downcast_ref::<Slice>()?;
    let (inner, from) = s.made_by::<Slice>(operands[0])?;
    let from_inner = |edge: &Shape| edge.iter().zip(&inner.start).map(|(n, start)| n + start).collect();
    let (slice, x) = (Slice { start: from_inner(&outer.start), limit: from_inner(&outer.limit) }, from[0]);
    one(s.record(slice, &[x]))
}

/// A slice within one operand of a concatenation slices that operand.
pub(super) fn slice_of_concatenate(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let slice = op.downcast_ref::<Slice>()?;
    let (concatenate, parts) = s.made_by::<Concatenate>(operands[0])?;
    let axis = concatenate.axis;
    let (start, limit) = (slice.start[axis], slice.limit[axis]);
    let mut first = 0;
    for part in parts {
        let end = first + s.ty(*part).shape[axis];
        if first <= start && limit <= end && start < limit {
            let (mut slice, part) = (slice.clone(), *part);
            slice.start[axis] -= first;
            slice.limit[axis] -= first;
            return one(s.record(slice, &[part]));
        }
        first = end;
    }
    None
}
