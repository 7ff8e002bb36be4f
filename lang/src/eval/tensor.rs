//! Tensors of the evaluator: concrete ones hold elements, traced ones a variable of a graph under construction.

use std::cell::{OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;

use super::checks::{Flags, reported};
use super::signal::{Eval, Reason, Signal, Stop};
use crate::host::{Backend, Buffer};
use sheaf_graph::graph::{Builder, Graph, Op, Var, Vars, violation};
use sheaf_graph::primitives::{BroadcastInDim, Primitive};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum length of vectors that may be shapes, whose numbers are requested one by one.
pub(super) const MAX_AXES: usize = 16;

/// A tensor value.
#[derive(Clone, Debug)]
pub enum Tensor {
    /// A tensor with elements.
    Concrete(Rc<Concrete>),
    /// A tracer: a variable of a trace.
    Traced(Rc<Traced>),
}

/// A tensor with elements: on the host, on the device, or both. Copies made on demand are kept, so an argument on the
/// device is not uploaded again, and a result is downloaded only when it is read.
pub struct Concrete {
    ty: TensorType,
    host: OnceCell<HostTensor>,
    device: OnceCell<Buffer>,
    origin: OnceCell<Origin>,
    /// Pending check flags of the calls that computed it.
    flags: RefCell<Option<Flags>>,
}

impl Concrete {
    /// A tensor in host memory; `weak` for numbers.
    pub fn from_host(host: HostTensor, weak: bool) -> Rc<Concrete> {
        let ty = TensorType { weak, ..host.ty() };
        Rc::new(Concrete {
            ty,
            host: OnceCell::from(host),
            device: OnceCell::new(),
            origin: OnceCell::new(),
            flags: RefCell::default(),
        })
    }

    /// A tensor on the device, valid if no flag is set.
    pub fn from_device(ty: TensorType, buffer: Buffer, flags: Option<Flags>) -> Rc<Concrete> {
        Rc::new(Concrete {
            ty,
            host: OnceCell::new(),
            device: OnceCell::from(buffer),
            origin: OnceCell::new(),
            flags: RefCell::new(flags),
        })
    }

    /// A copy in host memory only, if the elements are there; else itself.
    pub(super) fn anew(self: &Rc<Self>) -> Rc<Concrete> {
        let Some(host) = self.host.get() else { return Rc::clone(self) };
        let copy = Concrete::from_host(host.clone(), self.ty.weak);
        copy.comes_from(self.origin.get().copied());
        copy
    }

    /// Sets the call or literal as its origin, unless it is known.
    pub(super) fn made_at(&self, place: Option<Span>) {
        self.comes_from(place.map(Origin::Made));
    }

    /// Sets the origin, unless it is known.
    pub(super) fn comes_from(&self, origin: Option<Origin>) {
        if let Some(origin) = origin {
            let _ = self.origin.set(origin);
        }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// The elements, downloaded from the device if needed.
    pub fn host(&self) -> Eval<&HostTensor> {
        if let Some(host) = self.host.get() {
            return Ok(host);
        }
        if let Some(flags) = &*self.flags.borrow() {
            flags.iter().try_for_each(|flag| flag.look())?;
        }
        self.flags.take();
        let read = self.device.get().expect("a tensor is somewhere").read(&self.ty)?;
        Ok(self.host.get_or_init(|| read))
    }

    /// The elements, if they are in host memory.
    pub fn host_if_there(&self) -> Option<&HostTensor> {
        self.host.get()
    }

    /// The check flags to read before its elements.
    pub(super) fn flags(&self) -> Option<Flags> {
        self.flags.borrow().clone()
    }

    /// The device buffer, uploaded if needed.
    pub fn device(&self, backend: &mut dyn Backend) -> Eval<&Buffer> {
        if let Some(buffer) = self.device.get() {
            return Ok(buffer);
        }
        let sent = backend.upload(self.host.get().expect("a tensor is somewhere"))?;
        Ok(self.device.get_or_init(|| sent))
    }
}

impl fmt::Debug for Concrete {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.ty)
    }
}

/// The origin of a tensor: never in the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The call or literal that made it.
    Made(Span),
    /// Its typed parameter.
    Declared(Span),
}

impl Origin {
    /// The span.
    pub fn span(self) -> Span {
        let (Origin::Made(span) | Origin::Declared(span)) = self;
        span
    }
}

/// A tracer: a variable of a trace.
pub struct Traced {
    trace: Rc<Trace>,
    var: Var,
    ty: TensorType,
    /// The value, if the evaluator computes while it records (differentiation of interpreted code).
    concrete: Option<Rc<Concrete>>,
    /// The call that recorded it, or the origin of its argument.
    origin: Option<Origin>,
}

