//! Operations on tensors: computed on concrete ones, recorded in the trace of traced ones.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::HashSet;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::checks::reported;
use super::signal::{Eval, Reason, Signal, Stop};
use crate::host::{Backend, Buffer};
use crate::program::{Concrete, Dict, Origin, Regions, Tensor, Trace, Traced, Value};
use crate::stack::maybe_grow;
use sheaf_foundation::machine_memory;
use sheaf_graph::graph::{Builder, Graph, Op, Var, Vars, violation};
use sheaf_graph::primitives::{BroadcastInDim, Primitive};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum length of vectors that may be shapes, whose numbers are requested one by one.
pub(super) const MAX_AXES: usize = 16;

impl Concrete {
    /// The elements, downloaded from the device if needed. Those in a file are checked to be as they were.
    pub fn host(&self) -> Eval<&HostTensor> {
        if let Some(host) = self.host.get() {
            host.check_files()?;
            return Ok(host);
        }
        let read = self.download()?;
        Ok(self.host.get_or_init(|| read))
    }

    /// The elements, for one use: a copy downloaded from the device is not kept.
    pub fn host_once(&self) -> Eval<Cow<'_, HostTensor>> {
        if self.host.get().is_some() {
            return self.host().map(Cow::Borrowed);
        }
        self.download().map(Cow::Owned)
    }

    fn download(&self) -> Eval<HostTensor> {
        if let Some(flags) = &*self.flags.borrow() {
            flags.iter().try_for_each(|flag| flag.look())?;
        }
        self.flags.take();
        Ok(self.device.get().expect("a tensor is somewhere").read(&self.ty)?)
    }

    /// The device buffer, uploaded if needed.
    pub fn device(&self, backend: &mut dyn Backend) -> Eval<&Buffer> {
        if let Some(buffer) = self.device.get() {
            return Ok(buffer);
        }
        let host = self.host()?;
        let sent = backend.upload(host)?;
        host.check_files()?;
        Ok(self.device.get_or_init(|| sent))
    }
}

impl Tensor {
    /// The elements, for `wanted` (a phrase for the message). A traced tensor has none: then tracing stops, and the
    /// caller may make the scalar static or interpret.
    pub fn elements(&self, wanted: &str) -> Eval<&HostTensor> {
        match (self.concrete(), self) {
            (Some(c), _) => c.host(),
            (None, Tensor::Traced(t)) => {
                let wanted = wanted.to_string();
                // A vector may consist of numbers, as the shape [n 4] does.
                let reason = if t.ty.rank() <= 1 && t.ty.count() <= MAX_AXES {
                    Reason::Value { level: t.trace.level, var: t.var, wanted }
                } else {
                    Reason::Elements { level: t.trace.level, wanted, ty: t.ty.clone() }
                };
                Err(Stop::trace(reason, None))
            }
            (None, Tensor::Concrete(_)) => unreachable!("a concrete tensor has a value"),
        }
    }

    /// [`Tensor::elements`] for one use: a copy downloaded from the device is not kept.
    pub(crate) fn read_once(&self, wanted: &str) -> Eval<Cow<'_, HostTensor>> {
        match self.concrete() {
            Some(concrete) => concrete.host_once(),
            None => self.elements(wanted).map(Cow::Borrowed),
        }
    }
}

impl Value {
    /// True unless it is `false`, `nil` or a false scalar.
    pub(crate) fn truthy(&self) -> Eval<bool> {
        match self {
            Value::Nil | Value::Bool(false) => Ok(false),
            Value::Tensor(t) if t.ty().rank() > 0 => {
                Err(Diagnostic::error(format!("a condition is one truth value, this is a tensor {}", t.ty()))
                    .help("say (any x), (all x) or (equal? a b)")
                    .into())
            }
            Value::Tensor(t) if t.ty().dtype == DType::Bool => {
                Ok(t.elements("a condition")?.element_i64(0) != 0)
            }
            _ => Ok(true),
        }
    }

