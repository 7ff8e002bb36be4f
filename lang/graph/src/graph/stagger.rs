//! Large gradients in groups: what is computed of one group is computed before the next.
//!
//! `value_and_grad` holds the value and all gradients in one barrier, behind which a step of an optimiser begins: all gradients are in
//! memory at once. Here the barrier becomes several, in the order in which the gradients are computed, and the results that
//! need no later group wait in the next one. A group's gradients are then free before those of the next are computed.

use super::{Builder, DefUse, Equation, Graph, RULE, Var};
use crate::primitives::OptimizationBarrier;

/// Minimum size of all that a barrier holds, in bytes.
const LEAST: usize = 256 << 20;

/// Size at which a group is full, in bytes. IREE waits for each. Its devices have a pool with slabs of this size, for
/// allocations up to it, and look into five of those for room: with smaller groups, 10 in one call, the pool grew by 130 MB in each call.
const GROUP: usize = 64 << 20;

/// `graph` with its largest barrier in groups; `None` if that holds little.
pub fn stagger(graph: &Graph) -> Option<Graph> {
    let held = |eqn: &Equation| eqn.inputs.iter().map(|v| bytes(graph, *v)).sum::<usize>();
    let barriers = graph.equations.iter().enumerate().filter(|(_, eqn)| eqn.op.is::<OptimizationBarrier>());
    let (position, barrier) = barriers.max_by_key(|(_, eqn)| held(eqn))?;
    if held(barrier) < LEAST {
        return None;
    }
    let uses = DefUse::of(graph);
    let groups = groups(graph, &uses, barrier);
    (groups.len() > 1).then(|| Staggered::of(graph, &uses, position).emit(&groups))
}

fn bytes(graph: &Graph, var: Var) -> usize {
    let ty = graph.ty(var);
    ty.count() * ty.dtype.byte_width()
}

/// Positions of the barrier's operands, those that are computed first in the first group.
fn groups(graph: &Graph, uses: &DefUse<'_>, barrier: &Equation) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..barrier.inputs.len()).collect();
    order.sort_by_key(|i| uses.maker(barrier.inputs[*i]));
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut size = GROUP;
    for operand in order {
        if size >= GROUP {
            groups.push(Vec::new());
            size = 0;
        }
        groups.last_mut().expect(RULE).push(operand);
        size += bytes(graph, barrier.inputs[operand]);
    }
    groups
}

struct Staggered<'a> {
    graph: &'a Graph,
    uses: &'a DefUse<'a>,
    /// Position of the barrier.
    barrier: usize,
    b: Builder,
    /// The new variables.
    map: Vec<Option<Var>>,
    recorded: Vec<bool>,
}

