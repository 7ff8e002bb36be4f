//! `checkpoint`: rematerialization of a function in the backward pass.

use std::rc::Rc;
use std::sync::Arc;

use super::Args;
use super::interp::Interp;
use super::region::Region;
use super::signal::{Eval, Stop};
use super::tensor::bind_all;
use super::tree::{Tree, flatten, map_trees, unflatten};
use crate::program::{Function, Tensor, Value};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives as p;
use sheaf_syntax::Span;

impl Interp {
    /// Calls `(checkpoint f)`: inside a trace it is recorded as one operation, including computations on captured
    /// tensors alone. If `f` has an effect, asks for a value or returns a function, its equations are recorded one by
    /// one instead.
    pub(super) fn checkpoint(&mut self, f: &Rc<Function>, args: &Args, span: Span) -> Eval<Value> {
        let mut operands = Vec::new();
        for leaf in args.iter().flat_map(flatten) {
            if let Value::Tensor(t @ Tensor::Traced(_)) = leaf {
                operands.push(t);
            }
        }
        if operands.is_empty() || !self.tracing.traces_regions() {
            return self.call_interpreted(f, args.clone(), span);
        }
        let types: Vec<_> = operands.iter().map(|t| t.ty().clone()).collect();
        let traced = self.closed_region(&types, |interp, parameters| {
            let mut parameters = parameters.into_iter();
            let mut inner = Args::new();
            for arg in args {
                inner.push(map_trees(std::slice::from_ref(arg), &mut |_, leaf| {
                    Ok(match &leaf[0] {
                        Value::Tensor(Tensor::Traced(_)) => {
                            Value::Tensor(parameters.next().expect("a parameter for each"))
                        }
                        other => other.clone(),
                    })
                })?);
            }
            let value = interp.call_interpreted(f, inner, span)?;
            let (mut leaves, mut results) = (Vec::new(), Vec::new());
            for leaf in flatten(&value) {
                match leaf {
                    Value::Tensor(t @ Tensor::Traced(_)) => {
                        results.push(t);
                        leaves.push(None);
                    }
                    other => leaves.push(Some(other)),
                }
            }
            Ok(((Tree::of(&value), leaves), results))
        });
        let ((tree, leaves), region) = match traced {
            Ok(traced) => traced,
            Err(signal) if matches!(*signal, Stop::Trace(_)) || signal.is_raised() => {
                return self.call_interpreted(f, args.clone(), span);
            }
            Err(signal) => return Err(signal),
        };
        // A function may have captured inner values, and has no place in a graph.
        if leaves.iter().any(|leaf| matches!(leaf, Some(Value::Function(_)))) {
            return self.call_interpreted(f, args.clone(), span);
        }
        let Region { graph, captures } = region;
        let op: Op = Arc::new(p::Checkpoint { body: Arc::new(graph) });
        let operands: Vec<&Tensor> = operands.iter().chain(&captures).collect();
        let mut results = bind_all(&op, &operands, Some(span))?.into_iter().map(Value::from);
        let mut leaves =
            leaves.into_iter().map(|leaf| leaf.unwrap_or_else(|| results.next().expect("a result for each")));
        unflatten(&tree, &mut leaves)
    }
}