    /// The value with every traced tensor replaced by its elements; stops the trace if one has none.
    pub(crate) fn known(&self, wanted: &str) -> Eval<Value> {
        self.untraced(wanted, true)
    }

    /// [`Value::known`]; elements on the device are downloaded if `download`.
    pub(crate) fn untraced(&self, wanted: &str, download: bool) -> Eval<Value> {
        Ok(match self {
            Value::Tensor(t) if t.is_traced() => {
                let host = t.elements(wanted)?.clone();
                Value::from(if t.ty().weak { Tensor::weak(host) } else { Tensor::host(host) })
            }
            Value::Tensor(t) => {
                if download {
                    t.elements(wanted)?;
                }
                self.clone()
            }
            Value::List(list) => {
                let items = list.items.iter().map(|v| v.untraced(wanted, download));
                Value::list(maybe_grow(|| items.collect::<Eval<_>>())?)
            }
            Value::Dict(dict) => {
                let entries = dict.iter().map(|(k, v)| Ok((k, v.untraced(wanted, download)?)));
                Value::Dict(Rc::new(maybe_grow(|| entries.collect::<Eval<Dict>>())?))
            }
            other => other.clone(),
        })
    }
}

impl Trace {
    /// An empty trace; `level` is one more than that of the trace around it. It fails beyond `limit` equations, the
    /// sign of an endless recursion.
    pub fn new(level: u32, limit: usize, open: &Regions) -> Rc<Trace> {
        Rc::new(Trace {
            level,
            builder: RefCell::new(Builder::new()),
            captures: RefCell::default(),
            constants: RefCell::default(),
            fills: RefCell::default(),
            limit,
            open: Rc::clone(open),
        })
    }

    /// Adds a parameter for an argument of that origin, with its value if that is computed along.
    pub fn input(
        self: &Rc<Self>,
        ty: TensorType,
        value: Option<Rc<Concrete>>,
        origin: Option<Origin>,
    ) -> Tensor {
        let var = self.builder.borrow_mut().input(ty.clone());
        Tensor::Traced(Rc::new(Traced { trace: Rc::clone(self), var, ty, concrete: value, origin }))
    }

    /// Adds a parameter for `value`, with its elements if it has any.
    pub fn parameter(self: &Rc<Self>, value: &Tensor) -> Tensor {
        self.input(value.ty().clone(), value.concrete().cloned(), value.origin())
    }

    /// The variable of `tensor` in this trace: outer ones become constants or captures.
    pub fn lift(&self, tensor: &Tensor) -> Eval<Var> {
        match tensor {
            Tensor::Traced(t) if t.trace.level == self.level => Ok(t.var),
            Tensor::Traced(t) => {
                let known = self.captures.borrow().iter().find(|(c, _)| Rc::ptr_eq(c, t)).map(|(_, v)| *v);
                Ok(known.unwrap_or_else(|| {
                    let var = self.builder.borrow_mut().input(t.ty.clone());
                    self.captures.borrow_mut().push((Rc::clone(t), var));
                    var
                }))
            }
            Tensor::Concrete(c) => {
                let known = self
                    .constants
                    .borrow()
                    .iter()
                    .rev()
                    .take(64)
                    .find(|(k, _)| Rc::ptr_eq(k, c))
                    .map(|(_, v)| *v);
                if let Some(var) = known {
                    return Ok(var);
                }
                let var = self.builder.borrow_mut().constant(c.host()?.clone(), c.ty.weak);
                self.constants.borrow_mut().push((Rc::clone(c), var));
                Ok(var)
            }
        }
    }

    /// A known tensor as a variable of `trace`, without known elements.
    pub fn variable(trace: &Rc<Trace>, known: &Tensor) -> Eval<Tensor> {
        let var = trace.lift(known)?;
        let (ty, origin) = (known.ty().clone(), known.origin());
        Ok(Tensor::Traced(Rc::new(Traced { trace: Rc::clone(trace), var, ty, concrete: None, origin })))
    }

