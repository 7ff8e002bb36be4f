//! Evaluates a graph on the host.

use smallvec::SmallVec;

use super::{Graph, RULE};
use crate::tensor::HostTensor;

/// The results of `graph` for `inputs`, computed by the primitives' host rules.
pub fn evaluate(graph: &Graph, inputs: &[HostTensor]) -> Vec<HostTensor> {
    let mut values = vec![None; graph.types.len()];
    for (var, value) in graph.inputs.iter().zip(inputs) {
        values[var.index()] = Some(value.clone());
    }
    evaluate_with(graph, values)
}

/// Like [`evaluate`], with the values of some variables known already; their equations are not run again.
pub fn evaluate_with(graph: &Graph, mut values: Vec<Option<HostTensor>>) -> Vec<HostTensor> {
    values.resize(graph.types.len(), None);
    for eqn in &graph.equations {
        if eqn.outputs.iter().all(|v| values[v.index()].is_some()) {
            continue;
        }
        let results = {
            let args: SmallVec<[&HostTensor; 4]> =
                eqn.inputs.iter().map(|v| values[v.index()].as_ref().expect(RULE)).collect();
            eqn.op.evaluate(&args)
        };
        for (var, value) in eqn.outputs.iter().zip(results) {
            values[var.index()] = Some(value);
        }
    }
    graph.outputs.iter().map(|v| values[v.index()].clone().expect(RULE)).collect()
}