impl<'a> Staggered<'a> {
    fn of(graph: &'a Graph, uses: &'a DefUse<'a>, barrier: usize) -> Staggered<'a> {
        let mut b = Builder::new();
        let mut map = vec![None; graph.types.len()];
        for (old, new) in graph.inputs.iter().zip(b.inputs_of(graph)) {
            map[old.index()] = Some(new);
        }
        let recorded = (0..graph.equations.len()).map(|n| n == barrier).collect();
        Staggered { graph, uses, barrier, b, map, recorded }
    }

    fn emit(mut self, groups: &[Vec<usize>]) -> Graph {
        let barrier = &self.graph.equations[self.barrier];
        let last = self.last_groups(groups);
        let mut results: Vec<Option<Var>> = vec![None; self.graph.outputs.len()];
        for (k, group) in groups.iter().enumerate() {
            // Results of the group before, which have not waited yet.
            let done: Vec<usize> = (0..results.len())
                .filter(|i| k > 0 && last[self.graph.outputs[*i].index()] == Some(k - 1))
                .collect();
            self.record(done.iter().map(|i| self.graph.outputs[*i]).collect());
            self.record(group.iter().map(|i| barrier.inputs[*i]).collect());
            let operands = group.iter().map(|i| barrier.inputs[*i]);
            let operands = operands.chain(done.iter().map(|i| self.graph.outputs[*i]));
            let operands: Vec<Var> = operands.map(|v| self.map[v.index()].expect(RULE)).collect();
            let held = self.b.apply_all(OptimizationBarrier, &operands);
            let (gradients, waited) = held.split_at(group.len());
            for (i, var) in group.iter().zip(gradients) {
                self.map[barrier.outputs[*i].index()] = Some(*var);
            }
            for (i, var) in done.iter().zip(waited) {
                results[*i] = Some(*var);
            }
        }
        for n in 0..self.graph.equations.len() {
            self.record_equation(n);
        }
        let outputs = self.graph.outputs.iter().zip(results);
        let outputs = outputs.map(|(old, new)| new.or(self.map[old.index()]).expect(RULE)).collect();
        self.b.finish(outputs)
    }

    /// For each variable, the last group that it depends on.
    fn last_groups(&self, groups: &[Vec<usize>]) -> Vec<Option<usize>> {
        let mut last: Vec<Option<usize>> = vec![None; self.graph.types.len()];
        for (n, eqn) in self.graph.equations.iter().enumerate() {
            if n == self.barrier {
                for (k, group) in groups.iter().enumerate() {
                    group.iter().for_each(|i| last[eqn.outputs[*i].index()] = Some(k));
                }
            } else {
                let latest = eqn.inputs.iter().filter_map(|v| last[v.index()]).max();
                eqn.outputs.iter().for_each(|v| last[v.index()] = latest);
            }
        }
        last
    }

    /// Records what these variables need and is not recorded.
    fn record(&mut self, targets: Vec<Var>) {
        let mut needed = vec![false; self.graph.equations.len()];
        let mut open = targets;
        while let Some(var) = open.pop() {
            let Some(n) = self.uses.maker(var).filter(|n| !self.recorded[*n]) else { continue };
            if !std::mem::replace(&mut needed[n], true) {
                open.extend(&self.graph.equations[n].inputs);
            }
        }
        (0..needed.len()).filter(|n| needed[*n]).for_each(|n| self.record_equation(n));
    }

    fn record_equation(&mut self, n: usize) {
        if std::mem::replace(&mut self.recorded[n], true) {
            return;
        }
        let eqn = &self.graph.equations[n];
        self.b.span = eqn.span;
        let operands: Vec<Var> = eqn.inputs.iter().map(|v| self.map[v.index()].expect(RULE)).collect();
        let results = self.b.bind(eqn.op.clone(), &operands).expect(RULE);
        for (old, new) in eqn.outputs.iter().zip(results) {
            self.map[old.index()] = Some(new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, TensorType};

    /// A step for `n` parameters of `rows` rows of 1 MiB: the gradient of each is a product, and the result a sum.
    fn step(n: usize, rows: usize) -> Graph {
        let mut b = Builder::new();
        let ty = TensorType::new(DType::F32, &[rows, 1 << 18][..]);
        let parameters: Vec<Var> = (0..n).map(|_| b.input(ty.clone())).collect();
        let gradients: Vec<Var> = parameters.iter().rev().map(|p| b.mul(*p, *p)).collect();
        let held: Vec<Var> = gradients.iter().rev().copied().collect();
        let freed = b.apply_all(OptimizationBarrier, &held);
        let outputs = parameters.iter().zip(&freed).map(|(p, g)| b.add(*p, *g)).collect();
        b.finish(outputs)
    }

    #[test]
    fn results_are_computed_between_the_groups_in_the_order_of_gradients() {
        let graph = step(4, 64);
        let staggered = stagger(&graph).expect("it holds 256 MiB");
        assert_eq!(super::super::verify(&staggered), Ok(()));
        let names: Vec<&str> = staggered.equations.iter().map(|eqn| eqn.op.name()).collect();
        let of_group = ["mul", "optimization_barrier", "add"];
        assert_eq!(names[..2], of_group[..2]);
        // The sum of the group before, the next product, both wait, and so on; the last sum waits for nothing.
        assert_eq!(names[2..5], ["add", "mul", "optimization_barrier"]);
        assert_eq!(names.len(), 12);
        assert_eq!(names[11], "add");
        let barriers: Vec<usize> = staggered
            .equations
            .iter()
            .filter(|eqn| eqn.op.is::<OptimizationBarrier>())
            .map(|eqn| eqn.inputs.len())
            .collect();
        assert_eq!(barriers, [1, 2, 2, 2]);
        // The gradient that is computed first is that of the last parameter.
        assert_eq!(staggered.equations[0].inputs[0], staggered.inputs[3]);
    }

    #[test]
    fn little_stays_in_one_barrier() {
        assert!(stagger(&step(4, 8)).is_none());
        assert!(stagger(&step(1, 512)).is_none());
    }
}
