//! Vectorisation: one graph for a batch of inputs.

use super::{PerVar, finish};
use crate::graph::{Builder, Graph, RULE, Var, Vars};
use crate::primitives::batch_to_front;
use crate::tensor::TensorType;

/// `graph` for a batch of `size` inputs.
///
/// Parameter `i` gets an axis of extent `size` at position `in_axes[i]`, or is shared if that is `None`. Every result
/// gets the axis in front; one that depends on no batched parameter is repeated.
///
/// # Panics
/// If the length of `in_axes` is not the number of parameters, or an axis exceeds a parameter's rank; callers check
/// both, to report errors with spans.
pub fn vmap(graph: &Graph, in_axes: &[Option<usize>], size: usize) -> Graph {
    assert_eq!(in_axes.len(), graph.inputs.len(), "an entry of in_axes for each parameter");
    let mut b = Builder::new();
    let mut map: PerVar<(Var, Option<usize>)> = vec![None; graph.types.len()];
    for (var, axis) in graph.inputs.iter().zip(in_axes) {
        let ty = batched_type(graph.ty(*var), *axis, size);
        map[var.index()] = Some((b.input(ty), *axis));
    }
    for eqn in &graph.equations {
        b.span = eqn.span;
        let (args, axes): (Vars, Vec<Option<usize>>) =
            eqn.inputs.iter().map(|v| map[v.index()].expect(RULE)).unzip();
        if axes.iter().any(Option::is_some) {
            let results = eqn.op.batch(&mut b, &args, &axes);
            for (var, (result, axis)) in eqn.outputs.iter().zip(results) {
                map[var.index()] = Some((result, Some(axis)));
            }
        } else {
            let results = b.bind(eqn.op.clone(), &args).expect(RULE);
            for (var, result) in eqn.outputs.iter().zip(results) {
                map[var.index()] = Some((result, None));
            }
        }
    }
    b.span = None;
    let outputs = graph.outputs.iter().map(|v| {
        let (result, axis) = map[v.index()].expect(RULE);
        batch_to_front(&mut b, result, axis, size)
    });
    let outputs = outputs.collect();
    finish(b, outputs)
}

fn batched_type(ty: &TensorType, axis: Option<usize>, size: usize) -> TensorType {
    let Some(axis) = axis else { return ty.clone() };
    let mut shape = ty.shape.clone();
    shape.insert(axis, size);
    ty.with_shape(shape)
}
