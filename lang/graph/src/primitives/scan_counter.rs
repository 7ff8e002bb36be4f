//! States of a loop that count.

use super::{Add, Binary, Constant, Scan};
use crate::graph::DefUse;
use crate::tensor::DType;

/// A state to which every step adds the same number.
pub struct Counter {
    /// Its dtype, an integer.
    pub dtype: DType,
    /// Its first value.
    pub first: i64,
    /// The number that is added.
    pub step: i64,
}

impl Counter {
    /// State `i` of `scan`, a scalar that begins as `first`, as a counter.
    pub fn of(scan: &Scan, i: usize, first: i64) -> Option<Counter> {
        let body = &*scan.body;
        let state = body.inputs[scan.constants + i];
        let dtype = body.ty(state).dtype;
        let uses = DefUse::of(body);
        let next = uses.definition(body.outputs[i]).filter(|eqn| eqn.op.is::<Binary<Add>>())?;
        let step = match *next.inputs {
            [x, step] if x == state => step,
            [step, x] if x == state => step,
            _ => return None,
        };
        let step = &uses.definition(step)?.op.downcast_ref::<Constant>()?.value;
        let counts = dtype.is_signed_integer() && body.ty(state).rank() == 0;
        counts.then(|| Counter { dtype, first, step: step.element_i64(0) })
    }

    /// The least and the greatest of its values in `length` steps, of which there is at least one; `None` if one of them, or the last state, overflows.
    pub fn range(&self, length: usize) -> Option<(i64, i64)> {
        let steps = i64::try_from(length).ok()?;
        let end = self.first.checked_add(self.step.checked_mul(steps)?)?;
        let last = end.checked_sub(self.step)?;
        let (least, greatest) = self.dtype.range()?;
        (least <= end && end <= greatest).then_some((self.first.min(last), self.first.max(last)))
    }
}
