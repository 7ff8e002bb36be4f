//! Checks that a graph is well formed: run after every pass in debug builds and tests.

use smallvec::SmallVec;

use super::Graph;
use crate::tensor::TensorType;

/// Checks single assignment, definition before use, the type of every result against the primitive's type rule,
/// and that the results are defined. The error says which equation broke which rule.
pub fn verify(graph: &Graph) -> Result<(), String> {
    let mut defined = vec![false; graph.types.len()];
    for var in &graph.inputs {
        let slot = defined.get_mut(var.index()).ok_or(format!("parameter {var} has no type"))?;
        if std::mem::replace(slot, true) {
            return Err(format!("parameter {var} appears twice"));
        }
    }
    for (n, eqn) in graph.equations.iter().enumerate() {
        let place = || format!("equation {n} ({})", eqn.op.name());
        let mut types: SmallVec<[&TensorType; 4]> = SmallVec::new();
        for var in &eqn.inputs {
            if !defined.get(var.index()).copied().unwrap_or(false) {
                return Err(format!("{}: operand {var} is not defined before it", place()));
            }
            types.push(graph.ty(*var));
        }
        let results = eqn.op.infer(&types).map_err(|fault| format!("{}: {}", place(), fault.message))?;
        if results.len() != eqn.outputs.len() {
            return Err(format!("{}: {} results, {} variables", place(), results.len(), eqn.outputs.len()));
        }
        for (var, ty) in eqn.outputs.iter().zip(&results) {
            let declared = graph.types.get(var.index()).ok_or(format!("{}: {var} has no type", place()))?;
            if declared != ty {
                return Err(format!("{}: {var} is {declared:?}, its rule gives {ty:?}", place()));
            }
            if std::mem::replace(&mut defined[var.index()], true) {
                return Err(format!("{}: {var} is assigned twice", place()));
            }
        }
    }
    match graph.outputs.iter().find(|v| !defined.get(v.index()).copied().unwrap_or(false)) {
        Some(var) => Err(format!("result {var} is not defined")),
        None => Ok(()),
    }
}
