//! The evaluator's state and the evaluation of expressions.

use std::rc::Rc;
use std::sync::Arc;

use ustr::Ustr;

use super::blame::{self, FailedLookups};
use super::check::Checked;
use super::conditional::Case;
use super::interrupt::Budget;
use super::names::Modules;
use super::observed::Observing;
use super::progress::Marks;
use super::purity::effect_in;
use super::signal::{Eval, Reason, STATIC, Stop};
use super::specialise::Specialiser;
use super::tracing::Tracing;
use crate::builtins;
use crate::host::{Backend, Host};
use crate::program::{
    Closure, Dict, Expr, ExprKind, Function, Global, Key, List, Pattern, Scalar, Template, Value, VarLocation,
};
use crate::stack::maybe_grow;
use sheaf_graph::tensor::{DType, FileBytes, Shape};
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Sources, Span};

/// Compilation of pure functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jit {
    /// If it pays, estimated from counts and sizes.
    #[default]
    Auto,
    /// Every eligible call.
    Always,
    /// None.
    Never,
}

/// Options of a run.
#[derive(Clone, Copy, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option by itself")]
pub struct Options {
    /// Compilation of pure functions.
    pub jit: Jit,
    /// True if it is an error that a function which should be compiled cannot be.
    pub strict: bool,
    /// Omits checks of indices unknown while tracing: they are clamped.
    pub no_bounds_check: bool,
    /// Makes it an error to call a function with other shapes than those of its programs that were compiled before.
    pub frozen_shapes: bool,
    /// Leaves graphs unsimplified, to measure the effect of simplification.
    pub unsimplified: bool,
}

/// Purpose of an evaluation.
pub(super) enum Mode {
    /// A run of the program.
    Run,
    /// `sheaf check`: nothing at the top level runs; the results so far.
    Check(Checked),
    /// `sheaf build`: nothing at the top level runs.
    Prepare,
}

/// Maximum nesting of calls; deeper is an endless recursion.
pub const MAX_DEPTH: usize = 10_000;

/// Recommended stack of the evaluator's thread, in bytes. With less, new stack segments are allocated.
pub const STACK_BYTES: usize = 512 << 20;

/// Outcome of the condition of an `if`.
pub(super) enum Choice {
    /// The condition is known.
    Known(bool),
    /// It is unknown: both branches were traced, and this is their value.
    Recorded(Value),
}

/// Closures and native frames of one call of the program.
#[derive(Clone, Copy)]
pub(super) struct Frame<'a> {
    pub base: usize,
    /// The running function; `None` at the top level.
    pub closure: Option<&'a Closure>,
}

/// An evaluator: a program's state.
pub struct Interp {
    /// Every text read so far.
    pub sources: Sources,
    /// Options of the run.
    pub options: Options,
    pub(crate) host: Box<dyn Host>,
    pub(crate) backend: Option<Box<dyn Backend>>,
    pub(super) stack: Vec<Value>,
    /// Non-scalar result or error of the last `eval_scalar`.
    pub(super) other: Eval<Value>,
    pub(super) depth: usize,
    pub(super) budget: Budget,
    /// Failed key look-ups: origins of nil.
    pub(crate) failed_lookups: FailedLookups,
    pub(super) mode: Mode,
    pub(super) modules: Modules,
    pub(super) tracing: Tracing,
    /// Expected executions of the code being interpreted: the product of the counts of the loops around it.
    pub(super) weight: u64,
    /// Span of the innermost call outside the library: the origin of recorded equations and of errors without labels.
    pub(crate) span: Option<Span>,
    pub(super) specialiser: Specialiser,
    /// The observer of calls, if there is one.
    pub(super) observing: Option<Box<Observing>>,
    /// The top-level expressions that were read and not run, for a replay.
    pub(super) unrun: Option<Vec<Expr>>,
    /// Nesting of running macros.
    pub(crate) expanding: usize,
    /// True if the program has mapped a file, whose bytes may be lost while they are read.
    maps_files: bool,
    /// The sequences marked by `progress`.
    pub(super) marks: Marks,
    fresh: u64,
}

