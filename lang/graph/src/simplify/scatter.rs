//! Sums with rows that were added to zeros.

use super::elementwise::{is, is_binary};
use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{Add, ScatterAdd};
use crate::tensor::DType;

/// Rows that a sum with another tensor takes are added to that tensor, not to zeros first: the gradient of an embedding that is a
/// matrix of logits too needs no second tensor of its size.
///
/// Elements that get several rows are summed in another order, and an untouched `-0` stays one. The 16-bit floats are left alone:
/// a sum of rows is rounded once.
pub(super) fn into_other_term(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = *operands else { return None };
    if !is_binary::<Add>(op) || matches!(s.ty(x).dtype, DType::F16 | DType::BF16) {
        return None;
    }
    let rows_and_target = |rows: Var, target: Var| {
        let (_, [zeros, indices, updates]) = s.made_by::<ScatterAdd>(rows)? else { return None };
        let touches_few = 4 * s.ty(*updates).count() <= s.ty(rows).count();
        (touches_few && is(s, *zeros, 0.0)).then_some([target, *indices, *updates])
    };
    let operands = rows_and_target(x, y).or_else(|| rows_and_target(y, x))?;
    one(s.record(ScatterAdd, &operands))
}