    /// A parameter that `var` is computed from, if all such parameters are scalars: their values determine that of
    /// `var`. Also a parameter that is itself a vector of at most `longest` elements.
    pub fn number_behind(&self, var: Var, longest: usize) -> Option<Var> {
        let builder = self.builder.borrow();
        let graph = builder.graph();
        if graph.inputs.contains(&var) && graph.ty(var).rank() == 1 && graph.ty(var).count() <= longest {
            return Some(var);
        }
        let parameters = needed_parameters(graph, var);
        let all_numbers = parameters.iter().all(|v| graph.ty(*v).shape.is_empty());
        parameters.first().copied().filter(|_| all_numbers)
    }

    /// Turns a request for the value of a variable of this trace into one for an outer tensor, if it is computed from
    /// outer numbers alone.
    pub fn outer_request(&self, signal: Signal) -> Signal {
        let Stop::Trace(stop) = &*signal else { return signal };
        let Reason::Value { level, var, wanted } = &stop.reason else { return signal };
        if *level != self.level {
            return signal;
        }
        let captures = self.captures.borrow();
        let outer = |var: &Var| captures.iter().find(|(_, v)| v == var).map(|(t, _)| t);
        let builder = self.builder.borrow();
        let graph = builder.graph();
        let parameters = needed_parameters(graph, *var);
        let itself = parameters.contains(var);
        if !parameters.iter().all(|v| outer(v).is_some() && (itself || graph.ty(*v).shape.is_empty())) {
            return signal;
        }
        let Some(first) = parameters.first().and_then(outer) else { return signal };
        match Tensor::Traced(Rc::clone(first)).elements(wanted) {
            Err(asks) => match stop.span {
                Some(span) => asks.at(span),
                None => asks,
            },
            Ok(_) => signal,
        }
    }

    /// The number of equations recorded so far.
    pub fn size(&self) -> usize {
        self.builder.borrow().graph().equations.len()
    }

    /// True if a check was recorded.
    pub fn checks(&self) -> bool {
        self.builder.borrow().graph().checked
    }

    /// Records an operation; returns its results.
    fn record(&self, op: &Op, args: &[&Tensor], span: Option<Span>) -> Eval<Vars> {
        let operands = args.iter().map(|t| self.lift(t)).collect::<Eval<Vars>>()?;
        let mut builder = self.builder.borrow_mut();
        builder.span = span;
        let outputs = builder.bind(Arc::clone(op), &operands)?;
        outputs.iter().try_for_each(|var| check_room(&builder.ty(*var).shape))?;
        if builder.graph().equations.len() > self.limit {
            return Err(endless(self.limit));
        }
        Ok(outputs)
    }

    /// Ends the trace: the graph, and the captured outer tensors, the arguments of its last parameters.
    ///
    /// The parameters are those of [`Trace::input`], then the captures.
    pub fn finish(self: Rc<Self>, outputs: Vec<Var>) -> (Graph, Vec<Tensor>) {
        let captures = self.captures.take();
        let mut graph = self.builder.take().finish(outputs);
        let captured: Vec<Var> = captures.iter().map(|(_, v)| *v).collect();
        graph.inputs.retain(|v| !captured.contains(v));
        graph.inputs.extend(&captured);
        (graph, captures.into_iter().map(|(t, _)| Tensor::Traced(t)).collect())
    }
}

/// The parameters that `var` is computed from.
fn needed_parameters(graph: &Graph, var: Var) -> Vec<Var> {
    let mut needed = HashSet::from([var]);
    for eqn in graph.equations.iter().rev() {
        if eqn.outputs.iter().any(|v| needed.contains(v)) {
            needed.extend(&eqn.inputs);
        }
    }
    graph.inputs.iter().filter(|v| needed.contains(v)).copied().collect()
}

