//! Simplification of `scan`.

use std::sync::Arc;

use super::dead::{Narrowed, needed, part, positions};
use super::{Simplifier, captured};
use crate::graph::{Op, Var, Vars};
use crate::primitives::Scan;

/// A state that no step changes is a constant of the loop.
pub(super) fn unchanged(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let scan = op.downcast_ref::<Scan>()?;
    let (first, body) = (scan.constants, &scan.body);
    let stays = |i: usize| body.outputs[i] == body.inputs[first + i];
    if !(0..scan.states).any(stays) {
        return None;
    }
    let constants = (0..first).chain((0..scan.states).filter(|i| stays(*i)).map(|i| first + i));
    let states = (0..scan.states).filter(|i| !stays(*i));
    let inputs: Vec<usize> = constants
        .chain(states.clone().map(|i| first + i))
        .chain(first + scan.states..body.inputs.len())
        .collect();
    let outputs: Vec<usize> = states.clone().chain(scan.states..body.outputs.len()).collect();
    let count = states.count();
    let op = Scan {
        body: Arc::new(part(body, &inputs, &outputs)),
        constants: first + scan.states - count,
        states: count,
        ..scan.clone()
    };
    let all = 0..scan.body.outputs.len();
    let fixed: Vec<Option<Var>> =
        all.map(|i| (i < scan.states && stays(i)).then(|| operands[first + i])).collect();
    let moved: Vars = inputs.iter().map(|i| operands[*i]).collect();
    let mut results = s.apply(Arc::new(op), &moved).into_iter();
    fixed.into_iter().map(|state| state.or_else(|| results.next())).collect()
}

/// A constant of the loop that is a known number, or a duplicate, is moved into the body.
pub(super) fn captured(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let scan = op.downcast_ref::<Scan>()?;
    let found = captured::captured(s, &operands[..scan.constants])?;
    let (rest, constants) = captured::remaining(&found, operands);
    let body = Arc::new(captured::without(&scan.body, &found));
    Some(s.apply(Arc::new(Scan { body, constants, ..scan.clone() }), &rest))
}

/// Drops unused results, and states, constants and rows that only they need.
pub(super) fn narrow(op: &Op, used: &[bool]) -> Option<Narrowed> {
    let scan = op.downcast_ref::<Scan>()?;
    let (body, first) = (&scan.body, scan.constants);
    let mut used = used.to_vec();
    let live = live_inputs(&mut used, first, scan.states, |used| {
        let outputs = body.outputs.iter().zip(used).filter(|(_, used)| **used).map(|(v, _)| *v);
        let live = needed(body, outputs);
        body.inputs.iter().map(|v| live[v.index()]).collect()
    });
    let is_state = |i: usize| (first..first + scan.states).contains(&i);
    let stays = |i: usize| if is_state(i) { used[i - first] } else { live[i] };
    let operands = positions((0..body.inputs.len()).map(stays));
    let results = positions(used.iter().copied());
    if operands.len() == body.inputs.len() && results.len() == used.len() {
        return None;
    }
    let op = Scan {
        body: Arc::new(part(body, &operands, &results)),
        constants: operands.iter().filter(|i| **i < first).count(),
        states: operands.iter().filter(|i| is_state(**i)).count(),
        ..scan.clone()
    };
    Some(Narrowed { op: Arc::new(op), operands, results })
}

/// The body parameters that the used results depend on, by `needs`. A state among them counts as used.
pub(super) fn live_inputs(
    used: &mut [bool],
    constants: usize,
    states: usize,
    needs: impl Fn(&[bool]) -> Vec<bool>,
) -> Vec<bool> {
    loop {
        let live = needs(used);
        let missing: Vec<usize> = (0..states).filter(|i| live[constants + i] && !used[*i]).collect();
        if missing.is_empty() {
            return live;
        }
        missing.into_iter().for_each(|i| used[i] = true);
    }
}