impl Interp {
    /// The bytes of a file, which stay there if the host can map it.
    pub(crate) fn map_file(&mut self, path: &str) -> Eval<Arc<dyn FileBytes>> {
        self.maps_files = true;
        Ok(self.host.map_file(path)?)
    }

    /// `result`, unless a mapped file lost bytes while it was computed.
    #[inline]
    pub(crate) fn unless_lost(&mut self, result: Eval<Value>) -> Eval<Value> {
        if self.maps_files
            && let Some(error) = self.host.lost_bytes()
        {
            return Err(error.into());
        }
        result
    }

    /// An evaluator with the builtins loaded. Without a backend everything is interpreted.
    pub fn new(host: Box<dyn Host>, backend: Option<Box<dyn Backend>>, options: Options) -> Interp {
        let mut interp = Interp {
            sources: Sources::default(),
            options,
            host,
            backend,
            stack: Vec::new(),
            other: Ok(Value::Nil),
            depth: 0,
            budget: Budget::default(),
            failed_lookups: FailedLookups::default(),
            mode: Mode::Run,
            modules: Modules::default(),
            tracing: Tracing::default(),
            weight: 1,
            span: None,
            specialiser: Specialiser::default(),
            observing: None,
            unrun: None,
            expanding: 0,
            maps_files: false,
            marks: Marks::default(),
            fresh: 0,
        };
        if let Some(backend) = &mut interp.backend {
            backend.stopped_by(interp.budget.interrupt());
        }
        interp.load_core();
        interp
    }

    /// Evaluates a top-level expression with `frame_size` slots.
    pub(super) fn run(&mut self, expr: &Expr, frame_size: usize) -> Eval<Value> {
        let base = self.stack.len();
        self.stack.resize(base + frame_size, Value::Nil);
        let result = self.eval(expr, Frame { base, closure: None });
        self.stack.truncate(base);
        result
    }

    #[inline]
    pub(super) fn place<'a>(&'a self, place: VarLocation, frame: Frame<'a>) -> &'a Value {
        match place {
            VarLocation::Frame(slot) => &self.stack[frame.base + slot as usize],
            VarLocation::Captured(i) => &frame.closure.expect("only functions capture").captured[i as usize],
        }
    }

    /// Evaluates an expression.
    pub(super) fn eval(&mut self, expr: &Expr, frame: Frame) -> Eval<Value> {
        match &expr.kind {
            ExprKind::Const(value) => Ok(value.clone()),
            ExprKind::Local(VarLocation::Frame(slot), last) if last.get() && self.tracing.level == 0 => {
                Ok(std::mem::replace(&mut self.stack[frame.base + *slot as usize], Value::Nil))
            }
            ExprKind::Local(place, _) => Ok(self.place(*place, frame).clone()),
            ExprKind::Global(global) => {
                let value = global.value.borrow().clone();
                value.map_or_else(|| self.not_yet(global, expr.span), Ok)
            }
            _ => {
                let scalar = maybe_grow(|| self.eval_compound(expr, frame));
                self.given(scalar)
            }
        }
    }

    /// Evaluates expressions with subexpressions, like [`Interp::eval_scalar`]. Rare cases have functions of their own,
    /// so that the frame of this one, which is on the native stack once per enclosing expression, stays small.
    pub(super) fn eval_compound(&mut self, expr: &Expr, frame: Frame) -> Option<Scalar> {
        match &expr.kind {
            ExprKind::Call { on_numbers: Some(on_numbers), args, .. } => {
                self.eval_arithmetic(expr, *on_numbers, args, frame)
            }
            ExprKind::Call { head, args, .. } => self.eval_call(expr, head, args, frame),
            ExprKind::If(parts) => {
                let [condition, yes, no] = &**parts;
                match self.eval_scalar(condition, frame) {
                    Some(Scalar::False) => self.eval_scalar(no, frame),
                    Some(_) => self.eval_scalar(yes, frame),
                    None => self.eval_other_if(parts, frame),
                }
            }
            ExprKind::Let { bindings, body } => match self.eval_bindings(bindings, frame) {
                Ok(()) => {
                    let scalar = self.eval_scalar(body, frame);
                    self.amend(scalar, |interp, signal| interp.leaving_let(signal, bindings))
                }
                Err(signal) => self.scalar_or_other(Err(signal)),
            },
            ExprKind::Do(exprs) => match exprs.split_last() {
                Some((last, first)) => match self.eval_for_effect(first, frame) {
                    Ok(()) => self.eval_scalar(last, frame),
                    Err(signal) => self.scalar_or_other(Err(signal)),
                },
                None => self.scalar_or_other(Ok(Value::Nil)),
            },
            _ => {
                let value = self.eval_rare(expr, frame);
                self.scalar_or_other(value)
            }
        }
    }

