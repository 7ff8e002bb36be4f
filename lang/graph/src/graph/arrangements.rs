//! Holds apart the arrangements in which a kernel would read one result.
//!
//! IREE joins a reduction with the element-wise operations that read its result. If they read it in two arrangements, such as
//! rows and columns of pairwise distances or a matrix and its transpose, it computes tiles for one of them, and reads memory that was never
//! written for the other (Q47).

use smallvec::SmallVec;

use super::part::with_barriers;
use super::{Equation, Graph, Var};
use crate::primitives::{BroadcastInDim, OptimizationBarrier, Reshape, Transpose};

/// For each axis of a variable, the axis of the root that it follows.
type Axes = SmallVec<[Option<usize>; 4]>;

/// A result that a variable is computed of, element by element.
#[derive(Clone)]
struct Reading {
    root: Var,
    axes: Axes,
    /// The variable that was arranged last on the way.
    arranged: Option<Var>,
}

/// Maximum results that a variable is computed of: a kernel has fewer.
const MAX_READINGS: usize = 32;

/// `graph` with a barrier behind each value of which element-wise operations read two arrangements; `None` if there is none.
pub fn hold_apart(graph: &Graph) -> Option<Graph> {
    let mut held = vec![false; graph.types.len()];
    let mut readings: Vec<Vec<Reading>> = vec![Vec::new(); graph.types.len()];
    for eqn in &graph.equations {
        let read = if eqn.inputs.is_empty() || eqn.op.is::<OptimizationBarrier>() {
            Some(Vec::new())
        } else if arranges(eqn) {
            arranged(graph, eqn, &readings[eqn.inputs[0].index()])
        } else if eqn.op.is_elementwise() {
            let all: Vec<&Reading> = eqn.inputs.iter().flat_map(|v| &readings[v.index()]).collect();
            let joined = joined(graph, &all, &mut held);
            (joined.len() <= MAX_READINGS).then_some(joined)
        } else {
            None
        };
        for var in &eqn.outputs {
            readings[var.index()] = read.clone().unwrap_or_else(|| vec![root(graph, *var)]);
        }
    }
    held.contains(&true).then(|| with_barriers(graph, &held))
}

fn root(graph: &Graph, var: Var) -> Reading {
    Reading { root: var, axes: (0..graph.ty(var).rank()).map(Some).collect(), arranged: None }
}

/// The readings without those that are alike. Of two arrangements of one root, the value of fewer elements that is arranged is held.
fn joined(graph: &Graph, all: &[&Reading], held: &mut [bool]) -> Vec<Reading> {
    let mut joined: Vec<Reading> = Vec::new();
    for reading in all {
        let known = |other: &Reading| other.root == reading.root && other.axes == reading.axes;
        if joined.iter().any(known) {
            continue;
        }
        for other in joined.iter().filter(|other| other.root == reading.root) {
            let arranged = || reading.arranged.into_iter().chain(other.arranged);
            if !arranged().any(|var| held[var.index()])
                && let Some(var) = arranged().min_by_key(|var| graph.ty(*var).count())
            {
                held[var.index()] = true;
            }
        }
        joined.push((*reading).clone());
    }
    joined
}

fn arranges(eqn: &Equation) -> bool {
    eqn.op.is::<BroadcastInDim>() || eqn.op.is::<Transpose>() || eqn.op.is::<Reshape>()
}

/// The readings of the result of an equation that arranges its operand; `None` if axes are split or joined.
fn arranged(graph: &Graph, eqn: &Equation, read: &[Reading]) -> Option<Vec<Reading>> {
    let from = &graph.ty(eqn.inputs[0]).shape;
    let to = &graph.ty(eqn.outputs[0]).shape;
    // For each axis of the result, that of the operand.
    let axes: Axes = if let Some(op) = eqn.op.downcast_ref::<BroadcastInDim>() {
        (0..to.len()).map(|axis| op.dims.iter().position(|dim| *dim == axis)).collect()
    } else if let Some(op) = eqn.op.downcast_ref::<Transpose>() {
        op.permutation.iter().copied().map(Some).collect()
    } else {
        let long = |shape: &[usize]| -> Vec<usize> { (0..shape.len()).filter(|a| shape[*a] != 1).collect() };
        let (before, after) = (long(from), long(to));
        if before.iter().map(|a| from[*a]).ne(after.iter().map(|a| to[*a])) {
            return None;
        }
        (0..to.len()).map(|axis| after.iter().position(|a| *a == axis).map(|i| before[i])).collect()
    };
    let follow = |reading: &Reading| Reading {
        root: reading.root,
        // An axis of one element follows none.
        axes: axes.iter().map(|axis| axis.filter(|a| from[*a] != 1).and_then(|a| reading.axes[a])).collect(),
        arranged: Some(eqn.inputs[0]),
    };
    Some(read.iter().map(follow).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Builder, evaluate};
    use crate::tensor::{DType, HostTensor, TensorType};

    /// The number of barriers, and the same values with them.
    fn barriers(f: impl FnOnce(&mut Builder, Var) -> Var) -> usize {
        let mut b = Builder::new();
        let x = b.input(TensorType::new(DType::F32, [3, 3].as_slice()));
        let result = f(&mut b, x);
        let graph = b.finish(vec![result]);
        let Some(apart) = hold_apart(&graph) else { return 0 };
        let x = HostTensor::new([3, 3].as_slice(), (0..9).map(|i| i as f32).collect::<Vec<f32>>());
        assert_eq!(evaluate(&graph, std::slice::from_ref(&x)), evaluate(&apart, &[x]));
        apart.equations.iter().filter(|eqn| eqn.op.is::<OptimizationBarrier>()).count()
    }

    fn with_sums(b: &mut Builder, x: Var) -> Var {
        let sums = b.sum(x, &[1]);
        let sums = b.broadcast_in_dim(sums, &[3, 3], &[0]);
        b.add(x, sums)
    }

    #[test]
    fn rows_and_columns_of_a_sum_are_held_apart() {
        let pairs = barriers(|b, x| {
            let sums = b.sum(x, &[1]);
            let rows = b.broadcast_in_dim(sums, &[3, 3], &[0]);
            let columns = b.broadcast_in_dim(sums, &[3, 3], &[1]);
            b.add(rows, columns)
        });
        assert_eq!(pairs, 1);
        let transposed = barriers(|b, x| {
            let y = with_sums(b, x);
            let (absolute, turned) = (b.abs(y), b.transpose(y, &[1, 0]));
            b.mul(absolute, turned)
        });
        assert_eq!(transposed, 1);
    }

    #[test]
    fn one_arrangement_needs_no_barrier() {
        assert_eq!(barriers(with_sums), 0);
        let twice = barriers(|b, x| {
            let y = with_sums(b, x);
            with_sums(b, y)
        });
        assert_eq!(twice, 0, "a sum of each of two axes is a root of its own");
        let argument = barriers(|b, x| {
            let turned = b.transpose(x, &[1, 0]);
            b.add(x, turned)
        });
        assert_eq!(argument, 0, "arguments are in memory");
        let keepdims = barriers(|b, x| {
            let sums = b.sum(x, &[1]);
            let column = b.reshape(sums, &[3, 1]);
            let [first, second] = [&[0][..], &[0, 1]].map(|dims| {
                let x = if dims.len() == 1 { sums } else { column };
                b.broadcast_in_dim(x, &[3, 3], dims)
            });
            b.add(first, second)
        });
        assert_eq!(keepdims, 0, "both are rows");
    }
}
