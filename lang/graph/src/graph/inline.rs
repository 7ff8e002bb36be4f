//! Puts the equations of functions in the place of their calls.

use super::{Builder, Graph, RULE};

/// `graph` without calls: the equations of their functions are among its own.
pub fn inline_calls(graph: &Graph) -> Graph {
    if graph.equations.iter().all(|eqn| eqn.op.call().is_none()) {
        return graph.clone();
    }
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        match eqn.op.call() {
            Some(body) => b.inline(&body, operands).into(),
            None => b.bind(eqn.op.clone(), operands).expect(RULE),
        }
    });
    b.finish(outputs)
}
