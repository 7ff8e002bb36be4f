//! `vmap`.

use std::rc::Rc;

use super::Args;
use super::interp::Interp;
use super::signal::{Eval, Reason, Signal, Stop, fail};
use super::transforms::Outcome;
use crate::program::{Axes, Dict, Function, List, Tensor, Trace, Value};
use sheaf_graph::graph::prune;
use sheaf_graph::tensor::Shape;
use sheaf_graph::transform;
use sheaf_syntax::diagnostic::Diagnostic;

/// A mapped tensor.
struct Mapped {
    tensor: Tensor,
    axis: usize,
    /// The argument and the key path in it, for messages.
    place: String,
}

impl Interp {
    /// `f` over a batch: recorded once for one entry, then run on the batch. Results have the batch axis in front.
    pub(super) fn vmap(&mut self, f: &Rc<Function>, axes: &Axes, args: &[Value]) -> Eval<Value> {
        if let Axes::Items(items) = axes
            && items.len() != args.len()
        {
            return Err(Diagnostic::error(format!(
                "in-axes speaks of {} arguments, the call has {}",
                items.len(),
                args.len()
            ))
            .help("say an axis for each argument, or nil for one that is the same for all: (vmap f [0 nil])")
            .into());
        }
        let trace = self.tracing.trace(self.tracing.level);
        let mut mapped = Vec::new();
        let mut inner = Args::new();
        for (i, arg) in args.iter().enumerate() {
            let axes = if let Axes::Items(items) = axes { &items[i] } else { axes };
            inner.push(entry(&trace, arg, axes, &format!("argument {i}"), &mut mapped)?);
        }
        let size = common_size(&mapped)?;
        let level = self.tracing.level;
        let result = self
            .call(&Value::Function(Rc::clone(f)), inner)
            .map_err(|signal| unknown_entry(signal, level))?;
        let (outcome, computed) = Outcome::of(&result, level, |leaf| match leaf {
            Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) => {
                let tensor = self.tensor(leaf)?;
                self.strong(&tensor).map(Some)
            }
            _ => Ok(None),
        })?;
        let outputs = computed.iter().map(|t| trace.lift(t)).collect::<Eval<_>>()?;
        let (graph, captured) = trace.finish(outputs);
        let in_axes: Vec<Option<usize>> =
            mapped.iter().map(|m| Some(m.axis)).chain(captured.iter().map(|_| None)).collect();
        let graph = transform::vmap(&prune(graph), &in_axes, size);
        let arguments: Vec<Tensor> = mapped.into_iter().map(|m| m.tensor).chain(captured).collect();
        let results = self.applied(&graph, &arguments)?;
        outcome.build(&mut results.into_iter().map(Value::from))
    }
}