    #[inline(never)]
    fn eval_rare(&mut self, expr: &Expr, frame: Frame) -> Eval<Value> {
        match &expr.kind {
            ExprKind::Param { name, dicts, otherwise, head } => {
                self.eval_param(*name, dicts, otherwise.as_deref(), *head, expr.span, frame)
            }
            ExprKind::Repeat { .. } | ExprKind::While { .. } => self.eval_loop(expr, frame),
            ExprKind::Loop { once, traced } => {
                // An effect happens once, even if a gradient is recorded around it.
                let traces =
                    self.tracing.staging > 0 || (self.tracing.level > 0 && effect_in(once).is_none());
                self.eval(if traces { traced } else { once }, frame)
            }
            ExprKind::Vector { dtype, .. } => self.eval_vector(expr, *dtype, frame),
            ExprKind::Dict(entries) => {
                let mut dict = Dict::with_capacity(entries.len());
                for (key, value) in entries {
                    dict.insert(*key, self.eval(value, frame)?);
                }
                Ok(Value::Dict(Rc::new(dict)))
            }
            ExprKind::Fn(code) => {
                let captured =
                    code.captures.borrow().iter().map(|(p, _)| self.place(*p, frame).clone()).collect();
                Ok(Value::function(Function::Closure(Closure { code: Rc::clone(code), captured })))
            }
            ExprKind::And(exprs) => self.eval_until(exprs, false, frame),
            ExprKind::Or(exprs) => self.eval_until(exprs, true, frame),
            ExprKind::Case { subject, arms, default } => {
                let subject = self.eval(subject, frame)?;
                let case = Case { arms, default: default.as_deref(), span: expr.span };
                self.eval_case(&subject, case, 0, frame).map_err(|s| s.at(expr.span))
            }
            ExprKind::Quasi(template) => self.eval_template(template, frame),
            ExprKind::Static(inner) => {
                let value = self.eval(inner, frame)?;
                value.known(STATIC).map_err(|s| s.at(expr.span))
            }
            ExprKind::Cast(inner, dtype) => {
                let value = self.eval(inner, frame)?;
                self.cast(&value, *dtype).map_err(|s| s.at(expr.span))
            }
            ExprKind::Def(global) => self.define_value(global).map(|()| Value::Nil),
            ExprKind::Const(_)
            | ExprKind::Local(..)
            | ExprKind::Global(_)
            | ExprKind::Call { .. }
            | ExprKind::If(_)
            | ExprKind::Do(_)
            | ExprKind::Let { .. } => unreachable!("evaluated by eval and eval_compound"),
        }
    }

    /// Evaluates a `def`, if it has not run yet.
    pub(super) fn define_value(&mut self, global: &Global) -> Eval<()> {
        let pending = global.pending.take();
        if let Some(pending) = pending {
            let value = self.run(&pending.expr, pending.frame_size)?;
            self.give(global, value);
        }
        Ok(())
    }

    /// The value of a definition without one: evaluated at once if a macro needs it during expansion.
    #[cold]
    fn not_yet(&mut self, global: &Global, span: Span) -> Eval<Value> {
        if self.expanding > 0 {
            self.define_value(global)?;
        }
        if let Some(value) = &*global.value.borrow() {
            return Ok(value.clone());
        }
        if matches!(self.mode, Mode::Prepare)
            && let Some(value) = self.value_ahead(global)?
        {
            return Ok(value);
        }
        if !matches!(self.mode, Mode::Run) {
            let reason = Reason::Unevaluated(global.name);
            return Err(Stop::trace(reason, Some(span)));
        }
        Err(Diagnostic::error(format!("{} is used before its definition has run", global.name))
            .at(span, "used here")
            .at(global.span.get(), "defined here")
            .help("a file runs from top to bottom: move the definition above its first use")
            .into())
    }

