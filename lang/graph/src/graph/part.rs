//! Parts equations that a compiler would join to a kernel with too many operands.

use std::collections::{BTreeMap, BTreeSet};

use super::{Builder, DefUse, Equation, Graph, RULE, Var};
use crate::primitives::OptimizationBarrier;

/// Limits of what element-wise operations join to, by the number of buffers that a device binds to a kernel.
#[derive(Clone, Copy)]
struct Limits {
    /// Maximum tensors that operations may join. IREE computes them all in one kernel, with the uses of the result and the
    /// operations before; a kernel with too many buffers fails when it is called, or its program when it is loaded (Q31).
    width: usize,
    /// Maximum numbers that operations may read and give together. Those that a kernel keeps in one buffer count once
    /// for IREE, and it needs some for its own intermediate results.
    bound: usize,
}

impl Limits {
    fn of(buffers: usize) -> Self {
        Limits { width: buffers * 5 / 8, bound: buffers - 4 }
    }
}

/// `graph` with a barrier behind each element-wise result of as many tensors as a kernel may have; `None` if nothing is
/// so wide, as the sum of 34 arguments is where a kernel has 32 buffers.
pub fn part_wide(graph: &Graph, buffers: usize) -> Option<Graph> {
    let limits = Limits::of(buffers);
    // For each variable, in order: the tensors that a kernel reads to compute it.
    let mut read: Vec<Vec<Var>> = (0..graph.types.len()).map(|i| vec![Var(i as u32)]).collect();
    let mut parted = vec![false; graph.types.len()];
    for eqn in &graph.equations {
        if eqn.inputs.is_empty() {
            // Constants and positions are part of the kernel.
            eqn.outputs.iter().for_each(|v| read[v.index()].clear());
        }
        if !eqn.op.is_elementwise() {
            continue;
        }
        let mut operands: Vec<Var> = eqn.inputs.to_vec();
        operands.sort_unstable_by_key(|v| read[v.index()].len());
        let mut tensors = union(&read, &operands);
        while tensors.len() > limits.width
            && let Some(widest) = operands.pop()
        {
            parted[widest.index()] = true;
            read[widest.index()] = vec![widest];
            tensors = union(&read, &eqn.inputs);
        }
        for var in &eqn.outputs {
            read[var.index()].clone_from(&tensors);
        }
    }
    part_crowded(graph, limits.bound, &mut parted);
    parted.contains(&true).then(|| with_barriers(graph, &parted))
}

/// Marks variables that cross from one part to the next of those operations on numbers that read and give too many
/// together: a compiler makes one kernel of them, with a buffer for each. Larger tensors are not seen to be joined so:
/// reductions and products come between.
fn part_crowded(graph: &Graph, bound: usize, parted: &mut [bool]) {
    let uses = DefUse::of(graph);
    // The first equation of the group of each one.
    let mut first: Vec<usize> = (0..graph.equations.len()).collect();
    for (n, eqn) in graph.equations.iter().enumerate() {
        for var in &eqn.inputs {
            if let Some(made) = uses.maker(*var)
                && !parted[var.index()]
                && joins(graph, eqn, *var)
                && joins(graph, &graph.equations[made], *var)
            {
                let (a, b) = (root(&mut first, made), root(&mut first, n));
                first[a.max(b)] = a.min(b);
            }
        }
    }
    let mut joined: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for n in 0..graph.equations.len() {
        joined.entry(root(&mut first, n)).or_default().push(n);
    }
    for group in joined.into_values().filter(|group| group.len() > bound / 2) {
        let mut part = Part::default();
        for n in group {
            if part.bound_with(graph, &uses, n) > bound as isize {
                part.crossing(graph, &uses).for_each(|v| parted[v.index()] = true);
                part = Part::default();
            }
            part.add(graph, &uses, n);
        }
    }
}

/// True if an equation computes a number of the number `var`, or makes it.
fn joins(graph: &Graph, eqn: &Equation, var: Var) -> bool {
    let number = |v: &Var| graph.ty(*v).shape.is_empty();
    eqn.op.is_elementwise() && number(&var) && eqn.outputs.iter().all(number)
}

/// The first equation of the group of `n`.
fn root(first: &mut [usize], mut n: usize) -> usize {
    while first[n] != n {
        first[n] = first[first[n]];
        n = first[n];
    }
    n
}

/// Equations for one kernel.
#[derive(Default)]
struct Part {
    equations: BTreeSet<usize>,
    /// Variables that they read and others make.
    read: BTreeSet<Var>,
    /// Number of uses, by these equations, of variables that they make.
    inside: BTreeMap<Var, usize>,
    /// Number of tensors that they read and give.
    bound: isize,
}

