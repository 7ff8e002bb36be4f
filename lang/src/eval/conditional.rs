//! Conditionals with conditions unknown while tracing: both branches are traced and recorded as one operation.

use std::sync::Arc;

use super::interp::{Frame, Interp};
use super::region::{Difference, Region, same};
use super::signal::{Differing, Eval, Reason, Signal, Stop};
use super::staged_loop::shared;
use super::tensor::{apply_graph, bind_all};
use super::tree::{Tree, flatten, map_trees, unflatten};
use crate::builtins;
use crate::program::{Expr, Tensor, Value};
use sheaf_graph::graph::{Builder, Graph, Op, prune};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_syntax::Span;

/// Maximum scalar operations that are computed rather than skipped: a conditional costs a program more.
const MAX_EAGER_COST: u64 = 64;

/// The parts of `(case x key value ... default?)`.
#[derive(Clone, Copy)]
pub(super) struct Case<'e> {
    /// The keys and the value of each arm.
    pub arms: &'e [(Vec<Value>, Expr)],
    /// The default, if no key equals; nil if there is none.
    pub default: Option<&'e Expr>,
    /// The whole form.
    pub span: Span,
}

impl Case<'_> {
    /// Span of the code after an arm whose keys do not equal; the whole form for the nil of a missing default.
    fn otherwise(&self, arm: usize) -> Span {
        self.arms.get(arm + 1).map(|(_, e)| e).or(self.default).map_or(self.span, |e| e.span)
    }

    /// True if both booleans are among the keys up to those of an arm.
    fn has_both(&self, arm: usize) -> bool {
        let keys = self.arms[..=arm].iter().flat_map(|(keys, _)| keys);
        let has = |wanted: bool| keys.clone().any(|key| matches!(key, Value::Bool(b) if *b == wanted));
        has(true) && has(false)
    }
}

/// The value of a branch, or the error it raises, and its graph.
type Branch = (Eval<Value>, Region);

/// A value, or the reason that no conditional was recorded: types that differ, if that is it.
type Chosen<T> = Result<T, Option<Box<Differing>>>;

impl Interp {
    /// A conditional with an unknown `condition`: the value of `yes` if it holds, else of `no`; refused if their types
    /// differ: then the condition must be known. `places` are the spans of the branches.
    pub(super) fn conditional(
        &mut self,
        condition: &Value,
        places: [Span; 2],
        yes: impl FnOnce(&mut Interp) -> Eval<Value>,
        no: impl FnOnce(&mut Interp) -> Eval<Value>,
    ) -> Eval<Chosen<Value>> {
        let Some(predicate) = self.predicate(condition) else { return Ok(Err(None)) };
        let yes = match self.branch(yes)? {
            Ok(yes) => yes,
            Err(refused) => return Ok(Err(refused)),
        };
        let no = match self.branch(no)? {
            Ok(no) => no,
            Err(refused) => return Ok(Err(refused)),
        };
        self.choose(&predicate, places, yes, no)
    }

    /// The value of the branch selected by `predicate`.
    fn choose(
        &mut self,
        predicate: &Tensor,
        places: [Span; 2],
        (yes, of_yes): Branch,
        (no, of_no): Branch,
    ) -> Eval<Chosen<Value>> {
        let common = match (&yes, &no) {
            (Ok(yes), Ok(no)) => common(yes, no, &of_yes.graph, &of_no.graph),
            (Ok(value), Err(_)) => only(value, &of_yes.graph),
            (Err(_), Ok(value)) => only(value, &of_no.graph),
            (Err(_), Err(_)) => Ok((Vec::new(), Vec::new())),
        };
        let (leaves, types) = match common {
            Ok(common) => common,
            Err(difference) => return Ok(Err(Some(difference.of_branches(places)))),
        };
        let (captures, graphs) = shared([of_yes, of_no], 0);
        let [on_true, on_false] = graphs.map(|graph| Arc::new(converted(graph, &types)));
        let op: Op = Arc::new(p::Cond { on_true, on_false });
        let operands: Vec<&Tensor> = std::iter::once(predicate).chain(&captures).collect();
        let results = bind_all(&op, &operands, self.span)?;
        let mut results = results.into_iter().map(Value::from);
        let mut leaves =
            leaves.into_iter().map(|leaf| leaf.unwrap_or_else(|| results.next().expect("a result for each")));
        unflatten(&Tree::of(&yes.or(no)?), &mut leaves).map(Ok)
    }

    /// The condition as a scalar boolean tensor, if a conditional can be recorded here.
    fn predicate(&self, condition: &Value) -> Option<Tensor> {
        match condition {
            Value::Tensor(t)
                if self.tracing.traces_regions() && *t.ty() == TensorType::scalar(DType::Bool) =>
            {
                Some(t.clone())
            }
            _ => None,
        }
    }

