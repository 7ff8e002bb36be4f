//! Runtime checks: of indices, and by the program's `assert`, `error` and `guard`. Known conditions are checked at once; in a
//! trace a check is recorded, and the flag of a compiled call reports failures later.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use smallvec::SmallVec;
use ustr::Ustr;

use super::index::outside;
use super::interp::Interp;
use super::signal::{Eval, Signal};
use super::tensor::{bind_all, record_in_region};
use crate::builtins;
use crate::host::Buffer;
use crate::program::{Concrete, Flag, Flags, Tensor, Value};
use sheaf_graph::graph::{Op, decoded, failed};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::{Check, Part, Question, Site};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::{Diagnostic, Kind, Label};

/// Maximum elements of a tensor shown in the messages of `error` and `assert`; larger ones are shown by type.
const MAX_SHOWN: usize = 16;

/// Maximum calls shown around an error.
const MAX_CALLS: usize = 8;

/// Maximum flags propagated from call to call; beyond that the older half is read.
const MAX_FLAGS: usize = 16;

/// An error raised by the program, in a region that may not run.
pub(super) struct Raised {
    error: Diagnostic,
    message: Vec<Part>,
    operands: Vec<Tensor>,
}

impl Interp {
    /// Checks indices that are unknown while tracing: each must be within the axis, negative ones counted from its end.
    pub(crate) fn check_indices(&mut self, indices: &Tensor, axis: usize, of: &TensorType) -> Eval<()> {
        if self.options.no_bounds_check || indices.ty().count() == 0 {
            return Ok(());
        }
        let mut error = Diagnostic::error("an index out of range");
        error.labels.extend(self.span.map(|span| Label { span, text: String::new() }));
        let question = Question::Index { axis, of: of.clone() };
        let op = check(question, error);
        bind_all(&op, &[indices], self.span).map(drop)
    }

    /// Checks that numbers unknown while tracing are integers; NaN and the infinities are not. The error names the
    /// greatest that is none.
    pub(crate) fn check_whole(&mut self, numbers: &Tensor, wanted: &str) -> Eval<()> {
        if self.options.no_bounds_check || numbers.ty().count() == 0 {
            return Ok(());
        }
        let filled = |x: f32| Tensor::host(HostTensor::filled(DType::F32, numbers.shape(), x.into()));
        let axes: Shape = (0..numbers.ty().rank()).collect();
        let floor = self.op(p::Unary(p::Floor), &[numbers])?;
        let fraction = self.op(p::Binary(p::Sub), &[numbers, &floor])?;
        let is_fraction = self.op(p::Compare { direction: p::Direction::Ne }, &[&fraction, &filled(0.0)])?;
        let fractions = self.op(p::Select, &[&is_fraction, numbers, &filled(f32::NEG_INFINITY)])?;
        let greatest = self.op(p::ReduceMax { axes: axes.clone() }, &[&fractions])?;
        let any = self.op(p::ReduceOr { axes }, &[&is_fraction])?;
        let none = self.op(p::Unary(p::Not), &[&any])?;
        let message = Value::text(format!("{wanted} must be a whole number, not {{}}"));
        self.assert_later(Kind::Raised, &none, &[message, Value::Tensor(greatest)])
    }

    /// `(error message x ...)`: the raised error, of that kind.
    pub(crate) fn raise(&mut self, kind: Kind, message: &[Value]) -> Eval<Signal> {
        let (message, operands) = parts(message)?;
        let mut error = Diagnostic::error(text(&message)?);
        error.kind = kind;
        if !self.tracing.regions.borrow().all.is_empty() {
            let error = self.with_path(error.clone());
            self.tracing.raised = Some(Raised { error, message, operands });
        }
        Ok(error.into())
    }

