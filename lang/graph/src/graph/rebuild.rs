//! The walk that records a graph again, of passes and transformations.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{Builder, Equation, Graph, Op, RULE, Var};
use crate::primitives::{Checkpoint, CustomVjp};

/// `op` with each function inside of it replaced; the gradient of a `custom_vjp` stays.
pub(crate) fn with_functions(op: &Op, f: &mut dyn FnMut(&Graph) -> Graph) -> Op {
    if op.functions().is_empty() {
        Arc::clone(op)
    } else if let Some(op) = op.downcast_ref::<Checkpoint>() {
        Arc::new(Checkpoint { body: Arc::new(f(&op.body)) })
    } else if let Some(op) = op.downcast_ref::<CustomVjp>() {
        Arc::new(CustomVjp { forward: Arc::new(f(&op.forward)), ..op.clone() })
    } else {
        op.map_bodies(f).unwrap_or_else(|| unreachable!("{} has no functions inside", op.name()))
    }
}

impl Graph {
    /// Visits the equations in order: `record` gives the values of an equation's results for those of its operands.
    /// `inputs` are the values of the parameters. Returns those of the results.
    pub fn rebuild<T: Copy, R: IntoIterator<Item = T>>(
        &self,
        inputs: &[T],
        mut record: impl FnMut(&Equation, &[T]) -> R,
    ) -> Vec<T> {
        let mut map: Vec<Option<T>> = vec![None; self.types.len()];
        for (parameter, input) in self.inputs.iter().zip(inputs) {
            map[parameter.index()] = Some(*input);
        }
        for eqn in &self.equations {
            let operands: SmallVec<[T; 4]> = eqn.inputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
            for (var, result) in eqn.outputs.iter().zip(record(eqn, &operands)) {
                map[var.index()] = Some(result);
            }
        }
        self.outputs.iter().map(|v| map[v.index()].expect(RULE)).collect()
    }
}

impl Builder {
    /// Adds parameters of the types of those of `graph`.
    pub fn inputs_of(&mut self, graph: &Graph) -> Vec<Var> {
        graph.inputs.iter().map(|v| self.input(graph.ty(*v).clone())).collect()
    }
}