    /// `(and first rest)` or `(or first rest)`, with `first` unknown. A boolean `rest` that is cheap is computed rather
    /// than skipped.
    fn short_circuit(
        &mut self,
        first: &Value,
        places: [Span; 2],
        or: bool,
        rest: impl FnOnce(&mut Interp) -> Eval<Value>,
    ) -> Eval<Chosen<Value>> {
        let Some(predicate) = self.predicate(first) else { return Ok(Err(None)) };
        let rest = match self.branch(rest)? {
            Ok(rest) => rest,
            Err(refused) => return Ok(Err(refused)),
        };
        let Region { graph, captures } = &rest.1;
        let one = [TensorType::scalar(DType::Bool)];
        if graph.outputs.iter().map(|v| graph.ty(*v)).eq(&one)
            && graph.cost() <= MAX_EAGER_COST
            && !graph.checked
        {
            let rest = apply_graph(graph, captures)?;
            let operands = [&predicate, &rest[0]];
            let result =
                if or { self.op(p::Binary(p::Or), &operands) } else { self.op(p::Binary(p::And), &operands) };
            return result.map(Value::from).map(Ok);
        }
        let kept = match self.branch(|_| Ok(first.clone()))? {
            Ok(kept) => kept,
            Err(refused) => return Ok(Err(refused)),
        };
        if or {
            self.choose(&predicate, places, kept, rest)
        } else {
            self.choose(&predicate, places, rest, kept)
        }
    }

    /// Traces a branch; refused if it asks for a value of its own, or raises an error that the condition may exclude.
    fn branch(&mut self, branch: impl FnOnce(&mut Interp) -> Eval<Value>) -> Eval<Chosen<Branch>> {
        let traced = self.closed_region(&[], |interp, _| {
            let value = match branch(interp) {
                Err(signal) if signal.is_raised() => {
                    interp.record_raised()?;
                    return Ok((Err(signal), Vec::new()));
                }
                value => value?,
            };
            let mut tensors = Vec::new();
            for leaf in flatten(&value) {
                tensors.extend(interp.dynamic_leaf(&leaf)?);
            }
            Ok((Ok(value), tensors))
        });
        match traced {
            Ok(branch) => Ok(Ok(branch)),
            Err(signal) if self.tracing.asks_inside(&signal) || matches!(*signal, Stop::Error(_)) => {
                Ok(Err(Interp::differing_in(&signal)))
            }
            Err(signal) => Err(signal),
        }
    }

    /// `(and ...)` or `(or ...)`: the first deciding value, or the last.
    pub(super) fn eval_until(&mut self, exprs: &[Expr], or: bool, frame: Frame) -> Eval<Value> {
        let mut last = if or { Value::Nil } else { Value::Bool(true) };
        for (i, e) in exprs.iter().enumerate() {
            last = self.eval(e, frame)?;
            let rest = &exprs[i + 1..];
            if rest.is_empty() {
                break;
            }
            match last.truthy() {
                Ok(truth) if truth == or => break,
                Ok(_) => {}
                Err(signal) => {
                    let decided = if Self::asks_for_truth(&signal) {
                        let places = [e.span, rest[0].span];
                        self.short_circuit(&last, places, or, |interp| interp.eval_until(rest, or, frame))?
                    } else {
                        Err(None)
                    };
                    return decided.map_err(|differing| signal.at(e.span).differing(differing));
                }
            }
        }
        Ok(last)
    }

    /// The value of the first arm, from arm `first` on, with a key that equals `subject`, else the default.
    pub(super) fn eval_case(
        &mut self,
        subject: &Value,
        case: Case<'_>,
        first: usize,
        frame: Frame,
    ) -> Eval<Value> {
        for (i, (keys, value)) in case.arms.iter().enumerate().skip(first) {
            let equal = keys.iter().find_map(|key| match builtins::structurally_equal(subject, key) {
                Ok(false) => None,
                decided => Some(decided),
            });
            match equal {
                None => {}
                // The arms before match the other boolean: this is the last arm, with or without default.
                Some(Err(signal)) if Self::asks_for_truth(&signal) && case.has_both(i) => {
                    return self.eval(value, frame);
                }
                Some(Err(signal)) if Self::asks_for_truth(&signal) => {
                    let Some(equal) = self.equals_any(subject, keys)? else { return Err(signal) };
                    let chosen = self.conditional(
                        &equal,
                        [value.span, case.otherwise(i)],
                        |interp| interp.eval(value, frame),
                        |interp| interp.eval_case(subject, case, i + 1, frame),
                    )?;
                    return chosen.map_err(|differing| signal.differing(differing));
                }
                Some(Err(signal)) => return Err(signal),
                Some(Ok(_)) => return self.eval(value, frame),
            }
        }
        case.default.map_or(Ok(Value::Nil), |d| self.eval(d, frame))
    }

