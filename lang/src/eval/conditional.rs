//! Conditionals on truth values that are not known while tracing: both branches are traced and recorded as one operation.

use std::sync::Arc;

use super::expr::Expr;
use super::interp::{Frame, Interp};
use super::region::{Region, same};
use super::rolled::shared;
use super::signal::{Eval, Reason, Signal, Stop};
use super::tensor::{Tensor, bind_all};
use super::tree::{Tree, flatten, map_trees, unflatten};
use super::value::Value;
use crate::graph::{Builder, Graph, Op, prune};
use crate::primitives as p;
use crate::tensor::{DType, TensorType};

impl Interp {
    /// The value of `(if condition yes no)`, where `condition` has no known truth; nothing where the branches give values
    /// of different structures: the condition must be known then.
    pub(super) fn conditional(
        &mut self,
        condition: &Value,
        yes: &Expr,
        no: &Expr,
        frame: Frame,
    ) -> Eval<Option<Value>> {
        let Value::Tensor(predicate) = condition else { return Ok(None) };
        if !self.traces_regions() || *predicate.ty() != TensorType::scalar(DType::Bool) {
            return Ok(None);
        }
        let Some((yes, of_yes)) = self.branch(yes, frame)? else { return Ok(None) };
        let Some((no, of_no)) = self.branch(no, frame)? else { return Ok(None) };
        let Some((leaves, types)) = common(&yes, &no, &of_yes.graph, &of_no.graph) else { return Ok(None) };
        let (captures, graphs) = shared([of_yes, of_no], 0);
        let [on_true, on_false] = graphs.map(|graph| Arc::new(converted(graph, &types)));
        let op: Op = Arc::new(p::Cond { on_true, on_false });
        let operands: Vec<&Tensor> = std::iter::once(predicate).chain(&captures).collect();
        let results = bind_all(&op, &operands, self.span)?;
        let mut results = results.into_iter().map(Value::from);
        let mut leaves =
            leaves.into_iter().map(|leaf| leaf.unwrap_or_else(|| results.next().expect("a result for each")));
        unflatten(&Tree::of(&yes), &mut leaves).map(Some)
    }

    /// A branch, traced; nothing where it cannot be: it asks for a value of its own, or is an error that the condition
    /// may exclude.
    fn branch(&mut self, branch: &Expr, frame: Frame) -> Eval<Option<(Value, Region)>> {
        let traced = self.region(&[], |interp, _| {
            let value = interp.eval(branch, frame)?;
            let mut tensors = Vec::new();
            for leaf in flatten(&value) {
                tensors.extend(interp.moving_leaf(&leaf)?);
            }
            Ok((value, tensors))
        });
        match traced {
            Ok(branch) => Ok(Some(branch)),
            Err(signal) if self.asks_inside(&signal) || matches!(*signal, Stop::Error(_)) => Ok(None),
            Err(signal) => Err(signal),
        }
    }

    /// Whether a signal asks for the truth of a condition.
    pub(super) fn asks_for_truth(signal: &Signal) -> bool {
        matches!(&**signal, Stop::Trace(stop) if matches!(&stop.reason, Reason::Value { .. }))
    }
}

/// The leaves that both branches have, `None` where they are computed, and the types of the computed ones; nothing where
/// the structures differ.
type Common = Option<(Vec<Option<Value>>, Vec<TensorType>)>;

fn common(yes: &Value, no: &Value, of_yes: &Graph, of_no: &Graph) -> Common {
    let mut computed = of_yes.outputs.iter().zip(&of_no.outputs);
    let mut leaves = Vec::new();
    let mut types = Vec::new();
    let mut differ = false;
    let moves = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Tensor(_));
    let walked = map_trees(&[yes.clone(), no.clone()], &mut |_, pair| {
        match (moves(&pair[0]), moves(&pair[1])) {
            (true, true) => {
                let ty = computed.next().and_then(|(a, b)| unified(of_yes.ty(*a), of_no.ty(*b)));
                differ |= ty.is_none();
                types.extend(ty);
                leaves.push(None);
            }
            (false, false) if same(&pair[0], &pair[1])? => leaves.push(Some(pair[0].clone())),
            _ => differ = true,
        }
        Ok(Value::Nil)
    });
    (walked.is_ok() && !differ).then_some((leaves, types))
}

/// The type that values of two types of one shape are given: a weak number adapts.
fn unified(a: &TensorType, b: &TensorType) -> Option<TensorType> {
    if a == b {
        return Some(a.clone());
    }
    if a.shape != b.shape {
        return None;
    }
    match (a.weak, b.weak) {
        (true, true) => Some(if a.dtype.kind() >= b.dtype.kind() { a.clone() } else { b.clone() }),
        (true, false) if a.dtype.kind() <= b.dtype.kind() => Some(b.clone()),
        (false, true) if b.dtype.kind() <= a.dtype.kind() => Some(a.clone()),
        (false, false) if a.dtype == b.dtype => Some(a.clone()),
        _ => None,
    }
}

/// `graph` with results of these types.
fn converted(graph: Graph, types: &[TensorType]) -> Graph {
    if graph.outputs.iter().zip(types).all(|(v, ty)| graph.ty(*v) == ty) {
        return graph;
    }
    let mut b = Builder::new();
    let inputs: Vec<_> = graph.inputs.iter().map(|v| b.input(graph.ty(*v).clone())).collect();
    let results = b.inline(&graph, &inputs);
    let results = results.into_iter().zip(types).map(|(v, ty)| {
        if b.ty(v) == ty { v } else { b.apply(p::Convert { dtype: ty.dtype, weak: ty.weak }, &[v]) }
    });
    let results = results.collect();
    prune(b.finish(results))
}