    /// `(assert condition message x ...)` with a condition unknown while tracing.
    pub(crate) fn assert_later(&mut self, kind: Kind, condition: &Tensor, message: &[Value]) -> Eval<()> {
        let (message, operands) = parts(message)?;
        let error = self.with_path(Diagnostic::error(text(&message)?).of_kind(kind));
        let op = check(Question::Condition { message }, error);
        let operands: Vec<&Tensor> = std::iter::once(condition).chain(&operands).collect();
        bind_all(&op, &operands, self.span).map(drop)
    }

    /// Records that the innermost region stops with the last raised error.
    pub(super) fn record_raised(&mut self) -> Eval<()> {
        let Some(Raised { error, message, operands }) = self.tracing.raised.take() else { return Ok(()) };
        // Values of an inner transformation do not exist in the region.
        let mut kept = Vec::new();
        let mut all = operands.into_iter();
        let known = |part: Part| {
            let Part::Traced(ty) = part else { return part };
            match all.next().filter(|t| !t.is_traced_within(self.tracing.level)) {
                Some(operand) => {
                    kept.push(operand);
                    Part::Traced(ty)
                }
                None => Part::Text(format!("<{ty}>")),
            }
        };
        let message = message.into_iter().map(known).collect();
        let never = Tensor::host(HostTensor::filled(DType::Bool, [].as_slice(), 0.0));
        let operands: Vec<&Tensor> = std::iter::once(&never).chain(&kept).collect();
        let op = check(Question::Condition { message }, error);
        record_in_region(&self.tracing.regions, &op, &operands, self.span)
    }

    /// An error labelled with the innermost call, and those around it in the trace.
    fn with_path(&self, mut error: Diagnostic) -> Diagnostic {
        error.labels.extend(self.span.map(|span| Label { span, text: String::new() }));
        self.tracing.calls.iter().rev().for_each(|(name, span)| called(&mut error, *name, *span));
        error
    }
}

fn check(question: Question, error: Diagnostic) -> Op {
    Arc::new(Check { site: Arc::new(Site { question, error }), masked: false, batch: 0 })
}

/// Adds the span of a call to an error raised by the program.
pub(super) fn called(error: &mut Diagnostic, name: Option<Ustr>, span: Span) {
    let known = error.labels.iter().any(|label| label.span == span);
    if !error.kind.is_raised() || known || span.source.is_library() || error.labels.len() > MAX_CALLS {
        return;
    }
    let text = name.map_or_else(|| "called here".into(), |name| format!("{name} was called here"));
    error.labels.push(Label { span, text });
}

/// The arguments of a message, and those tensors among them that are unknown while tracing.
fn parts(message: &[Value]) -> Eval<(Vec<Part>, Vec<Tensor>)> {
    let mut operands = Vec::new();
    let mut parts = Vec::new();
    for value in message {
        parts.push(match value {
            Value::Int(n) => Part::Int(*n),
            Value::Float(x) => Part::Float(*x),
            Value::Tensor(t) if t.ty().count() > MAX_SHOWN => Part::Text(format!("<{}>", t.ty())),
            Value::Tensor(t) => match t.concrete() {
                Some(known) => Part::Tensor(known.host()?.clone(), t.ty().weak),
                None => {
                    operands.push(t.clone());
                    Part::Traced(t.ty().clone())
                }
            },
            other => Part::Text(builtins::show(other)),
        });
    }
    Ok((parts, operands))
}

/// A message as written by `print`. Unknown values are shown by type; a template is tried with zeros.
fn text(message: &[Part]) -> Eval<String> {
    let unknown = |part: &Part| matches!(part, Part::Traced(_));
    if message.iter().any(unknown) {
        text(&decoded(message, &[]))?;
        let shown = message.iter().map(|part| match part {
            Part::Traced(ty) => format!("<{ty}>"),
            known => value(known).map_or_else(String::new, |value| builtins::show(&value)),
        });
        return Ok(shown.collect::<Vec<_>>().join(" "));
    }
    builtins::printed(&message.iter().filter_map(value).collect::<Vec<_>>())
}