/// The trace that records an operation on `tensors`: the innermost that one of them belongs to, or the closed one
/// within that. Operations with `checks` are recorded in the innermost region within that.
fn recorder<'a>(checks: bool, tensors: impl Iterator<Item = &'a Tensor>) -> Option<Rc<Trace>> {
    let innermost = tensors
        .filter_map(|t| if let Tensor::Traced(t) = t { Some(&t.trace) } else { None })
        .max_by_key(|trace| trace.level)?;
    let open = innermost.open.borrow();
    let pieces = if checks { &open.all } else { &open.closed };
    let within = pieces.last().filter(|trace| trace.level > innermost.level);
    Some(Rc::clone(within.unwrap_or(innermost)))
}

/// Fails if a tensor of that shape does not fit memory; the allocation would abort the process.
pub fn check_room(shape: &[usize]) -> Eval<()> {
    /// Minimum elements worth the check.
    const LARGE: usize = 1 << 23;
    /// Sizes of the widest elements, and of the usual ones, in bytes.
    const WIDEST: usize = 8;
    const USUAL: usize = 4;
    let count = shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent));
    if count.is_some_and(|n| n < LARGE) {
        return Ok(());
    }
    let bytes = |size| count.and_then(|n| n.checked_mul(size));
    // The allocator may reserve more than the machine has.
    let within_machine = |n: usize| machine_memory().is_none_or(|memory| n as u64 <= memory);
    let reserved = |n| Vec::<u8>::new().try_reserve_exact(n).is_ok();
    if bytes(USUAL).is_some_and(within_machine) && bytes(WIDEST).is_some_and(reserved) {
        return Ok(());
    }
    let shape = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
    super::fail(format!("there is not enough memory for a tensor of shape {shape}"))
}

/// Computes `op(args)`, or records it if an operand is traced.
pub fn bind_all(op: &Op, args: &[&Tensor], span: Option<Span>) -> Eval<SmallVec<[Tensor; 2]>> {
    bind_beside(op, args, &[], span)
}

/// [`bind_all`] for an operation whose result is used with other tensors: recorded if those are traced, so that a
/// program generates positions rather than storing them as a constant.
fn bind_beside(
    op: &Op,
    args: &[&Tensor],
    beside: &[&Tensor],
    span: Option<Span>,
) -> Eval<SmallVec<[Tensor; 2]>> {
    let known = args.iter().chain(beside).all(|t| t.concrete().is_some());
    let Some(trace) = recorder(op.checks(), args.iter().chain(beside).copied()) else {
        let types: SmallVec<[&TensorType; 4]> = args.iter().map(|t| t.ty()).collect();
        let results = op.infer(&types)?;
        results.iter().try_for_each(|ty| check_room(&ty.shape))?;
        return Ok(computed(op, args)?
            .into_iter()
            .zip(results)
            .map(|(value, ty)| {
                let result = Concrete::from_host(value, ty.weak);
                result.made_at(span);
                Tensor::Concrete(result)
            })
            .collect());
    };
    let mut results = record_in(&trace, op, args, span)?;
    if known {
        for (result, value) in results.iter_mut().zip(computed(op, args)?) {
            if let Tensor::Traced(traced) = result
                && let Some(traced) = Rc::get_mut(traced)
            {
                traced.concrete = Some(Concrete::from_host(value, traced.ty.weak));
            }
        }
    }
    Ok(results)
}

/// Records `op(args)` in `trace`; the results have no values.
pub(super) fn record_in(
    trace: &Rc<Trace>,
    op: &Op,
    args: &[&Tensor],
    span: Option<Span>,
) -> Eval<SmallVec<[Tensor; 2]>> {
    let outputs = trace.record(op, args, span)?;
    let builder = trace.builder.borrow();
    let wrap = |var: &Var| {
        let ty = builder.ty(*var).clone();
        Tensor::Traced(Rc::new(Traced {
            trace: Rc::clone(trace),
            var: *var,
            ty,
            concrete: None,
            origin: span.map(Origin::Made),
        }))
    };
    Ok(outputs.iter().map(wrap).collect())
}