impl fmt::Debug for Traced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "traced {} {:?}", self.var, self.ty)
    }
}

/// A graph under construction. Traces nest: one of a higher level may use tensors of lower levels, which become
/// captures, additional parameters of its graph.
pub struct Trace {
    level: u32,
    builder: RefCell<Builder>,
    captures: RefCell<Vec<(Rc<Traced>, Var)>>,
    constants: RefCell<Vec<(Rc<Concrete>, Var)>>,
    /// Known numbers broadcast to a shape, by their bytes: most are used many times, and share one constant.
    fills: RefCell<HashMap<Fill, Rc<Concrete>>>,
    limit: usize,
    open: Regions,
}

/// The regions being traced, shared by all traces of an evaluator.
pub(super) type Regions = Rc<RefCell<OpenRegions>>;

/// The traces of nested regions.
#[derive(Default)]
pub(super) struct OpenRegions {
    /// Those of branches and checkpoints. Computations on outer tensors are recorded in the innermost of them: they run
    /// only if that branch is taken, and a checkpoint recomputes them rather than keeping them.
    pub closed: Vec<Rc<Trace>>,
    /// Those and the bodies of loops, which may run zero steps: so checks are recorded in the innermost region.
    pub all: Vec<Rc<Trace>>,
    /// The trace of the whole program, if there is one.
    pub root: Option<Rc<Trace>>,
}

/// The dtype and the bytes of a number, and the shape it is broadcast to.
type Fill = (DType, Vec<u8>, Shape);

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

impl Tensor {
    /// A concrete tensor in host memory.
    pub fn host(host: HostTensor) -> Tensor {
        Tensor::Concrete(Concrete::from_host(host, false))
    }

    /// A concrete tensor in host memory, made by a call.
    pub fn made(host: HostTensor, place: Option<Span>) -> Tensor {
        let made = Concrete::from_host(host, false);
        made.made_at(place);
        Tensor::Concrete(made)
    }

    /// A weak number in host memory.
    pub fn weak(host: HostTensor) -> Tensor {
        Tensor::Concrete(Concrete::from_host(host, true))
    }

    /// True if it is the same tensor.
    pub fn is(&self, other: &Tensor) -> bool {
        match (self, other) {
            (Tensor::Concrete(a), Tensor::Concrete(b)) => Rc::ptr_eq(a, b),
            (Tensor::Traced(a), Tensor::Traced(b)) => Rc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        match self {
            Tensor::Concrete(c) => c.ty(),
            Tensor::Traced(t) => &t.ty,
        }
    }

    /// The origin, if it is known.
    pub fn origin(&self) -> Option<Origin> {
        match self {
            Tensor::Concrete(c) => c.origin.get().copied(),
            Tensor::Traced(t) => t.origin,
        }
    }

    /// The extents of the axes.
    pub fn shape(&self) -> &[usize] {
        &self.ty().shape
    }

    /// The concrete value, unless it is traced without one.
    pub fn concrete(&self) -> Option<&Rc<Concrete>> {
        match self {
            Tensor::Concrete(c) => Some(c),
            Tensor::Traced(t) => t.concrete.as_ref(),
        }
    }

    /// True for a tracer.
    pub fn is_traced(&self) -> bool {
        matches!(self, Tensor::Traced(_))
    }

    /// True for a boolean scalar unknown while tracing.
    pub(crate) fn is_unknown_truth(&self) -> bool {
        self.concrete().is_none() && *self.ty() == TensorType::scalar(DType::Bool)
    }

    /// True for a variable of a trace nested in that of `level`.
    pub(super) fn is_traced_within(&self, level: u32) -> bool {
        matches!(self, Tensor::Traced(t) if t.trace.level > level)
    }

    /// True for a variable of the trace of that level.
    pub fn is_traced_at(&self, level: u32) -> bool {
        matches!(self, Tensor::Traced(t) if t.trace.level == level)
    }

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
}

/// Fails if a tensor of that shape does not fit memory; the allocation would abort the process.
pub fn check_room(shape: &[usize]) -> Eval<()> {
    /// Minimum elements worth the check.
    const LARGE: usize = 1 << 26;
    const MAX_SHOWN_AXES: usize = 8;
    let bytes = shape.iter().try_fold(MAX_SHOWN_AXES, |n, extent| n.checked_mul(*extent));
    if bytes.is_some_and(|n| n < LARGE || Vec::<u8>::new().try_reserve_exact(n).is_ok()) {
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