    /// [`Interp::eval_compound`] of an `if` with a non-scalar condition.
    #[inline(never)]
    fn eval_other_if(&mut self, parts: &[Expr; 3], frame: Frame) -> Option<Scalar> {
        let [_, yes, no] = parts;
        match self.other_choice(parts, frame) {
            Ok(Choice::Known(holds)) => self.eval_scalar(if holds { yes } else { no }, frame),
            Ok(Choice::Recorded(value)) => self.scalar_or_other(Ok(value)),
            Err(signal) => self.scalar_or_other(Err(signal)),
        }
    }

    /// Outcome of an `if` whose condition, the last [`Interp::eval_scalar`], gave no scalar.
    pub(super) fn other_choice(&mut self, [condition, yes, no]: &[Expr; 3], frame: Frame) -> Eval<Choice> {
        let value = self.take_other()?;
        match value.truthy() {
            Err(signal) if Self::asks_for_truth(&signal) => {
                let places = [yes.span, no.span];
                let chosen =
                    self.conditional(&value, places, |i| i.eval(yes, frame), |i| i.eval(no, frame))?;
                let asks = |differing| signal.at(condition.span).differing(differing);
                chosen.map(Choice::Recorded).map_err(asks)
            }
            holds => holds.map(Choice::Known).map_err(|s| blame::in_value(self, s, condition, &value)),
        }
    }

    /// True if the non-scalar result of the last [`Interp::eval_scalar`] holds as a condition.
    #[inline(never)]
    pub(super) fn other_holds(&mut self, condition: &Expr) -> Eval<bool> {
        let value = self.take_other()?;
        value.truthy().map_err(|s| blame::in_value(self, s, condition, &value))
    }

    pub(super) fn eval_bindings(&mut self, bindings: &[(Pattern, Expr)], frame: Frame) -> Eval<()> {
        for (i, (pattern, value)) in bindings.iter().enumerate() {
            let bound = match self.eval(value, frame) {
                Ok(v) if self.observing.is_some() => self.bind_observed(pattern, v, value, frame.base),
                Ok(v) => self.bind_value(pattern, v, value, frame.base),
                Err(signal) => Err(signal),
            };
            bound.map_err(|signal| self.leaving_let(signal, &bindings[..i]))?;
        }
        Ok(())
    }

    pub(super) fn eval_for_effect(&mut self, exprs: &[Expr], frame: Frame) -> Eval<()> {
        exprs.iter().try_for_each(|e| self.eval(e, frame).map(drop))
    }

    fn eval_param(
        &mut self,
        name: Ustr,
        dicts: &[VarLocation],
        otherwise: Option<&Expr>,
        head: bool,
        span: Span,
        frame: Frame,
    ) -> Eval<Value> {
        let outer = match otherwise {
            Some(e) if head => {
                let outer = self.eval(e, frame)?;
                if matches!(outer, Value::Function(_)) {
                    return Ok(outer);
                }
                Some(outer)
            }
            _ => None,
        };
        for place in dicts {
            match self.place(*place, frame) {
                Value::Dict(dict) => {
                    if let Some(value) = dict.get(&name) {
                        return Ok(value.clone());
                    }
                }
                other => {
                    return Err(Diagnostic::error(format!(
                        "with-params wants a dictionary, not {}",
                        other.describe()
                    ))
                    .at(span, "looked up here")
                    .into());
                }
            }
        }
        if let Some(outer) = outer {
            return Ok(outer);
        }
        if let Some(e) = otherwise {
            return self.eval(e, frame);
        }
        let dicts: Vec<&Value> = dicts.iter().map(|p| self.place(*p, frame)).collect();
        let keys: Vec<Key> = dicts
            .iter()
            .flat_map(|d| if let Value::Dict(d) = d { d.keys().collect() } else { vec![] })
            .collect();
        let found = dicts.iter().map(|d| d.describe()).collect::<Vec<_>>().join(", then ");
        let d = Diagnostic::error(format!("unknown name {name}"))
            .at(span, "neither a definition nor a key of the parameters")
            .note(format!("the parameters here are {found}"));
        Err(match builtins::nearest(&name, keys.iter().map(|k| k.name.as_str())) {
            Some(near) => d.help(format!("did you mean {near}?")).into(),
            None => d.into(),
        })
    }