#[cold]
fn endless(limit: usize) -> Signal {
    Diagnostic::error(format!("tracing this has recorded more than {limit} operations"))
        .note("is there a recursion or a loop without end?")
        .help(
            "steps that repeat are one operation in repeat, while, reduce or scan, if the state keeps its structure, \
             shapes and dtypes",
        )
        .into()
}

/// The results of `op` for known operands; the error of a failed check.
fn computed(op: &Op, args: &[&Tensor]) -> Eval<SmallVec<[HostTensor; 2]>> {
    let values = host_values(args)?;
    match violation(op, &values) {
        Some((site, words)) => Err(reported(&site, &words)?.into()),
        None => Ok(op.evaluate(&values)),
    }
}

/// Records a check in the innermost region, whatever its operands.
pub(super) fn record_in_region(open: &Regions, op: &Op, args: &[&Tensor], span: Option<Span>) -> Eval<()> {
    let piece = open.borrow().all.last().cloned();
    piece.map_or(Ok(()), |trace| trace.record(op, args, span).map(drop))
}

fn host_values<'a>(args: &[&'a Tensor]) -> Eval<SmallVec<[&'a HostTensor; 4]>> {
    args.iter().map(|t| t.concrete().expect("checked by the caller").host()).collect()
}

/// `t` broadcast by `op` for an operation whose other operands are `beside`. If one of those is traced, the program
/// broadcasts a known tensor, and all uses of a known number share one constant.
pub fn repeat_beside(op: BroadcastInDim, t: &Tensor, beside: &[&Tensor], span: Option<Span>) -> Eval<Tensor> {
    if let (Some(trace), Tensor::Concrete(c)) = (recorder(false, beside.iter().copied()), t)
        && c.ty.count() == 1
    {
        let number = c.host()?;
        let key = (number.dtype(), number.bytes().to_vec(), op.shape.clone());
        if let Some(known) = trace.fills.borrow().get(&key) {
            return Ok(Tensor::Concrete(Rc::clone(known)));
        }
        let filled = bind(op, &[t], span)?;
        if let Tensor::Concrete(filled) = &filled {
            trace.fills.borrow_mut().insert(key, Rc::clone(filled));
        }
        return Ok(filled);
    }
    Ok(bind_beside(&(Arc::new(op) as Op), &[t], beside, span)?.swap_remove(0))
}

/// Positions along an axis of the shape of `like`, as `i32`.
pub fn positions(like: &Tensor, axis: usize, span: Option<Span>) -> Eval<Tensor> {
    let op: Op = Arc::new(sheaf_graph::primitives::Iota {
        dtype: DType::I32,
        shape: like.shape().into(),
        dimension: axis,
    });
    Ok(bind_beside(&op, &[], &[like], span)?.swap_remove(0))
}

/// [`bind_all`] for a primitive with one result.
pub fn bind(op: impl Primitive, args: &[&Tensor], span: Option<Span>) -> Eval<Tensor> {
    Ok(bind_all(&(Arc::new(op) as Op), args, span)?.swap_remove(0))
}

/// Applies `graph` to `args`: computed if all are concrete, else recorded equation by equation.
pub fn apply_graph(graph: &Graph, args: &[Tensor]) -> Eval<Vec<Tensor>> {
    let mut values: Vec<Option<Tensor>> = vec![None; graph.types.len()];
    for (var, arg) in graph.inputs.iter().zip(args) {
        values[var.index()] = Some(arg.clone());
    }
    for eqn in &graph.equations {
        let results = {
            let operands: SmallVec<[&Tensor; 4]> = eqn
                .inputs
                .iter()
                .map(|v| values[v.index()].as_ref().expect(sheaf_graph::graph::RULE))
                .collect();
            bind_all(&eqn.op, &operands, eqn.span)?
        };
        for (var, result) in eqn.outputs.iter().zip(results) {
            values[var.index()] = Some(result);
        }
    }
    Ok(graph.outputs.iter().map(|v| values[v.index()].clone().expect(sheaf_graph::graph::RULE)).collect())
}
