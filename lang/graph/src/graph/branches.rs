//! Conditionals as selections among the results of both branches.

use super::rebuild::with_functions;
use super::{Builder, Graph, RULE};
use crate::primitives::Cond;

/// `graph` without `cond`, also inside of operations: both branches are computed, and the results of one are selected. The checks
/// of the other do not count.
pub fn select_branches(graph: &Graph) -> Graph {
    let mut b = Builder::new();
    let inputs = b.inputs_of(graph);
    let outputs = graph.rebuild(&inputs, |eqn, operands| {
        b.span = eqn.span;
        let op = with_functions(&eqn.op, &mut select_branches);
        match op.downcast_ref::<Cond>() {
            Some(cond) => cond.select(&mut b, operands).into(),
            None => b.bind(op, operands).expect(RULE),
        }
    });
    b.span = None;
    b.finish(outputs)
}
