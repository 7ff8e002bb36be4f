//! Simplification of `while_loop`.

use std::sync::Arc;

use super::dead::{Narrowed, needed, part, positions};
use super::scan::live_inputs;
use super::{Simplifier, captured};
use crate::graph::{Op, Var, Vars};
use crate::primitives::WhileLoop;

/// A state that no step changes is a constant of the loop.
pub(super) fn unchanged(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let WhileLoop { condition, body, constants } = op.downcast_ref()?;
    let count = body.outputs.len();
    let stays = |i: usize| body.outputs[i] == body.inputs[constants + i];
    if !(0..count).any(stays) {
        return None;
    }
    let fixed: Vec<usize> = (0..count).filter(|i| stays(*i)).map(|i| constants + i).collect();
    let states: Vec<usize> = (0..count).filter(|i| !stays(*i)).collect();
    let inputs: Vec<usize> =
        (0..*constants).chain(fixed.iter().copied()).chain(states.iter().map(|i| constants + i)).collect();
    let op = WhileLoop {
        condition: Arc::new(part(condition, &inputs, &[0])),
        body: Arc::new(part(body, &inputs, &states)),
        constants: constants + fixed.len(),
    };
    let moved: Vars = inputs.iter().map(|i| operands[*i]).collect();
    let kept: Vec<Option<Var>> = (0..count).map(|i| stays(i).then(|| operands[constants + i])).collect();
    let mut results = s.apply(Arc::new(op), &moved).into_iter();
    kept.into_iter().map(|state| state.or_else(|| results.next())).collect()
}

/// A constant of the loop that is a known number, or a duplicate, is moved into the body and the condition.
pub(super) fn captured(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let WhileLoop { condition, body, constants } = op.downcast_ref()?;
    let found = captured::captured(s, &operands[..*constants])?;
    let (rest, constants) = captured::remaining(&found, operands);
    let [condition, body] = [condition, body].map(|graph| Arc::new(captured::without(graph, &found)));
    Some(s.apply(Arc::new(WhileLoop { condition, body, constants }), &rest))
}

/// Drops states that neither the condition nor a used result needs, and constants that only they need.
pub(super) fn narrow(op: &Op, used: &[bool]) -> Option<Narrowed> {
    let WhileLoop { condition, body, constants } = op.downcast_ref()?;
    let mut used = used.to_vec();
    let asked = needed(condition, condition.outputs.iter().copied());
    let live = live_inputs(&mut used, *constants, body.outputs.len(), |used| {
        let outputs = body.outputs.iter().zip(used).filter(|(_, used)| **used).map(|(v, _)| *v);
        let live = needed(body, outputs);
        let either = |(b, c): (&Var, &Var)| live[b.index()] || asked[c.index()];
        body.inputs.iter().zip(&condition.inputs).map(either).collect()
    });
    let stays = |i: usize| if i < *constants { live[i] } else { used[i - constants] };
    let operands = positions((0..body.inputs.len()).map(stays));
    let results = positions(used.iter().copied());
    if operands.len() == body.inputs.len() {
        return None;
    }
    let op = WhileLoop {
        condition: Arc::new(part(condition, &operands, &[0])),
        body: Arc::new(part(body, &operands, &results)),
        constants: operands.iter().filter(|i| **i < *constants).count(),
    };
    Some(Narrowed { op: Arc::new(op), operands, results })
}
