//! Vectorisation: one graph for a batch of inputs.

use super::finish;
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
    let parameters = graph.inputs.iter().zip(in_axes);
    let inputs: Vec<(Var, Option<usize>)> =
        parameters.map(|(var, axis)| (b.input(batched_type(graph.ty(*var), *axis, size)), *axis)).collect();
    let outputs = graph.rebuild(&inputs, |eqn, operands| -> Vec<(Var, Option<usize>)> {
        b.span = eqn.span;
        let (args, axes): (Vars, Vec<Option<usize>>) = operands.iter().copied().unzip();
        if axes.iter().any(Option::is_some) {
            let results = eqn.op.batch(&mut b, &args, &axes);
            results.into_iter().map(|(result, axis)| (result, Some(axis))).collect()
        } else {
            let results = b.bind(eqn.op.clone(), &args).expect(RULE);
            results.into_iter().map(|result| (result, None)).collect()
        }
    });
    b.span = None;
    let outputs = outputs.into_iter().map(|(result, axis)| batch_to_front(&mut b, result, axis, size));
    let outputs = outputs.collect();
    finish(b, outputs)
}

fn batched_type(ty: &TensorType, axis: Option<usize>, size: usize) -> TensorType {
    let Some(axis) = axis else { return ty.clone() };
    let mut shape = ty.shape.clone();
    shape.insert(axis, size);
    ty.with_shape(shape)
}
