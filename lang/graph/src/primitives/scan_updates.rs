//! States of a loop that its steps update in place.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;

use super::{
    DynamicSlice, DynamicUpdateSlice, GatherRows, OptimizationBarrier, Reshape, Scan, ScatterAdd, Slice,
};
use crate::graph::{DefUse, Equation, Graph, Var, Vars};

/// The states that a step updates in place, and the step in a form that allows it.
pub(super) struct Updates {
    /// A flag for each state.
    pub(super) in_place: Vec<bool>,
    /// The body of the loop, in which all readings of a value that is written over come before the update.
    pub(super) body: Graph,
    /// True if a step reads what it updated: the step after it waits for that.
    pub(super) is_read: bool,
}

/// Condition of updates in place.
#[derive(Clone, Default)]
struct Condition {
    /// Positions of the equations that come before those with the positions of the keys.
    before: HashMap<usize, Vec<usize>>,
    /// Positions of the equations whose results IREE must not compute later, in a kernel of what reads them.
    held: HashSet<usize>,
    /// True if a step reads what it updated.
    is_read: bool,
}

impl Updates {
    /// Those of `scan`: states whose next value is made by updates alone, each of the value before.
    pub(super) fn of(scan: &Scan) -> Updates {
        let uses = DefUse::of(&scan.body);
        let mut condition = Condition::default();
        let mut order = None;
        let mut in_place = Vec::new();
        for (state, next) in scan.inputs()[1].iter().zip(&scan.body.outputs) {
            let with_state = updates(&uses, *state, *next, &condition);
            let found = with_state.and_then(|with| Some((sorted(&uses, &with.before)?, with)));
            in_place.push(found.is_some());
            if let Some((sorted, with)) = found {
                (order, condition) = (Some(sorted), with);
            }
        }
        let mut body = (*scan.body).clone();
        if let Some(order) = order {
            body.equations.clear();
            for n in order {
                let eqn = scan.body.equations[n].clone();
                if condition.held.contains(&n) { hold(&mut body, eqn) } else { body.equations.push(eqn) }
            }
        }
        Updates { in_place, body, is_read: condition.is_read }
    }
}

/// Adds an equation with one result, and a barrier that gives it.
fn hold(body: &mut Graph, mut eqn: Equation) {
    let held = Var(body.types.len() as u32);
    body.types.push(body.ty(eqn.outputs[0]).clone());
    let outputs = std::mem::replace(&mut eqn.outputs, Vars::from_slice(&[held]));
    let (op, inputs) = (Arc::new(OptimizationBarrier), Vars::from_slice(&[held]));
    let barrier = Equation { op, inputs, outputs, span: eqn.span };
    body.equations.extend([eqn, barrier]);
}

/// `condition` with that of the updates from `state` to `next`; `None` if `next` is not made by updates alone, or is needed beside the
/// next state.
fn updates(uses: &DefUse<'_>, state: Var, next: Var, condition: &Condition) -> Option<Condition> {
    let ty = uses.graph.ty(state);
    if state == next || ty.rank() == 0 || ty.count() == 0 || uses.results(next) > 1 {
        return None;
    }
    let mut condition = condition.clone();
    let mut value = state;
    while value != next {
        if uses.results(value) > 0 {
            return None;
        }
        let mut reads = Vec::new();
        readings(uses, value, &mut reads)?;
        let is_update = |n: &usize| {
            let eqn = &uses.graph.equations[*n];
            updates_part(eqn) && is_first(eqn, value)
        };
        let (updates, reads): (Vec<usize>, Vec<usize>) = reads.into_iter().partition(is_update);
        let [update] = *updates else { return None };
        value = uses.graph.equations[update].outputs[0];
        let earlier = ancestors(uses, update);
        for n in &reads {
            let eqn = &uses.graph.equations[*n];
            let is_needed = |v: &Var| uses.results(*v) == 0 && uses.readers(*v).iter().all(|n| earlier[*n]);
            if hands_on(eqn) || eqn.outputs.iter().all(is_needed) {
                continue;
            }
            // The compiler would read all of it once more, later.
            if !reads_part(eqn) {
                return None;
            }
            condition.held.insert(*n);
        }
        condition.before.entry(update).or_default().extend(reads);
    }
    let mut reads = Vec::new();
    readings(uses, next, &mut reads)?;
    condition.is_read |= !reads.is_empty();
    Some(condition)
}

/// True if `value` is the first operand of `eqn` alone.
fn is_first(eqn: &Equation, value: Var) -> bool {
    eqn.inputs[0] == value && !eqn.inputs[1..].contains(&value)
}

/// True if `eqn` updates a part of its first operand.
fn updates_part(eqn: &Equation) -> bool {
    eqn.op.is::<DynamicUpdateSlice>() || eqn.op.is::<ScatterAdd>()
}

