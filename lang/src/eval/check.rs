//! `sheaf check`: static checks of a program.
//!
//! A program is read, expanded and resolved as for a run. Its top level does not run; instead, every call of a known
//! function is checked for its number of arguments, and every function whose parameters are all typed is traced with
//! arguments of those types. Values that only a run gives, such as those of `def`, are unknown; code that depends on
//! them is skipped silently.

use std::collections::HashSet;
use std::rc::Rc;

use super::call::Args;
use super::call::check_argument;
use super::interp::{Interp, Mode};
use super::signal::Stop;
use crate::program::{
    Code, Dict, Expr, ExprKind, Function, Global, Module, Origin, ParamType, Pending, Trace, Value,
};
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum calls and iterations while tracing one function.
const MAX_STEPS: u64 = 10_000_000;

/// Results of a check.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    /// Errors in source order; those of modules come after those of the program.
    pub errors: Vec<Diagnostic>,
    /// Number of files: the program and the user's modules that it uses.
    pub files: usize,
    /// Number of function definitions.
    pub functions: usize,
    /// Number of calls of any kind.
    pub calls: usize,
    /// Number of functions whose bodies were traced to the end for their parameter types.
    pub traced: usize,
}

impl Checked {
    /// Adds the results of another program.
    pub fn add(&mut self, other: Checked) {
        let known: HashSet<String> = self.errors.iter().map(identity).collect();
        self.errors.extend(other.errors.into_iter().filter(|d| !known.contains(&identity(d))));
        self.files += other.files;
        self.functions += other.functions;
        self.calls += other.calls;
        self.traced += other.traced;
    }
}

/// Identity of an error: the message and the main span.
fn identity(d: &Diagnostic) -> String {
    format!("{} {:?}", d.message, d.labels.first().map(|l| l.span))
}

impl Interp {
    /// Checks the program in the file `path`, and the modules that it uses, without running it. Only macros run, for
    /// expansion.
    pub fn check_program(&mut self, path: &str, text: &str) -> Checked {
        self.mode = Mode::Check(Checked::default());
        let result = self.run_program(path, text);
        let Mode::Check(mut checked) = std::mem::replace(&mut self.mode, Mode::Run) else {
            unreachable!("set above")
        };
        checked.errors.extend(result.err().into_iter().flatten());
        let mut seen = HashSet::new();
        checked.errors.retain(|d| seen.insert(identity(d)));
        checked.errors.sort_by_key(|d| d.labels.first().map(|l| (l.span.source, l.span.start)));
        checked
    }

    /// Checks the definitions and top-level expressions of a text.
    pub(super) fn check_prepared(&mut self, module: &Rc<Module>, pending: &[Pending]) {
        self.note(|c| c.files += 1);
        let mut walk = Walk { interp: self, calls: 0, errors: Vec::new() };
        for Pending { expr, .. } in pending {
            walk.expr(expr);
            if let ExprKind::Def(global) = &expr.kind {
                let value = global.pending.borrow().clone();
                value.iter().for_each(|value| walk.expr(&value.expr));
            }
        }
        let globals: Vec<Rc<Global>> = module.definitions.borrow().values().cloned().collect();
        let functions: Vec<(Rc<Function>, Rc<Code>)> = globals.iter().filter_map(|g| defined(g)).collect();
        for (_, code) in &functions {
            walk.code(code);
        }
        let Walk { calls, mut errors, .. } = walk;
        for Pending { expr, .. } in pending {
            let ExprKind::Def(global) = &expr.kind else { continue };
            let constant = global.pending.borrow().as_ref().is_some_and(|value| is_constant(&value.expr));
            if constant
                && let Err(signal) = self.define_value(global)
                && let Stop::Error(d) = *signal
            {
                errors.push(d);
            }
        }
        let mut traced = 0;
        for (function, code) in &functions {
            match self.trace_typed(function, code) {
                Some(Ok(())) => traced += 1,
                Some(Err(d)) => errors.push(d),
                None => {}
            }
        }
        self.note(|c| {
            c.calls += calls;
            c.functions += functions.len();
            c.traced += traced;
            c.errors.extend(errors);
        });
    }

    /// Updates the results, if this is a check.
    pub(super) fn note(&mut self, change: impl FnOnce(&mut Checked)) {
        if let Mode::Check(checked) = &mut self.mode {
            change(checked);
        }
    }

