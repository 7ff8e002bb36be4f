//! Definitions and uses of the variables of a graph.

use smallvec::SmallVec;

use super::{Equation, Graph, Var};

/// The equation that defines each variable of a graph, and its uses.
pub struct DefUse<'a> {
    /// The graph.
    pub graph: &'a Graph,
    makers: Vec<Option<usize>>,
    readers: Vec<SmallVec<[usize; 2]>>,
    results: Vec<usize>,
}

impl<'a> DefUse<'a> {
    /// The definitions and uses in `graph`, without those inside of operations.
    pub fn of(graph: &'a Graph) -> DefUse<'a> {
        let mut makers = vec![None; graph.types.len()];
        let mut readers = vec![SmallVec::new(); graph.types.len()];
        let mut results = vec![0; graph.types.len()];
        for (n, eqn) in graph.equations.iter().enumerate() {
            eqn.outputs.iter().for_each(|v| makers[v.index()] = Some(n));
            eqn.inputs.iter().for_each(|v| readers[v.index()].push(n));
        }
        graph.outputs.iter().for_each(|v| results[v.index()] += 1);
        DefUse { graph, makers, readers, results }
    }

    /// Position of the equation that defines `var`; `None` for a parameter.
    pub fn maker(&self, var: Var) -> Option<usize> {
        self.makers[var.index()]
    }

    /// The equation that defines `var`; `None` for a parameter.
    pub fn definition(&self, var: Var) -> Option<&'a Equation> {
        self.maker(var).map(|n| &self.graph.equations[n])
    }

    /// Positions of the equations that read `var`, ascending, one for each operand.
    pub fn readers(&self, var: Var) -> &[usize] {
        &self.readers[var.index()]
    }

    /// Number of occurrences of `var` among the results of the graph.
    pub fn results(&self, var: Var) -> usize {
        self.results[var.index()]
    }

    /// Number of uses of `var`: as operands, and as results of the graph.
    pub fn count(&self, var: Var) -> usize {
        self.readers(var).len() + self.results(var)
    }
}

impl Graph {
    /// A flag for each variable: true for `vars`, and for what depends on them.
    pub fn dependents(&self, vars: &[Var]) -> Vec<bool> {
        let mut depends = vec![false; self.types.len()];
        vars.iter().for_each(|v| depends[v.index()] = true);
        for eqn in &self.equations {
            if eqn.inputs.iter().any(|v| depends[v.index()]) {
                eqn.outputs.iter().for_each(|v| depends[v.index()] = true);
            }
        }
        depends
    }
}
