//! The readable form of a graph, one equation a line.

use std::fmt;

use super::{Graph, Var};

impl fmt::Display for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// `v2:f32[4] = add v0 v1`, framed by the parameters and the results.
impl fmt::Display for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let typed = |v: &Var| format!("{v}:{:?}", self.ty(*v));
        let list =
            |vars: &[Var], show: &dyn Fn(&Var) -> String| vars.iter().map(show).collect::<Vec<_>>().join(" ");
        writeln!(f, "graph [{}]", list(&self.inputs, &typed))?;
        for eqn in &self.equations {
            write!(f, "  {} = {}", list(&eqn.outputs, &typed), eqn.op.name())?;
            let parameters = eqn.op.parameters();
            if !parameters.is_empty() {
                write!(f, "[{parameters}]")?;
            }
            for v in &eqn.inputs {
                write!(f, " {v}")?;
            }
            writeln!(f)?;
        }
        writeln!(f, "  [{}]", list(&self.outputs, &|v| v.to_string()))
    }
}