impl Part {
    /// Number of tensors that the part reads and gives with one more equation.
    fn bound_with(&self, graph: &Graph, uses: &DefUse, n: usize) -> isize {
        let eqn = &graph.equations[n];
        let mut bound = self.bound + eqn.outputs.iter().filter(|v| uses.count(**v) > 0).count() as isize;
        for (i, var) in eqn.inputs.iter().enumerate().filter(|(i, v)| !eqn.inputs[..*i].contains(v)) {
            let times = eqn.inputs[i..].iter().filter(|v| *v == var).count();
            match uses.maker(*var) {
                Some(made) if self.equations.contains(&made) => {
                    let inside = self.inside.get(var).copied().unwrap_or(0) + times;
                    bound -= isize::from(inside == uses.count(*var));
                }
                // Constants and positions are part of the kernel.
                Some(made) if graph.equations[made].inputs.is_empty() => {}
                _ => bound += isize::from(!self.read.contains(var)),
            }
        }
        bound
    }

    fn add(&mut self, graph: &Graph, uses: &DefUse, n: usize) {
        self.bound = self.bound_with(graph, uses, n);
        for var in &graph.equations[n].inputs {
            match uses.maker(*var) {
                Some(made) if self.equations.contains(&made) => *self.inside.entry(*var).or_default() += 1,
                _ => _ = self.read.insert(*var),
            }
        }
        self.equations.insert(n);
    }

    /// Variables that the part makes for others.
    fn crossing<'a>(&'a self, graph: &'a Graph, uses: &'a DefUse) -> impl Iterator<Item = Var> + 'a {
        let made = self.equations.iter().flat_map(|n| graph.equations[*n].outputs.iter().copied());
        made.filter(|v| uses.count(*v) > self.inside.get(v).copied().unwrap_or(0))
    }
}

fn union(read: &[Vec<Var>], vars: &[Var]) -> Vec<Var> {
    let mut all: Vec<Var> = vars.iter().flat_map(|v| &read[v.index()]).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn with_barriers(graph: &Graph, parted: &[bool]) -> Graph {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        let mut results = b.bind(eqn.op.clone(), operands).expect(RULE);
        for (var, result) in eqn.outputs.iter().zip(&mut results) {
            if parted[var.index()] {
                *result = b.apply(OptimizationBarrier, &[*result]);
            }
        }
        results
    });
    b.finish(outputs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{DType, TensorType};

    fn sum_of(count: usize) -> Graph {
        let mut b = Builder::new();
        let ty = TensorType::new(DType::F32, [4].as_slice());
        let inputs: Vec<Var> = (0..count).map(|_| b.input(ty.clone())).collect();
        let sum = inputs.iter().copied().reduce(|x, y| b.add(x, y)).expect("a term");
        b.finish(vec![sum])
    }

    #[test]
    fn few_tensors_stay_joined() {
        assert!(part_wide(&sum_of(20), 32).is_none());
        assert!(part_wide(&sum_of(10), 16).is_none());
    }

    #[test]
    fn many_tensors_are_parted() {
        for (buffers, expected) in [(32, 5), (16, 10)] {
            let parted = part_wide(&sum_of(100), buffers).expect("barriers");
            let barriers = parted.equations.iter().filter(|e| e.op.name() == "optimization_barrier").count();
            assert_eq!(barriers, expected, "each sum of 20, or 10, is one of the next ones");
            assert!(part_wide(&parted, buffers).is_none());
        }
    }

    /// One number, made to as many others as `count`, which are all used elsewhere.
    #[test]
    fn many_results_are_parted() {
        let results = |count: usize| {
            let mut b = Builder::new();
            let x = b.input(TensorType::scalar(DType::F32));
            let mut all = vec![b.neg(x)];
            for i in 1..count {
                all.push(b.add(all[i - 1], x));
            }
            let wide: Vec<Var> = all.iter().map(|x| b.broadcast_scalar(*x, &[4])).collect();
            b.finish(wide)
        };
        let bound = Limits::of(32).bound;
        assert!(part_wide(&results(bound - 1), 32).is_none());
        let parted = part_wide(&results(2 * bound), 32).expect("barriers");
        let barriers = parted.equations.iter().filter(|e| e.op.name() == "optimization_barrier").count();
        assert_eq!(barriers, 2 * (bound - 2) + 1, "the results of two parts, and none of the last");
    }

    #[test]
    fn what_is_computed_by_itself_counts_once() {
        let mut b = Builder::new();
        let ty = TensorType::new(DType::F32, [4].as_slice());
        let inputs: Vec<Var> = (0..40).map(|_| b.input(ty.clone())).collect();
        let joined = b.concatenate(&inputs, 0);
        let sum = b.add(joined, joined);
        assert!(part_wide(&b.finish(vec![sum]), 32).is_none());
    }
}
