//! Removes equations that no result needs.

use super::{Equation, Graph};

/// `graph` without dead equations. Parameters stay, used or not, and so do checks
/// and watches; variables keep their numbers.
pub fn prune(mut graph: Graph) -> Graph {
    let mut live = vec![false; graph.types.len()];
    for var in &graph.outputs {
        live[var.index()] = true;
    }
    let (checked, watched) = (graph.checked, graph.watched);
    let needed = |eqn: &Equation, live: &[bool]| {
        let used = eqn.outputs.iter().any(|v| live[v.index()]);
        used || checked && eqn.op.checks() || watched && eqn.op.watches()
    };
    for eqn in graph.equations.iter().rev() {
        if needed(eqn, &live) {
            for var in &eqn.inputs {
                live[var.index()] = true;
            }
        }
    }
    graph.equations.retain(|eqn| needed(eqn, &live));
    graph
}
