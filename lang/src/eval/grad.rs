//! `value-and-grad` and `grad`: the function is traced to a graph, the graph is differentiated, and the result is
//! computed or, inside another trace, recorded.

use std::rc::Rc;

use super::interp::Interp;
use super::signal::{Eval, fail};
use super::tensor::{Concrete, Tensor, Trace, apply_graph};
use super::tree::{Tree, flatten, map_trees, unflatten};
use super::value::{GradOptions, Value};
use super::{Args, Function};
use crate::diagnostic::Diagnostic;
use crate::graph::prune;
use crate::syntax::Span;
use crate::tensor::HostTensor;
use crate::transform;

/// A trace longer than this is taken for one without end.
pub(super) const MAX_EQUATIONS: usize = 5_000_000;

/// One leaf of the arguments that are differentiated with respect to.
struct Leaf {
    /// The tensor passed for the graph's parameter; `None` for integers, whose gradient is zero.
    argument: Option<Tensor>,
    zero: Option<Value>,
}

impl Interp {
    pub(super) fn call_grad(
        &mut self,
        f: &Value,
        options: &GradOptions,
        args: &Args,
        span: Span,
    ) -> Eval<Value> {
        if let Some(missing) = options.wrt.iter().find(|i| **i >= args.len()) {
            return fail(format!("no argument {missing} to differentiate by: {} were given", args.len()));
        }
        self.level += 1;
        let result = self.differentiate(f, options, args);
        self.level -= 1;
        result.map_err(|s| s.at(span))
    }

    fn differentiate(&mut self, f: &Value, options: &GradOptions, args: &Args) -> Eval<Value> {
        let trace = Trace::new(self.level, MAX_EQUATIONS);
        let mut leaves = Vec::new();
        let mut inner = args.clone();
        for i in &options.wrt {
            inner[*i] = map_trees(std::slice::from_ref(&args[*i]), &mut |leaf| {
                self.input(&trace, &leaf[0], &mut leaves)
            })?;
        }
        let result = self.call(f, inner)?;
        let (loss, extra) = if options.aux {
            match self.sequence(&result).as_deref() {
                Ok([loss, extra]) => (loss.clone(), Some(extra.clone())),
                _ => {
                    return fail(format!(
                        "with :aux the function gives [loss extra], it gave {}",
                        result.describe()
                    ));
                }
            }
        } else {
            (result, None)
        };
        let loss = self.scalar_loss(&loss, f)?;
        let mut outputs = vec![trace.lift(&loss)?];
        let extra_leaves = extra.as_ref().map_or_else(Vec::new, flatten);
        let traced = |leaf: &Value| matches!(leaf, Value::Tensor(t) if t.is_traced_at(self.level));
        for leaf in extra_leaves.iter().filter(|l| traced(l)) {
            let Value::Tensor(t) = leaf else { unreachable!("filtered") };
            outputs.push(trace.lift(t)?);
        }
        let (graph, captured) = trace.finish(outputs);
        let wrt: Vec<usize> = (0..graph.inputs.len() - captured.len()).collect();
        let graph = prune(transform::value_and_grad(&prune(graph), 0, &wrt));
        let arguments: Vec<Tensor> =
            leaves.iter().filter_map(|l| l.argument.clone()).chain(captured).collect();
        let mut results = apply_graph(&graph, &arguments)?.into_iter();

        let value = Value::from(results.next().expect("the loss"));
        let extra = extra.map(|tree| {
            let mut leaves = extra_leaves.into_iter().map(|leaf| {
                if traced(&leaf) { Value::from(results.next().expect("an output for it")) } else { leaf }
            });
            unflatten(&Tree::of(&tree), &mut leaves)
        });
        let extra = extra.transpose()?;
        let mut gradients = leaves.into_iter().map(|leaf| match leaf.zero {
            Some(zero) => zero,
            None => Value::from(results.next().expect("a gradient for every parameter")),
        });
        let mut trees = Vec::new();
        for i in &options.wrt {
            trees.push(unflatten(&Tree::of(&args[*i]), &mut gradients)?);
        }
        let gradient = if options.wrt_list { Value::list(trees) } else { trees.swap_remove(0) };
        Ok(match (options.value, extra) {
            (true, None) => Value::list(vec![value, gradient]),
            (true, Some(extra)) => Value::list(vec![Value::list(vec![value, extra]), gradient]),
            (false, None) => gradient,
            (false, Some(extra)) => Value::list(vec![gradient, extra]),
        })
    }

    /// A leaf of a differentiated argument as a parameter of the trace.
    fn input(&mut self, trace: &Rc<Trace>, leaf: &Value, leaves: &mut Vec<Leaf>) -> Eval<Value> {
        let tensor = match leaf {
            Value::Int(n) => Tensor::weak(HostTensor::scalar(*n as f32)),
            Value::Float(x) => Tensor::weak(HostTensor::scalar(*x as f32)),
            Value::Tensor(t) if t.ty().dtype.is_float() => t.clone(),
            Value::Tensor(t) if t.ty().weak => self.float(leaf)?,
            Value::Tensor(t) => {
                let zero = Value::Tensor(Tensor::host(HostTensor::filled(t.ty().dtype, t.shape(), 0.0)));
                leaves.push(Leaf { argument: None, zero: Some(zero) });
                return Ok(leaf.clone());
            }
            other => {
                return Err(Diagnostic::error(format!(
                    "cannot differentiate with respect to {}",
                    other.describe()
                ))
                .help("keep it out of the parameters, or choose the argument with :wrt")
                .into());
            }
        };
        let value: Option<Rc<Concrete>> = tensor.concrete().cloned();
        let input = trace.input(tensor.ty().clone(), value, tensor.origin());
        leaves.push(Leaf { argument: Some(tensor), zero: None });
        Ok(Value::Tensor(input))
    }

    fn scalar_loss(&mut self, loss: &Value, f: &Value) -> Eval<Tensor> {
        let name = match f {
            Value::Function(f) => f.name(),
            other => other.describe(),
        };
        let origin = match f {
            Value::Function(f) => match &**f {
                Function::Closure(c) => Some(c.code.head),
                _ => None,
            },
            _ => None,
        };
        let tensor = match loss {
            Value::Tensor(t) if t.ty().rank() == 0 && (t.ty().dtype.is_float() || t.ty().weak) => {
                return self.float(loss);
            }
            Value::Float(x) => return Ok(Tensor::weak(HostTensor::scalar(*x as f32))),
            Value::Int(n) => return Ok(Tensor::weak(HostTensor::scalar(*n as f32))),
            other => other.describe(),
        };
        let mut d =
            Diagnostic::error(format!("the gradient of {name} wants a scalar float loss, it gave {tensor}"))
                .help("reduce the loss to one number with (mean ...) or (sum ...)");
        if let (Some(here), Some(origin)) = (self.span, origin) {
            d = d.at(here, "differentiated here").at(origin, "the function");
        }
        Err(d.into())
    }
}