    /// True if an unknown scalar equals one of `keys`, as a value; `None` if that takes more than a comparison.
    fn equals_any(&mut self, subject: &Value, keys: &[Value]) -> Eval<Option<Value>> {
        let Value::Tensor(t) = subject else { return Ok(None) };
        let mut any: Option<Tensor> = None;
        for key in keys {
            let comparable = match key {
                Value::Bool(_) => t.ty().dtype == DType::Bool,
                Value::Int(_) | Value::Float(_) => t.ty().dtype != DType::Bool,
                Value::Nil | Value::Keyword(_) | Value::Symbol(_) | Value::Str(_) => continue,
                _ => false,
            };
            if !comparable || t.ty().rank() > 0 {
                return Ok(None);
            }
            let key = self.tensor(key)?;
            let (a, b) = self.broadcast(t, &key)?;
            let equal = self.op(p::Compare { direction: p::Direction::Eq }, &[&a, &b])?;
            any = Some(match any {
                Some(any) => self.op(p::Binary(p::Or), &[&any, &equal])?,
                None => equal,
            });
        }
        Ok(any.map(Value::Tensor))
    }

    /// True if a signal asks for the truth of a condition.
    pub(super) fn asks_for_truth(signal: &Signal) -> bool {
        matches!(&**signal, Stop::Trace(stop) if matches!(&stop.reason, Reason::Value { .. }))
    }
}

/// The common leaves of both branches, `None` for computed ones, and the types of the computed ones; or the difference
/// of the branches.
type Common = Result<(Vec<Option<Value>>, Vec<TensorType>), Difference>;

fn common(yes: &Value, no: &Value, of_yes: &Graph, of_no: &Graph) -> Common {
    let mut computed = of_yes.outputs.iter().zip(&of_no.outputs);
    let mut leaves = Vec::new();
    let mut types = Vec::new();
    let mut differ = None;
    let moves = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Tensor(_));
    let walked = map_trees(&[yes.clone(), no.clone()], &mut |path, pair| {
        let difference = || Difference::at(path, &pair[0], &pair[1]);
        match (moves(&pair[0]), moves(&pair[1])) {
            (true, true) => {
                let ty = computed.next().and_then(|(a, b)| unified(of_yes.ty(*a), of_no.ty(*b)));
                if ty.is_none() {
                    differ.get_or_insert_with(difference);
                }
                types.extend(ty);
                leaves.push(None);
            }
            (false, false) if same(&pair[0], &pair[1])? => leaves.push(Some(pair[0].clone())),
            _ => {
                differ.get_or_insert_with(difference);
            }
        }
        Ok(Value::Nil)
    });
    match differ {
        Some(difference) => Err(difference),
        None if walked.is_err() => Err(Difference::in_structure(yes, no)),
        None => Ok((leaves, types)),
    }
}

/// The leaves of one branch, if the other raises an error.
fn only(value: &Value, graph: &Graph) -> Common {
    let mut leaves = Vec::new();
    for leaf in flatten(value) {
        leaves.push(match leaf {
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Tensor(_) => None,
            // A function may have captured values of the branch.
            Value::Function(_) => return Err(Difference::in_structure(value, &Value::Nil)),
            other => Some(other),
        });
    }
    Ok((leaves, graph.outputs.iter().map(|v| graph.ty(*v).clone()).collect()))
}

/// The common type of two types of one shape: a weak number adapts.
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

/// `graph` with results of these types; zeros if it raises an error and has none.
fn converted(graph: Graph, types: &[TensorType]) -> Graph {
    if graph.outputs.len() == types.len() && graph.outputs.iter().zip(types).all(|(v, ty)| graph.ty(*v) == ty)
    {
        return graph;
    }
    let mut b = Builder::new();
    let inputs: Vec<_> = graph.inputs.iter().map(|v| b.input(graph.ty(*v).clone())).collect();
    let mut results = b.inline(&graph, &inputs);
    for ty in &types[results.len()..] {
        results.push(b.zeros(ty));
    }
    let results = results.into_iter().zip(types).map(|(v, ty)| {
        if b.ty(v) == ty { v } else { b.apply(p::Convert { dtype: ty.dtype, weak: ty.weak }, &[v]) }
    });
    let results = results.collect();
    prune(b.finish(results))
}