/// An argument as seen by one entry of the batch: mapped tensors are parameters of the trace.
fn entry(
    trace: &Rc<Trace>,
    value: &Value,
    axes: &Axes,
    place: &str,
    mapped: &mut Vec<Mapped>,
) -> Eval<Value> {
    match (value, axes) {
        (_, Axes::Every(None)) => Ok(value.clone()),
        (Value::List(list), Axes::Every(_) | Axes::Items(_)) => {
            let child = |i: usize| match axes {
                Axes::Items(items) => &items[i],
                every => every,
            };
            if let Axes::Items(items) = axes
                && items.len() != list.items.len()
            {
                return mismatch(place, value, axes);
            }
            let item =
                |(i, v): (usize, &Value)| entry(trace, v, child(i), &format!("{place}, item {i}"), mapped);
            let items = list.items.iter().enumerate().map(item).collect::<Eval<Vec<Value>>>()?;
            Ok(Value::List(Rc::new(List { bracket: list.bracket, items: items.into(), origin: None })))
        }
        (Value::Dict(dict), Axes::Every(_) | Axes::Entries(_)) => {
            if let Axes::Entries(entries) = axes
                && (entries.len() != dict.len() || entries.iter().any(|(k, _)| !dict.contains_key(k)))
            {
                return mismatch(place, value, axes);
            }
            let mut out: Dict = (**dict).clone();
            for (_, key, v) in dict.sorted() {
                let child = match axes {
                    Axes::Entries(entries) => {
                        &entries.iter().find(|(k, _)| *k == key.name).expect("checked above").1
                    }
                    every => every,
                };
                out.insert(key, entry(trace, v, child, &format!("{place}, :{key}"), mapped)?);
            }
            Ok(Value::Dict(Rc::new(out)))
        }
        (_, Axes::Items(_) | Axes::Entries(_)) => mismatch(place, value, axes),
        (Value::Tensor(t), Axes::Every(Some(axis))) if t.ty().rank() > 0 => {
            let rank = t.ty().rank() as i64;
            let Some(axis) = usize::try_from(if *axis < 0 { axis + rank } else { *axis })
                .ok()
                .filter(|a| *a < rank as usize)
            else {
                return fail(format!("vmap maps over axis {axis}, but {place} is {}", value.describe()));
            };
            let shape: Shape = (0..t.ty().rank()).filter(|a| *a != axis).map(|a| t.shape()[a]).collect();
            let parameter = trace.input(t.ty().with_shape(shape), None, t.origin());
            mapped.push(Mapped { tensor: t.clone(), axis, place: place.into() });
            Ok(Value::Tensor(parameter))
        }
        (Value::Tensor(_) | Value::Int(_) | Value::Float(_), Axes::Every(Some(_))) => {
            Err(Diagnostic::error(format!(
                "vmap maps over an axis of each tensor, but {place} is {}, without axes",
                value.describe()
            ))
            .help("nil in the in-axes passes an argument whole: (vmap f [0 nil])")
            .into())
        }
        (other, Axes::Every(Some(_))) => Ok(other.clone()),
    }
}

fn mismatch<T>(place: &str, value: &Value, axes: &Axes) -> Eval<T> {
    fail(format!("the in-axes {axes} do not fit {place}, {}", value.describe()))
}

/// The common extent of the mapped axes.
fn common_size(mapped: &[Mapped]) -> Eval<usize> {
    let Some(first) = mapped.first() else {
        return Err(Diagnostic::error("vmap has no tensor to map over")
            .help("an argument with an axis in in-axes must hold a tensor")
            .into());
    };
    let extent = |m: &Mapped| m.tensor.shape()[m.axis];
    match mapped.iter().find(|m| extent(m) != extent(first)) {
        None => Ok(extent(first)),
        Some(other) => Err(Diagnostic::error(format!(
            "vmap maps over axes of different extents: {} along axis {} of {} ({}), {} along axis {} of {} ({})",
            extent(first),
            first.axis,
            first.place,
            first.tensor.ty(),
            extent(other),
            other.axis,
            other.place,
            other.tensor.ty()
        ))
        .help("(vmap f [0 nil]) passes the second argument whole, (vmap f [0 1]) maps over its axis 1")
        .into()),
    }
}

/// The error for a function that asks for the value of an entry: it is recorded for all entries at once.
fn unknown_entry(signal: Signal, level: u32) -> Signal {
    let Stop::Trace(stop) = &*signal else { return signal };
    let wanted = match &stop.reason {
        Reason::Value { level: l, wanted, .. } | Reason::Elements { level: l, wanted, .. } if *l >= level => {
            wanted
        }
        _ => return signal,
    };
    let d = Diagnostic::error(format!("inside vmap {wanted} cannot depend on an entry of the batch"))
        .help("(where c a b) chooses for each entry; an argument with nil in the in-axes is known");
    let d = match stop.span {
        Some(span) => d.at(span, ""),
        None => d,
    };
    stop.differing.iter().fold(d, |d, differing| d.note(differing.clause.clone())).into()
}
