//! `reshape`, `transpose` and `broadcast_in_dim`: fusion and removal.

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{BroadcastInDim, Reshape, Transpose};
use crate::tensor::Shape;

/// An operation that keeps the shape is its operand.
pub(super) fn nothing(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let x = *operands.first()?;
    let shape = &s.ty(x).shape;
    let same = op.downcast_ref::<Reshape>().is_some_and(|to| to.shape == *shape)
        || op.downcast_ref::<Transpose>().is_some_and(|to| to.permutation.iter().copied().eq(0..shape.len()))
        || op.downcast_ref::<BroadcastInDim>().is_some_and(|to| to.shape == *shape);
    if same { one(x) } else { None }
}

/// The last of several reshapes counts.
pub(super) fn reshape_of_reshape(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let to = op.downcast_ref::<Reshape>()?.clone();
    let x = s.made_by::<Reshape>(operands[0])?.1[0];
    one(s.record(to, &[x]))
}

/// A reshape that adds or drops axes of extent 1 of a broadcast tensor is a broadcast.
pub(super) fn reshape_of_broadcast(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let to = op.downcast_ref::<Reshape>()?.shape.clone();
    let (broadcast, from) = s.made_by::<BroadcastInDim>(operands[0])?;
    let x = from[0];
    let long = |shape: &[usize]| -> Vec<usize> { (0..shape.len()).filter(|i| shape[*i] != 1).collect() };
    let (before, after) = (long(&broadcast.shape), long(&to));
    let extents = |shape: &Shape, axes: &[usize]| -> Vec<usize> { axes.iter().map(|a| shape[*a]).collect() };
    if extents(&broadcast.shape, &before) != extents(&to, &after) {
        return None;
    }
    let place = |dim: &usize| before.iter().position(|axis| axis == dim).map(|i| after[i]);
    let dims: Option<Shape> = broadcast.dims.iter().map(place).collect();
    one(s.record(BroadcastInDim { shape: to, dims: dims? }, &[x]))
}

/// Two transposes are one.
pub(super) fn transpose_of_transpose(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let outer = op.downcast_ref::<Transpose>()?;
    let (inner, from) = s.made_by::<Transpose>(operands[0])?;
    let permutation = outer.permutation.iter().map(|axis| inner.permutation[*axis]).collect();
    let x = from[0];
    one(s.record(Transpose { permutation }, &[x]))
}

/// A transpose that moves only axes of extent 1 is a reshape.
pub(super) fn transpose_as_reshape(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let Transpose { permutation } = op.downcast_ref()?;
    let own = &s.ty(operands[0]).shape;
    let long: Vec<usize> = permutation.iter().copied().filter(|axis| own[*axis] != 1).collect();
    if !long.is_sorted() {
        return None;
    }
    let shape = permutation.iter().map(|axis| own[*axis]).collect();
    one(s.record(Reshape { shape }, operands))
}

/// Two broadcasts are one.
pub(super) fn broadcast_of_broadcast(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let outer = op.downcast_ref::<BroadcastInDim>()?;
    let (inner, from) = s.made_by::<BroadcastInDim>(operands[0])?;
    let dims = inner.dims.iter().map(|dim| outer.dims[*dim]).collect();
    let (shape, x) = (outer.shape.clone(), from[0]);
    one(s.record(BroadcastInDim { shape, dims }, &[x]))
}

/// A broadcast of axes of extent 1 that a reshape inserted needs no reshape.
pub(super) fn broadcast_of_reshape(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let broadcast = op.downcast_ref::<BroadcastInDim>()?;
    let x = s.made_by::<Reshape>(operands[0])?.1[0];
    let mut own = s.ty(x).shape.iter().peekable();
    let mut dims = Shape::new();
    for (extent, dim) in s.ty(operands[0]).shape.iter().zip(&broadcast.dims) {
        if own.peek() == Some(&extent) {
            own.next();
            dims.push(*dim);
        } else if *extent != 1 {
            return None;
        }
    }
    if own.next().is_some() {
        return None;
    }
    let shape = broadcast.shape.clone();
    one(s.record(BroadcastInDim { shape, dims }, &[x]))
}

/// A broadcast that repeats nothing is a reshape.
pub(super) fn broadcast_as_reshape(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let BroadcastInDim { shape, .. } = op.downcast_ref()?;
    if s.ty(operands[0]).count() != shape.iter().product::<usize>() {
        return None;
    }
    one(s.record(Reshape { shape: shape.clone() }, operands))
}
