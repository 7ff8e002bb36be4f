//! Dead code elimination, also of loop states, rows and conditional results.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{cond, scan, while_loop};
use crate::graph::{Equation, Graph, Op, Var, prune};
use crate::primitives::{CustomKernel, OptimizationBarrier, Sort};

/// An operation reduced to some of its operands and results.
pub(super) struct Narrowed {
    pub(super) op: Op,
    /// The positions of the operands that stay.
    pub(super) operands: Vec<usize>,
    /// The positions of the results that stay.
    pub(super) results: Vec<usize>,
}

/// `graph` without dead equations, and true if a loop or a conditional shrank, so that rules may apply again.
pub(super) fn remove(mut graph: Graph) -> (Graph, bool) {
    let mut live = vec![false; graph.types.len()];
    graph.outputs.iter().for_each(|v| live[v.index()] = true);
    let mut narrowed = false;
    for eqn in graph.equations.iter_mut().rev() {
        let used: Vec<bool> = eqn.outputs.iter().map(|v| live[v.index()]).collect();
        if !used.contains(&true) {
            // Checks stay as they are.
            if eqn.op.checks() {
                eqn.inputs.iter().for_each(|v| live[v.index()] = true);
            }
            continue;
        }
        if let Some(smaller) = narrow(eqn, &used) {
            eqn.inputs = smaller.operands.iter().map(|i| eqn.inputs[*i]).collect();
            eqn.outputs = smaller.results.iter().map(|i| eqn.outputs[*i]).collect();
            eqn.op = smaller.op;
            narrowed = true;
        }
        eqn.inputs.iter().for_each(|v| live[v.index()] = true);
    }
    (prune(graph), narrowed)
}

/// An equation without the parts that only its unused results need, if it shrinks.
fn narrow(eqn: &Equation, used: &[bool]) -> Option<Narrowed> {
    let kept = || -> Vec<usize> { (0..used.len()).filter(|i| used[*i]).collect() };
    if eqn.op.is::<OptimizationBarrier>() && used.contains(&false) {
        return Some(Narrowed { op: eqn.op.clone(), operands: kept(), results: kept() });
    }
    if eqn.op.is::<Sort>() && used[1..].contains(&false) {
        // The first operand is the key.
        let mut stays = kept();
        if !used[0] {
            stays.insert(0, 0);
        }
        return Some(Narrowed { op: eqn.op.clone(), operands: stays.clone(), results: stays });
    }
    if let Some(kernel) = eqn.op.downcast_ref::<CustomKernel>().filter(|_| used.last() == Some(&false)) {
        let operands: Vec<usize> = (0..eqn.inputs.len()).collect();
        let results: Vec<usize> = (0..used.len()).take_while(|i| used[*i..].contains(&true)).collect();
        let body = Arc::new(part(&kernel.body, &operands, &results));
        let op = Arc::new(CustomKernel { body, ..kernel.clone() });
        return Some(Narrowed { op, operands, results });
    }
    cond::narrow(&eqn.op, used)
        .or_else(|| scan::narrow(&eqn.op, used))
        .or_else(|| while_loop::narrow(&eqn.op, used))
}

/// Variables of `graph` that these and its checks depend on.
pub(super) fn needed(graph: &Graph, by: impl Iterator<Item = Var>) -> Vec<bool> {
    let mut needed = vec![false; graph.types.len()];
    by.for_each(|v| needed[v.index()] = true);
    for eqn in graph.equations.iter().rev() {
        if eqn.op.checks() || eqn.outputs.iter().any(|v| needed[v.index()]) {
            eqn.inputs.iter().for_each(|v| needed[v.index()] = true);
        }
    }
    needed
}

/// `graph` with some of its parameters and results, given by their positions.
pub(super) fn part(graph: &Graph, inputs: &[usize], outputs: &[usize]) -> Graph {
    let mut graph = graph.clone();
    graph.inputs = inputs.iter().map(|i| graph.inputs[*i]).collect();
    graph.outputs = outputs.iter().map(|i| graph.outputs[*i]).collect();
    prune(graph)
}

/// The positions of true flags.
pub(super) fn positions(flags: impl Iterator<Item = bool>) -> Vec<usize> {
    let flags: SmallVec<[bool; 8]> = flags.collect();
    (0..flags.len()).filter(|i| flags[*i]).collect()
}
