//! Reductions of one-hot tensors along the axis of classes: nothing of that size is read or written.
//!
//! `hot` is true at one position of each row at most, `iota = class`, so that whether there is one follows from the class alone.
//! Losses of classes have two of them: the check of the classes, and the sum of a gradient's row.

use super::elementwise::is;
use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{
    Add, And, Binary, BroadcastInDim, Compare, Direction, Full, Iota, Neg, ReduceOr, ReduceSum, Select, Unary,
};
use crate::tensor::{DType, HostTensor, Shape};

/// `any(hot)` is `0 <= class < classes`.
pub(super) fn any(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [axis] = op.downcast_ref::<ReduceOr>()?.axes[..] else { return None };
    let class = class_of(s, operands[0], axis)?;
    one(in_range(s, class, s.ty(operands[0]).shape[axis]))
}

/// The sum of `where hot x 0`, in which `x` is alike along the axis, is `x` in the rows of a class and 0 in others.
pub(super) fn sum(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [axis] = op.downcast_ref::<ReduceSum>()?.axes[..] else { return None };
    let (_, [hot, x, zeros]) = s.made_by::<Select>(operands[0])? else { return None };
    let (hot, x, zeros) = (*hot, *x, *zeros);
    if !is(s, zeros, 0.0) && !is(s, zeros, -0.0) {
        return None;
    }
    let class = class_of(s, hot, axis)?;
    let extent = s.ty(hot).shape[axis];
    let row = alike_along(s, x, axis)?;
    let found = in_range(s, class, extent);
    let ty = s.ty(row).clone();
    let zeros = s.full(&HostTensor::filled(ty.dtype, [].as_slice(), 0.0), &ty.shape);
    let sum = s.record(Select, &[found, row, zeros]);
    // A sum begins with 0, and 0 plus -0 is 0.
    one(s.record(Binary(Add), &[zeros, sum]))
}

/// The negative of a choice between two numbers is one between their negatives.
pub(super) fn negative(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    op.downcast_ref::<Unary<Neg>>()?;
    let (_, [hot, x, y]) = s.made_by::<Select>(operands[0])? else { return None };
    let (hot, x, y) = (*hot, *x, *y);
    s.uniform(x).and(s.uniform(y))?;
    let [x, y] = [x, y].map(|number| s.record(Unary(Neg), &[number]));
    one(s.record(Select, &[hot, x, y]))
}

/// The class of each row, if `hot` is `iota = class` along `axis`.
fn class_of(s: &mut Simplifier, hot: Var, axis: usize) -> Option<Var> {
    let (compare, [class, counter]) = s.made_by::<Compare>(hot)? else { return None };
    let (iota, _) = s.made_by::<Iota>(*counter)?;
    // Numbers of fewer bits may wrap around, and rows have several true elements then.
    let fits = iota.dtype == DType::I32 && i32::try_from(iota.shape[axis]).is_ok();
    if compare.direction != Direction::Eq || iota.dimension != axis || !fits {
        return None;
    }
    let class = *class;
    alike_along(s, class, axis)
}

/// `0 <= class < classes`.
fn in_range(s: &mut Simplifier, class: Var, classes: usize) -> Var {
    let rows = s.ty(class).shape.clone();
    let [first, end] = [0, classes].map(|n| s.full(&HostTensor::new([].as_slice(), vec![n as i32]), &rows));
    let from_first = s.record(Compare { direction: Direction::Ge }, &[class, first]);
    let before_end = s.record(Compare { direction: Direction::Lt }, &[class, end]);
    s.record(Binary(And), &[from_first, before_end])
}

/// `x` without an axis along which all elements are the same; `None` if that is not known.
fn alike_along(s: &mut Simplifier, x: Var, axis: usize) -> Option<Var> {
    let without = |shape: &Shape| -> Shape {
        shape.iter().enumerate().filter(|(a, _)| *a != axis).map(|(_, extent)| *extent).collect()
    };
    if let Some((Full { value, shape }, _)) = s.made_by::<Full>(x) {
        let (value, shape) = (value.clone(), without(shape));
        return Some(s.full(&value, &shape));
    }
    let (BroadcastInDim { shape, dims }, from) = s.made_by::<BroadcastInDim>(x)?;
    if dims.contains(&axis) {
        return None;
    }
    let dims = dims.iter().map(|a| a - usize::from(*a > axis)).collect();
    let (shape, from) = (without(shape), from[0]);
    Some(s.record(BroadcastInDim { shape, dims }, &[from]))
}