    /// A vector literal; its numbers are read as `dtype`, if there is one.
    fn eval_vector(&mut self, expr: &Expr, dtype: Option<DType>, frame: Frame) -> Eval<Value> {
        let mut shape = Shape::new();
        let mut leaves = Vec::new();
        if literal_leaves(expr, 0, &mut shape, &mut leaves) {
            let mut values = Vec::with_capacity(leaves.len());
            for leaf in leaves {
                values.push(self.eval(leaf, frame)?);
            }
            let place = self.user_place(expr.span);
            let saved = self.span.replace(place);
            let result = builtins::vector_literal(self, values, &shape, dtype);
            self.span = saved;
            let value = result.map_err(|s| s.at(place))?;
            value.made_at(place);
            return Ok(value);
        }
        let ExprKind::Vector { items, .. } = &expr.kind else { return self.eval(expr, frame) };
        let items = items.iter().map(|item| self.eval(item, frame));
        items.collect::<Eval<Vec<Value>>>().map(Value::vector)
    }

    fn eval_template(&mut self, template: &Template, frame: Frame) -> Eval<Value> {
        match template {
            Template::Const(value) => Ok(value.clone()),
            Template::Unquote(e) => self.eval(e, frame),
            Template::Splice(e) => Err(Diagnostic::error("~@ splices into a list; there is none around it")
                .at(e.span, "")
                .into()),
            Template::List(bracket, items, span) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    match item {
                        Template::Splice(e) => {
                            let value = self.eval(e, frame)?;
                            out.extend(self.sequence(&value).map_err(|s| s.at(e.span))?);
                        }
                        item => out.push(self.eval_template(item, frame)?),
                    }
                }
                Ok(Value::List(Rc::new(List { bracket: *bracket, items: out.into(), origin: Some(*span) })))
            }
            Template::Dict(entries, span) => {
                let mut dict = Dict::default();
                for (key, value) in entries {
                    let key = self.eval_template(key, frame)?;
                    let Some(name) = key.as_key() else {
                        return Err(Diagnostic::error(format!(
                            "a key is a keyword, a string or a symbol, not {}",
                            key.describe()
                        ))
                        .at(*span, "in this dictionary")
                        .into());
                    };
                    dict.insert(name, self.eval_template(value, frame)?);
                }
                Ok(Value::Dict(Rc::new(dict)))
            }
        }
    }

    /// True if the effect `name` is skipped: one with no result of its own, while a program is only checked.
    pub(crate) fn passes_over(&self, name: &str) -> bool {
        matches!(self.mode, Mode::Check(_))
            && ["print", "println", "log-metric", "progress", "plot"].contains(&name)
    }

    /// Fails if the effect `name` is performed while a function is traced for compilation.
    pub(crate) fn effect(&self, name: &str) -> Eval<()> {
        if self.tracing.staging == 0 {
            return Ok(());
        }
        let reason = Reason::Effect(name.into());
        Err(Stop::trace(reason, self.span))
    }

    /// Sets the value of a definition. If that replaces another, the traces that used the other are discarded.
    pub(super) fn give(&mut self, global: &Global, value: Value) {
        if global.value.replace(Some(value)).is_some() {
            self.specialiser.forget();
        }
    }

    /// A number unique in this run.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.fresh += 1;
        self.fresh
    }
}

/// Collects the innermost items of a vector literal and its shape; false if it is ragged, or must stay a list.
fn literal_leaves<'e>(expr: &'e Expr, depth: usize, shape: &mut Shape, leaves: &mut Vec<&'e Expr>) -> bool {
    let ExprKind::Vector { items, list, .. } = &expr.kind else {
        leaves.push(expr);
        return depth > 0 && depth == shape.len();
    };
    if depth == shape.len() && leaves.is_empty() {
        shape.push(items.len());
    }
    !list
        && shape.get(depth) == Some(&items.len())
        && items.iter().all(|item| literal_leaves(item, depth + 1, shape, leaves))
}
