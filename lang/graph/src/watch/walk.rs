//! Walks through graphs with watches.

use std::collections::{HashMap, HashSet};

use smallvec::SmallVec;

use super::{Condition, Listener, listen};
use crate::graph::{Builder, Graph, RULE, Var, Vars, prune, with_functions};
use crate::primitives::{
    BroadcastInDim, Concatenate, DynamicSlice, GatherRows, OptimizationBarrier, Reshape, Reverse, Slice,
    StopGradient, Transpose, Watch,
};
use crate::tensor::HostTensor;

/// `graph` without watches: the program that is traced if no observer looks.
pub fn unwatched(graph: &Graph) -> Graph {
    let strip = |_: &mut Builder, _: &mut Seen, _: &Watch, operands: &[Var]| operands[0];
    replaced(graph, &strip)
}

/// The watches of one graph, without those inside of its operations.
#[derive(Default)]
pub(super) struct Seen {
    /// The values behind the results of watches that stay.
    pub values: HashMap<Var, Var>,
    /// The values that are checked, with the conditions.
    pub checked: HashSet<(Var, Condition)>,
    /// The equations so far that define variables.
    makers: HashMap<Var, usize>,
    /// True unless it is a function inside of an operation.
    pub is_outermost: bool,
}

impl Seen {
    /// The value behind the result of a watch that stays.
    pub fn value(&self, var: Var) -> Var {
        self.values.get(&var).copied().unwrap_or(var)
    }

    /// True if each element of `var` is one of a value for which `known` holds.
    pub fn is_made_of(&self, graph: &Graph, var: Var, known: &dyn Fn(Var) -> bool) -> bool {
        /// Maximum movements that are looked through.
        const DEPTH: usize = 16;
        self.elements_of(graph, var, known, DEPTH)
    }

    fn elements_of(&self, graph: &Graph, var: Var, known: &dyn Fn(Var) -> bool, depth: usize) -> bool {
        let var = self.value(var);
        if known(var) {
            return true;
        }
        let Some(eqn) = self.makers.get(&var).map(|n| &graph.equations[*n]).filter(|_| depth > 0) else {
            return false;
        };
        let op = &eqn.op;
        let moves = op.is::<Reshape>()
            || op.is::<Transpose>()
            || op.is::<BroadcastInDim>()
            || op.is::<StopGradient>()
            || op.is::<Slice>()
            || op.is::<Reverse>()
            || op.is::<GatherRows>()
            || op.is::<DynamicSlice>();
        let is_known = |var: &Var| self.elements_of(graph, *var, known, depth - 1);
        if op.is::<OptimizationBarrier>() {
            return eqn.inputs.iter().zip(&eqn.outputs).any(|(from, to)| *to == var && is_known(from));
        }
        if op.is::<Concatenate>() {
            return eqn.inputs.iter().all(is_known);
        }
        moves && is_known(&eqn.inputs[0])
    }
}

/// Records the value that takes the place of a watch, given the watch and its operands.
type Replace<'a> = dyn Fn(&mut Builder, &mut Seen, &Watch, &[Var]) -> Var + 'a;

/// `graph` with each watch replaced, also inside of operations.
pub(super) fn replaced(graph: &Graph, replace: &Replace<'_>) -> Graph {
    walk(graph, replace, true)
}

fn walk(graph: &Graph, replace: &Replace<'_>, is_outermost: bool) -> Graph {
    if !graph.watched {
        return graph.clone();
    }
    let mut b = Builder::new();
    let mut seen = Seen { is_outermost, ..Seen::default() };
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        if let Some(watch) = eqn.op.downcast_ref::<Watch>() {
            return Vars::from_slice(&[replace(&mut b, &mut seen, watch, operands)]);
        }
        if eqn.op.watches() {
            let op = with_functions(&eqn.op, &mut |function| walk(function, replace, false));
            return b.bind(op, operands).expect(RULE);
        }
        let results = b.bind(eqn.op.clone(), operands).expect(RULE);
        let made = b.graph().equations.len() - 1;
        seen.makers.extend(results.iter().map(|var| (*var, made)));
        results
    });
    b.span = None;
    prune(b.finish(outputs))
}

/// Reports to `listener` of a call of `graph` on the host, up to the first operation with a value that breaks a
/// condition. Values are let go of after their last use.
pub fn trail(graph: &Graph, inputs: &[HostTensor], listener: Listener) -> Listener {
    let mut last = vec![0; graph.types.len()];
    for (n, eqn) in graph.equations.iter().enumerate() {
        eqn.inputs.iter().for_each(|v| last[v.index()] = n);
    }
    let mut values: Vec<Option<HostTensor>> = vec![None; graph.types.len()];
    for (var, value) in graph.inputs.iter().zip(inputs) {
        values[var.index()] = Some(value.clone());
    }
    let mut listener = listener;
    for (n, eqn) in graph.equations.iter().enumerate() {
        let results;
        (results, listener) = listen(listener, || {
            let args: SmallVec<[&HostTensor; 4]> =
                eqn.inputs.iter().map(|v| values[v.index()].as_ref().expect(RULE)).collect();
            eqn.op.evaluate(&args)
        });
        if listener.first_broken().is_some() {
            break;
        }
        for var in &eqn.inputs {
            if last[var.index()] == n {
                values[var.index()] = None;
            }
        }
        for (var, value) in eqn.outputs.iter().zip(results) {
            values[var.index()] = Some(value);
        }
    }
    listener
}
