//! Conditionals.

use std::sync::Arc;

use super::Simplifier;
use super::dead::{Narrowed, needed, part, positions};
use crate::graph::{Op, Var, Vars};
use crate::primitives::Cond;

/// A known condition selects one branch.
pub(super) fn known(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let cond = op.downcast_ref::<Cond>()?;
    let holds = s.uniform(operands[0])?.element_i64(0) != 0;
    let branch = if holds { &cond.on_true } else { &cond.on_false };
    Some(s.inline(branch, &operands[1..]).into())
}

/// Drops unused results, and operands that neither branch needs.
pub(super) fn narrow(op: &Op, used: &[bool]) -> Option<Narrowed> {
    let cond = op.downcast_ref::<Cond>()?;
    let results = positions(used.iter().copied());
    let branches = [&cond.on_true, &cond.on_false];
    let live = branches.map(|branch| needed(branch, results.iter().map(|i| branch.outputs[*i])));
    let count = cond.on_true.inputs.len();
    let needs = |i: usize| (0..2).any(|side| live[side][branches[side].inputs[i].index()]);
    let inner = positions((0..count).map(needs));
    if inner.len() == count && results.len() == used.len() {
        return None;
    }
    let [on_true, on_false] = branches.map(|branch| Arc::new(part(branch, &inner, &results)));
    let operands = std::iter::once(0).chain(inner.iter().map(|i| i + 1)).collect();
    Some(Narrowed { op: Arc::new(Cond { on_true, on_false }), operands, results })
}