/// A known argument of a message.
fn value(part: &Part) -> Option<Value> {
    Some(match part {
        Part::Text(text) => Value::text(text.clone()),
        Part::Int(n) => Value::Int(*n),
        Part::Float(x) => Value::Float(*x),
        Part::Tensor(host, true) => Value::Tensor(Tensor::weak(host.clone())),
        Part::Tensor(host, false) => Value::Tensor(Tensor::host(host.clone())),
        Part::Traced(_) => return None,
    })
}

/// The error of a failed check, decoded from its words.
pub(super) fn reported(site: &Site, words: &[i32]) -> Eval<Diagnostic> {
    let error = match &site.question {
        Question::Index { axis, of } => {
            let index = words.first().copied().unwrap_or(0);
            outside(index.into(), *axis, of)
        }
        Question::Condition { message } => {
            Diagnostic::error(text(&decoded(message, words))?).of_kind(site.error.kind)
        }
        Question::Guard(_) => site.error.clone().of_kind(Kind::Guard),
    };
    Ok(Diagnostic { labels: site.error.labels.clone(), ..error })
}

impl Flag {
    /// The flag in `buffer` of the call of `function` at `called_at`, with these check sites.
    pub(super) fn new(
        buffer: Buffer,
        ty: &TensorType,
        sites: &Rc<[Arc<Site>]>,
        function: Option<Ustr>,
        called_at: Option<Span>,
    ) -> Rc<Flag> {
        let (ty, sites) = (ty.clone(), Rc::clone(sites));
        Rc::new(Flag { buffer, ty, sites, function, called_at, passed: Cell::new(false) })
    }

    /// True if it was read, and no check failed.
    pub(super) fn has_passed(&self) -> bool {
        self.passed.get()
    }

    /// Reads the flag if that does not block: the error is then raised by the call, as when interpreted.
    pub(super) fn look_if_ready(&self) -> Eval<()> {
        if self.buffer.is_ready()
            && let Some(error) = self.error()?
        {
            return Err(error.into());
        }
        Ok(())
    }

    /// The error, if a check failed.
    pub(super) fn look(&self) -> Eval<()> {
        match self.error()? {
            // The reader of the result has not called the function.
            Some(error) => {
                let kind = if error.kind.is_guard() { Kind::Guard } else { Kind::Other };
                Err(Diagnostic { kind, ..error }.into())
            }
            None => Ok(()),
        }
    }

    fn error(&self) -> Eval<Option<Diagnostic>> {
        if self.passed.get() {
            return Ok(None);
        }
        let Some((site, words)) = failed(&self.sites, &self.buffer.read(&self.ty)?) else {
            self.passed.set(true);
            return Ok(None);
        };
        let mut error = reported(&site, &words)?;
        if let Some(span) = self.called_at {
            called(&mut error, self.function, span);
        }
        Ok(Some(error))
    }
}

/// The flags that the arguments of a call propagate to its results. If there are many, the older ones, whose calls have
/// ended long ago, are read.
pub(super) fn handed_on<'a>(
    arguments: impl Iterator<Item = &'a Rc<Concrete>>,
) -> Eval<SmallVec<[Rc<Flag>; 4]>> {
    let mut all: SmallVec<[Rc<Flag>; 4]> = SmallVec::new();
    let mut last: Option<Flags> = None;
    for argument in arguments {
        let Some(flags) = argument.flags() else { continue };
        // The results of one call share their flags.
        if last.as_ref().is_some_and(|last| Rc::ptr_eq(last, &flags)) {
            continue;
        }
        for flag in flags.iter() {
            if !flag.passed.get() && !all.iter().any(|known| Rc::ptr_eq(known, flag)) {
                all.push(Rc::clone(flag));
            }
        }
        last = Some(flags);
    }
    if all.len() >= MAX_FLAGS {
        let older = all.len() - MAX_FLAGS / 2;
        for flag in all.drain(..older) {
            flag.look()?;
        }
    }
    Ok(all)
}