/// True if `eqn` reads a part of its first operand.
pub(super) fn reads_part(eqn: &Equation) -> bool {
    eqn.op.is::<Slice>() || eqn.op.is::<DynamicSlice>() || eqn.op.is::<GatherRows>()
}

/// True if a step reads only parts of a state, half of it at most, and updates it at most.
pub(super) fn is_read_in_parts(uses: &DefUse<'_>, state: Var) -> bool {
    let readers = || uses.readers(state).iter().map(|n| &uses.graph.equations[*n]);
    let count = |var: Var| uses.graph.ty(var).count();
    let parts: usize = readers().filter(|eqn| reads_part(eqn)).map(|eqn| count(eqn.outputs[0])).sum();
    2 * parts <= count(state)
        && readers().all(|eqn| is_first(eqn, state) && (reads_part(eqn) || updates_part(eqn)))
}

/// True if `eqn` gives its operand, perhaps in another shape.
fn hands_on(eqn: &Equation) -> bool {
    eqn.op.is::<Reshape>() || eqn.op.is::<OptimizationBarrier>()
}

/// Adds the positions of the equations that read `value`, also in other shapes; `None` if one of them may hand it on to what comes after
/// the step.
fn readings(uses: &DefUse<'_>, value: Var, reads: &mut Vec<usize>) -> Option<()> {
    for n in uses.readers(value) {
        let eqn = &uses.graph.equations[*n];
        let is_result = |v: &Var| uses.results(*v) > 0;
        if !eqn.op.functions().is_empty() || (hands_on(eqn) && eqn.outputs.iter().any(is_result)) {
            return None;
        }
        reads.push(*n);
        if hands_on(eqn) {
            eqn.outputs.iter().try_for_each(|v| readings(uses, *v, reads))?;
        }
    }
    Some(())
}

/// A flag for each equation: true if that at the position `last` needs its results.
fn ancestors(uses: &DefUse<'_>, last: usize) -> Vec<bool> {
    let equations = &uses.graph.equations;
    let mut needed = vec![false; equations.len()];
    needed[last] = true;
    for n in (0..=last).rev() {
        if needed[n] {
            equations[n].inputs.iter().filter_map(|v| uses.maker(*v)).for_each(|maker| needed[maker] = true);
        }
    }
    needed
}

