//! Parts what a compiler would join to a kernel with too many operands.

use super::{Builder, Graph, RULE, Var, Vars};
use crate::primitives::OptimizationBarrier;

/// How many tensors element-wise operations may join. IREE computes them all in one kernel, with what uses the result and
/// what comes before, and binds at most 32 buffers to a kernel on a device; a kernel with more fails when it is called.
const WIDEST: usize = 20;

/// `graph` with a barrier behind each element-wise result of as many tensors as a kernel may have; `None` where nothing is
/// so wide, as the sum of 34 arguments is.
pub fn part_wide(graph: &Graph) -> Option<Graph> {
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
        while tensors.len() > WIDEST
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
    parted.contains(&true).then(|| with_barriers(graph, &parted))
}

fn union(read: &[Vec<Var>], vars: &[Var]) -> Vec<Var> {
    let mut all: Vec<Var> = vars.iter().flat_map(|v| &read[v.index()]).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}

fn with_barriers(graph: &Graph, parted: &[bool]) -> Graph {
    let mut b = Builder::new();
    let mut map: Vec<Option<Var>> = vec![None; graph.types.len()];
    for var in &graph.inputs {
        map[var.index()] = Some(b.input(graph.ty(*var).clone()));
    }
    for eqn in &graph.equations {
        let operands: Vars = eqn.inputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
        b.span = eqn.span;
        let results = b.bind(eqn.op.clone(), &operands).expect(RULE);
        for (var, result) in eqn.outputs.iter().zip(results) {
            let result = if parted[var.index()] { b.apply(OptimizationBarrier, &[result]) } else { result };
            map[var.index()] = Some(result);
        }
    }
    let outputs = graph.outputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
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
        assert!(part_wide(&sum_of(WIDEST)).is_none());
    }

    #[test]
    fn many_tensors_are_parted() {
        let parted = part_wide(&sum_of(100)).expect("barriers");
        let barriers = parted.equations.iter().filter(|e| e.op.name() == "optimization_barrier").count();
        assert_eq!(barriers, 5, "each sum of 20 is one of the next 20");
        assert!(part_wide(&parted).is_none());
    }

    #[test]
    fn what_is_computed_by_itself_counts_once() {
        let mut b = Builder::new();
        let ty = TensorType::new(DType::F32, [4].as_slice());
        let inputs: Vec<Var> = (0..40).map(|_| b.input(ty.clone())).collect();
        let joined = b.concatenate(&inputs, 0);
        let sum = b.add(joined, joined);
        assert!(part_wide(&b.finish(vec![sum])).is_none());
    }
}