    /// Traces the body of a function whose parameters are all typed; `None` if they are not, or if the trace needs a
    /// value that only a run knows.
    fn trace_typed(&mut self, function: &Rc<Function>, code: &Code) -> Option<Result<(), Diagnostic>> {
        if code.params.is_empty() || code.rest.is_some() {
            return None;
        }
        self.tracing.level += 1;
        self.tracing.staging += 1;
        let trace = self.tracing.trace(self.tracing.level);
        let arguments = code.params.iter().map(|p| p.ty.as_ref().map(|ty| argument(&trace, ty, p.span)));
        let arguments: Option<Args> = arguments.collect();
        self.limit_steps(MAX_STEPS);
        let result = arguments.map(|arguments| self.call_interpreted(function, arguments, code.head));
        self.limit_steps(u64::MAX);
        self.tracing.staging -= 1;
        self.tracing.level -= 1;
        match result?.map_err(|signal| *signal) {
            Ok(_) => Some(Ok(())),
            Err(Stop::Trace(_)) => None,
            Err(Stop::Error(d)) => Some(Err(d)),
        }
    }
}

/// A traced argument of a type; f32 without a dtype.
fn argument(trace: &Rc<Trace>, ty: &ParamType, declared: Span) -> Value {
    match ty {
        ParamType::Tensor(shape, dtype) => {
            let ty = TensorType::new(dtype.unwrap_or(DType::F32), shape.clone());
            Value::Tensor(trace.input(ty, None, Some(Origin::Declared(declared))))
        }
        ParamType::List(items) => Value::list(items.iter().map(|t| argument(trace, t, declared)).collect()),
        ParamType::Dict(entries) => {
            let entries = entries.iter().map(|(k, t)| (*k, argument(trace, t, declared)));
            Value::Dict(Rc::new(entries.collect::<Dict>()))
        }
    }
}

/// The function of a definition, if it is known without running anything.
fn defined(global: &Global) -> Option<(Rc<Function>, Rc<Code>)> {
    let value = global.value.borrow();
    let Some(Value::Function(f)) = &*value else { return None };
    if let Function::Closure(c) = &**f { Some((Rc::clone(f), Rc::clone(&c.code))) } else { None }
}

/// True if the value of an expression needs no run: a literal or a function.
fn is_constant(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Const(_) => true,
        ExprKind::Fn(code) => code.captures.borrow().is_empty(),
        ExprKind::Vector { items, .. } => items.iter().all(is_constant),
        ExprKind::Dict(entries) => entries.iter().all(|(_, e)| is_constant(e)),
        ExprKind::Cast(inner, _) => is_constant(inner),
        _ => false,
    }
}

/// Walks expressions and checks the calls.
struct Walk<'a> {
    interp: &'a mut Interp,
    calls: usize,
    errors: Vec<Diagnostic>,
}

impl Walk<'_> {
    fn code(&mut self, code: &Code) {
        if let Some(body) = code.body.get() {
            self.expr(body);
        }
    }

    fn expr(&mut self, expr: &Expr) {
        if let ExprKind::Call { head, args, .. } = &expr.kind {
            self.calls += 1;
            self.call(expr, head, args);
        }
        expr.for_each_part(&mut |part| self.expr(part));
    }

    fn call(&mut self, call: &Expr, head: &Expr, args: &[Expr]) {
        let code = match &head.kind {
            ExprKind::Fn(code) => Rc::clone(code),
            ExprKind::Const(Value::Function(f)) => match &**f {
                Function::Builtin(b) => {
                    let fault = b.check_arity(args.len());
                    self.errors.extend(fault.err().map(|d| d.at(call.span, "")));
                    return;
                }
                Function::Closure(c) => Rc::clone(&c.code),
                Function::Transformed(..) => return,
            },
            ExprKind::Global(global) => match defined(global) {
                Some((_, code)) => code,
                None => return,
            },
            _ => return,
        };
        if let Err(d) = code.check_arity(args.len(), call.span, &self.interp.sources) {
            self.errors.push(d);
            return;
        }
        if let Some(known) = code.keywords() {
            for arg in args[code.params.len()..].iter().step_by(2) {
                if let ExprKind::Const(Value::Keyword(key)) = &arg.kind {
                    self.errors.extend(code.check_keyword(*key, &known, call.span).err());
                }
            }
        }
        for (param, arg) in code.params.iter().zip(args) {
            if param.ty.is_some()
                && is_constant(arg)
                && let Ok(value) = self.interp.run(arg, 0)
                && let Err(signal) = check_argument(param, &value, call.span)
                && let Stop::Error(d) = *signal
            {
                self.errors.push(d);
            }
        }
    }
}