/// Positions of all equations in an order with these before those, else as they are; `None` if there is no such order.
fn sorted(uses: &DefUse<'_>, before: &HashMap<usize, Vec<usize>>) -> Option<Vec<usize>> {
    let equations = &uses.graph.equations;
    let mut followers: Vec<Vec<usize>> = vec![Vec::new(); equations.len()];
    let mut waits_for = vec![0; equations.len()];
    for (n, eqn) in equations.iter().enumerate() {
        let operands = eqn.inputs.iter().filter_map(|v| uses.maker(*v));
        for earlier in operands.chain(before.get(&n).into_iter().flatten().copied()) {
            followers[earlier].push(n);
            waits_for[n] += 1;
        }
    }
    let mut ready: BinaryHeap<Reverse<usize>> =
        (0..equations.len()).filter(|n| waits_for[*n] == 0).map(Reverse).collect();
    let mut order = Vec::new();
    while let Some(Reverse(n)) = ready.pop() {
        order.push(n);
        for follower in &followers[n] {
            waits_for[*follower] -= 1;
            if waits_for[*follower] == 0 {
                ready.push(Reverse(*follower));
            }
        }
    }
    (order.len() == equations.len()).then_some(order)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Builder, verify};
    use crate::primitives::{Convert, Tanh, Unary};
    use crate::tensor::{DType, TensorType};

    /// The updates of a loop over two tensors of four rows and a position; `step` makes the next ones.
    fn of(step: impl FnOnce(&mut Builder, [Var; 3]) -> Vec<Var>) -> Updates {
        let mut b = Builder::new();
        let rows = TensorType::new(DType::F32, [4, 3].as_slice());
        let state = [b.input(rows.clone()), b.input(rows), b.input(TensorType::scalar(DType::I32))];
        let outputs = step(&mut b, state);
        let body = Arc::new(b.finish(outputs));
        let updates = Updates::of(&Scan { body, length: 4, constants: 0, states: 3, reverse: false });
        assert_eq!(verify(&updates.body), Ok(()));
        updates
    }

    /// Row `i` of `x`.
    fn row(b: &mut Builder, x: Var, i: Var) -> Var {
        let zero = b.scalar(DType::I32, 0.0);
        b.dynamic_slice(x, &[i, zero], &[1, 3])
    }

    /// `x` with another row `i`.
    fn update(b: &mut Builder, x: Var, row: Var, i: Var) -> Var {
        let zero = b.scalar(DType::I32, 0.0);
        b.dynamic_update_slice(x, row, &[i, zero])
    }

    fn names(graph: &Graph) -> String {
        let names: Vec<&str> = graph.equations.iter().map(|eqn| eqn.op.name()).collect();
        names.join(" ")
    }

    #[test]
    fn a_row_that_the_update_needs_is_read_as_it_is() {
        let found = of(|b, [x, y, i]| {
            let old = row(b, x, i);
            let new = b.apply(Unary(Tanh), &[old]);
            vec![update(b, x, new, i), y, i]
        });
        assert_eq!((found.in_place, found.is_read), (vec![true, false, false], false));
        assert!(!names(&found.body).contains("optimization_barrier"), "{}", found.body);
    }

    #[test]
    fn readings_for_something_else_come_first_and_are_held() {
        let found = of(|b, [x, y, i]| {
            let new = row(b, y, i);
            let updated = update(b, x, new, i);
            let old = row(b, x, i);
            vec![updated, update(b, y, old, i), i]
        });
        assert_eq!(found.in_place, [true, true, false]);
        let names = names(&found.body);
        let (read, updated) = names.rsplit_once("optimization_barrier").expect("a barrier");
        assert_eq!(read.matches("dynamic_slice").count(), 2, "{names}");
        assert!(!read.contains("dynamic_update_slice"), "{names}");
        assert_eq!(updated.matches("dynamic_update_slice").count(), 2, "{names}");
    }

    #[test]
    fn several_updates_follow_each_other() {
        let found = of(|b, [x, y, i]| {
            let zeros = b.full(&TensorType::new(DType::F32, [1, 3].as_slice()), 0.0);
            let once = update(b, x, zeros, i);
            let new = row(b, once, i);
            let twice = update(b, once, new, i);
            let sum = b.sum(twice, &[0, 1]);
            let all = b.broadcast_in_dim(sum, &[4, 3], &[]);
            vec![twice, b.add(y, all), i]
        });
        assert_eq!((found.in_place, found.is_read), (vec![true, false, false], true));
    }

    #[test]
    fn states_that_are_needed_beside_the_next_are_no_updates() {
        let zeros = |b: &mut Builder| b.full(&TensorType::new(DType::F32, [1, 3].as_slice()), 0.0);
        let exchanged = of(|b, [x, y, i]| {
            let zeros = zeros(b);
            vec![y, update(b, x, zeros, i), i]
        });
        let old_beside_new = of(|b, [x, _, i]| {
            let zeros = zeros(b);
            vec![update(b, x, zeros, i), x, i]
        });
        let reshaped = of(|b, [x, _, i]| {
            let (zeros, other) = (zeros(b), b.reshape(x, &[3, 4]));
            vec![update(b, x, zeros, i), b.reshape(other, &[4, 3]), i]
        });
        let read_whole = of(|b, [x, y, i]| {
            let zeros = zeros(b);
            vec![update(b, x, zeros, i), b.add(x, y), i]
        });
        let twice = of(|b, [x, _, i]| {
            let zeros = zeros(b);
            let next = update(b, x, zeros, i);
            vec![next, next, i]
        });
        for found in [exchanged, old_beside_new, reshaped, read_whole, twice] {
            assert_eq!(found.in_place, [false, false, false], "{}", found.body);
        }
    }

    #[test]
    fn updates_that_read_each_others_states_come_after_both_readings() {
        let found = of(|b, [x, y, i]| {
            let (of_x, of_y) = (row(b, x, i), row(b, y, i));
            let x = update(b, x, of_y, i);
            let sum = b.add(of_x, of_y);
            vec![x, update(b, y, sum, i), i]
        });
        assert_eq!(found.in_place, [true, true, false]);
    }

    /// Each old value is read at a place that the other's new one gives.
    #[test]
    fn updates_that_wait_for_each_other_are_not_both_in_place() {
        let found = of(|b, [x, y, i]| {
            let zeros = b.full(&TensorType::new(DType::F32, [1, 3].as_slice()), 0.0);
            let [new_x, new_y] = [update(b, x, zeros, i), update(b, y, zeros, i)];
            let [at_x, at_y] = [new_x, new_y].map(|new| {
                let sum = b.sum(new, &[0, 1]);
                b.apply(Convert { dtype: DType::I32, weak: false }, &[sum])
            });
            let (of_x, of_y) = (row(b, x, at_y), row(b, y, at_x));
            let sums = b.add(of_x, of_y);
            let sum = b.sum(sums, &[0, 1]);
            vec![new_x, new_y, b.apply(Convert { dtype: DType::I32, weak: false }, &[sum])]
        });
        assert_eq!(found.in_place, [true, false, false]);
    }
}
