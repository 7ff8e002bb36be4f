//! Puts the equations of functions in the place of their calls.

use super::{Builder, Graph, RULE, Var, Vars};

/// `graph` without calls: the equations of their functions are among its own.
pub fn inline_calls(graph: &Graph) -> Graph {
    if graph.equations.iter().all(|eqn| eqn.op.call().is_none()) {
        return graph.clone();
    }
    let mut b = Builder::new();
    let mut map: Vec<Option<Var>> = vec![None; graph.types.len()];
    for var in &graph.inputs {
        map[var.index()] = Some(b.input(graph.ty(*var).clone()));
    }
    for eqn in &graph.equations {
        let operands: Vars = eqn.inputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
        b.span = eqn.span;
        let results = match eqn.op.call() {
            Some(body) => b.inline(&body, &operands).into(),
            None => b.bind(eqn.op.clone(), &operands).expect(RULE),
        };
        for (var, result) in eqn.outputs.iter().zip(results) {
            map[var.index()] = Some(result);
        }
    }
    let outputs = graph.outputs.iter().map(|v| map[v.index()].expect(RULE)).collect();
    b.finish(outputs)
}
