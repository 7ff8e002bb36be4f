//! `value-and-grad` and `grad`.

use std::rc::Rc;

use super::Args;
use super::interp::Interp;
use super::signal::{Eval, Reason, Stop, fail};
use super::transforms::{Outcome, not_differentiable, zero_of};
use super::tree::{Tree, map_trees, unflatten};
use crate::program::{Function, GradOptions, Tensor, Value};
use sheaf_graph::graph::{Graph, prune};
use sheaf_graph::transform;
use sheaf_syntax::diagnostic::Diagnostic;

impl Interp {
    /// The gradient of the scalar loss of `f`, in reverse mode. The function runs on concrete values if there are any,
    /// so its effects happen, once.
    pub(super) fn grad(&mut self, f: &Rc<Function>, options: &GradOptions, args: &Args) -> Eval<Value> {
        if let Some(missing) = options.wrt.iter().find(|i| **i >= args.len()) {
            return fail(format!("no argument {missing} to differentiate by: {} were given", args.len()));
        }
        let trace = self.tracing.trace(self.tracing.level);
        // Per leaf: the argument of the graph's parameter, or the gradient of a non-differentiable leaf.
        let mut leaves: Vec<Result<Tensor, Value>> = Vec::new();
        let mut inner = args.clone();
        for i in &options.wrt {
            let before = leaves.len();
            inner[*i] = map_trees(std::slice::from_ref(&args[*i]), &mut |path, leaf| {
                let Some(tensor) = self.differentiable_leaf(&leaf[0], path)? else {
                    leaves.push(Err(zero_of(&leaf[0])));
                    return Ok(leaf[0].clone());
                };
                let parameter = trace.parameter(&tensor);
                leaves.push(Ok(tensor));
                Ok(Value::Tensor(parameter))
            })?;
            if leaves[before..].iter().all(Result::is_err) {
                return Err(not_differentiable("the gradient", &args[*i]));
            }
        }
        let result = self.call(&Value::Function(Rc::clone(f)), inner)?;
        let (loss, extra) = if options.aux {
            match self.sequence(&result).as_deref() {
                Ok([loss, extra]) => (loss.clone(), extra.clone()),
                _ => {
                    return fail(format!(
                        "with :aux the function gives [loss extra], it gave {}",
                        result.describe()
                    ));
                }
            }
        } else {
            (result, Value::Nil)
        };
        let loss = self.scalar_loss(&loss, f)?;
        let level = self.tracing.level;
        let (extra, computed) = Outcome::of(&extra, level, |leaf| match leaf {
            Value::Tensor(t) if t.is_traced_at(level) => Ok(Some(t.clone())),
            _ => Ok(None),
        })?;
        let outputs = std::iter::once(&loss).chain(&computed).map(|t| trace.lift(t)).collect::<Eval<_>>()?;
        let (graph, captured) = trace.finish(outputs);
        let wrt: Vec<usize> = (0..graph.inputs.len() - captured.len()).collect();
        let graph = prune(graph);
        check_reversible(&graph, &wrt)?;
        let graph = transform::value_and_grad(&graph, 0, &wrt);
        let arguments: Vec<Tensor> =
            leaves.iter().filter_map(|leaf| leaf.as_ref().ok().cloned()).chain(captured).collect();
        let mut results = self.applied(&graph, &arguments)?.into_iter().map(Value::from);

        let value = results.next().expect("the loss");
        let extra = extra.build(&mut results)?;
        let mut gradients = leaves.into_iter().map(|leaf| {
            leaf.err().unwrap_or_else(|| results.next().expect("a gradient for every parameter"))
        });
        let mut trees = Vec::new();
        for i in &options.wrt {
            trees.push(unflatten(&Tree::of(&args[*i]), &mut gradients)?);
        }
        let gradient = if options.wrt_list { Value::list(trees) } else { trees.swap_remove(0) };
        Ok(match (options.value, options.aux) {
            (true, false) => Value::list(vec![value, gradient]),
            (true, true) => Value::list(vec![Value::list(vec![value, extra]), gradient]),
            (false, false) => gradient,
            (false, true) => Value::list(vec![gradient, extra]),
        })
    }

    fn scalar_loss(&mut self, loss: &Value, f: &Rc<Function>) -> Eval<Tensor> {
        match loss {
            Value::Tensor(t) if t.ty().rank() == 0 && (t.ty().dtype.is_float() || t.ty().weak) => {
                return self.float(loss);
            }
            Value::Float(_) | Value::Int(_) => return self.float(loss),
            _ => {}
        }
        let mut d = Diagnostic::error(format!(
            "the gradient of {} wants a scalar float loss, it gave {}",
            f.name(),
            loss.describe()
        ));
        d = match loss {
            Value::Tensor(t) if t.ty().rank() > 0 => {
                d.help("reduce the loss to one number with (mean ...) or (sum ...)")
            }
            Value::Tensor(_) => d.help("integers and booleans have no slope: compute the loss in floats"),
            Value::List(list) if list.items.len() == 2 => d.help("if f gives [loss extra], say :aux"),
            _ => d.help("f is to give one number"),
        };
        if let (Some(here), Some(code)) = (self.span, f.code()) {
            d = d.at(here, "differentiated here").at(code.head, "the function");
        }
        Err(d.into())
    }
}

/// Fails if a loop of unknown length is differentiated; with known values it is unrolled.
fn check_reversible(graph: &Graph, wrt: &[usize]) -> Eval<()> {
    match transform::no_vjp(graph, wrt) {
        Some((span, reason)) => Err(Stop::trace(Reason::NoVjp(reason), span)),
        None => Ok(()),
    }
}
