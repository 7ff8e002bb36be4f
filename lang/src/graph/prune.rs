//! Removes equations that no result needs.

use super::Graph;

/// `graph` without dead equations. Parameters stay, used or not; variables keep their numbers.
pub fn prune(mut graph: Graph) -> Graph {
    let mut live = vec![false; graph.types.len()];
    for var in &graph.outputs {
        live[var.index()] = true;
    }
    for eqn in graph.equations.iter().rev() {
        if eqn.outputs.iter().any(|v| live[v.index()]) {
            for var in &eqn.inputs {
                live[var.index()] = true;
            }
        }
    }
    graph.equations.retain(|eqn| eqn.outputs.iter().any(|v| live[v.index()]));
    graph
}
