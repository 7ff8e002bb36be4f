//! The walk that records a graph again, of passes and transformations.

use smallvec::SmallVec;

use super::{Builder, Equation, Graph, RULE, Var};

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
