//! Redundant conversions.

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{Convert, StopGradient};
use crate::tensor::DType;

/// A conversion to the operand's own dtype is the operand, as is `stop_gradient` after differentiation.
pub(super) fn alias(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let same = op.downcast_ref::<Convert>().is_some_and(|to| to.dtype == s.ty(operands[0]).dtype);
    if same || op.is::<StopGradient>() { one(operands[0]) } else { None }
}

/// A conversion of the result of a lossless conversion converts the original.
pub(super) fn of_convert(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let to = *op.downcast_ref::<Convert>()?;
    let (first, from) = s.made_by::<Convert>(operands[0])?;
    let x = from[0];
    if !keeps_all(s.ty(x).dtype, first.dtype) {
        return None;
    }
    one(s.record(to, &[x]))
}

/// True if `to` represents every number of `from`.
fn keeps_all(from: DType, to: DType) -> bool {
    from == DType::Bool || from.kind() == to.kind() && to.holds(from)
}
