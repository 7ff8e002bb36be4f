//! Function calls.

use std::rc::Rc;

use smallvec::SmallVec;

use super::blame;
use super::interp::{Frame, Interp, MAX_DEPTH};
use super::signal::{Eval, Signal, fail};
use crate::builtins::{self, Builtin};
use crate::program::{Closure, Code, Expr, ExprKind, Function, Param, Pattern, Scalar, Value};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Arguments of a call.
pub type Args = SmallVec<[Value; 4]>;

impl Interp {
    /// Calls a function: compiled if possible and worthwhile, else interpreted.
    pub(crate) fn call_function(&mut self, function: &Rc<Function>, args: Args, span: Span) -> Eval<Value> {
        if self.observing.is_some() {
            return self.observed_function(function, args, span);
        }
        self.call_unobserved(function, args, span)
    }

    /// [`Interp::call_function`] without a report of the call itself.
    #[inline]
    pub(super) fn call_unobserved(
        &mut self,
        function: &Rc<Function>,
        mut args: Args,
        span: Span,
    ) -> Eval<Value> {
        match &**function {
            Function::Builtin(builtin) => self.call_builtin(builtin, &args, span),
            Function::Closure(_) | Function::Transformed(..) => {
                if self.tracing.staging == 0 && self.backend.is_some() {
                    if let Some(result) = self.call_compiled(function, &mut args, span)? {
                        return Ok(result);
                    }
                    if self.specialiser.begin_waiting() {
                        let result = self.call_interpreted(function, args, span);
                        self.specialiser.end_waiting();
                        return result;
                    }
                }
                self.call_interpreted(function, args, span)
            }
        }
    }

    /// Calls a function by evaluating its body on concrete or traced values.
    pub(super) fn call_interpreted(
        &mut self,
        function: &Rc<Function>,
        args: Args,
        span: Span,
    ) -> Eval<Value> {
        match &**function {
            Function::Builtin(builtin) => self.call_builtin(builtin, &args, span),
            Function::Closure(closure) => self.call_closure(closure, args, span),
            Function::Transformed(transform, f) => self.call_transformed(transform, f, &args, span),
        }
    }

    /// Calls any callable value: a function, a keyword, a tensor or a dictionary.
    pub(crate) fn call(
        &mut self,
        f: &Value,
        args: impl IntoIterator<Item = Value, IntoIter: ExactSizeIterator>,
    ) -> Eval<Value> {
        let args = args.into_iter();
        let span = self.span.unwrap_or(Span { source: sheaf_syntax::SourceId::new(0), start: 0, end: 0 });
        if let Value::Function(function) = f
            && let Function::Closure(closure) = &**function
            && closure.code.plain
        {
            let base = self.add_slots(args.len());
            args.enumerate().for_each(|(i, arg)| self.set_value(base + i, arg));
            let scalar = self.call_on_stack(function, closure, base, span);
            return self.given(scalar);
        }
        self.step()?;
        let args: Args = args.collect();
        match f {
            Value::Function(function) => self.call_function(function, args, span),
            other => self.call_value(other, &args, span),
        }
    }

    /// Evaluates a call, like [`Interp::eval_scalar`].
    pub(super) fn eval_call(
        &mut self,
        expr: &Expr,
        head: &Expr,
        args: &[Expr],
        frame: Frame,
    ) -> Option<Scalar> {
        if let ExprKind::Const(Value::Function(function)) = &head.kind
            && let Function::Builtin(builtin) = &**function
        {
            return self.eval_builtin_call(expr, builtin, frame);
        }
        if let ExprKind::Global(global) = &head.kind
            && let Some(function) = global.function()
            && let Function::Closure(closure) = &*function
            && closure.code.plain
        {
            return self.eval_plain_call(expr, args, &function, closure, frame);
        }
        let callee = match self.eval(head, frame) {
            Ok(callee) => callee,
            Err(signal) => return self.scalar_or_other(Err(signal)),
        };
        if let Value::Function(function) = &callee
            && let Function::Closure(closure) = &**function
            && closure.code.plain
        {
            return self.eval_plain_call(expr, args, function, closure, frame);
        }
        self.eval_other_call(expr, &callee, frame)
    }

    /// Calls a function with plain parameters: the arguments are evaluated directly into its frame.
    fn eval_plain_call(
        &mut self,
        expr: &Expr,
        args: &[Expr],
        function: &Rc<Function>,
        closure: &Closure,
        frame: Frame,
    ) -> Option<Scalar> {
        let base = self.add_slots(args.len());
        for (i, arg) in args.iter().enumerate() {
            if let Err(signal) = self.assign(base + i, arg, frame) {
                return self.scalar_or_other(Err(signal));
            }
        }
        let place = self.user_place(expr.span);
        let saved = self.span.replace(place);
        let scalar = self.call_on_stack(function, closure, base, place);
        self.span = saved;
        self.left_call(scalar, expr, place)
    }

    /// Calls a builtin known at resolution. Few arguments stay on the stack.
    #[inline(never)]
    fn eval_builtin_call(&mut self, expr: &Expr, builtin: &Builtin, frame: Frame) -> Option<Scalar> {
        match call_args(expr) {
            [x] => {
                let values = self.eval(x, frame).map(|x| [x]);
                self.in_call(expr, values, |i, values, place| i.call_builtin(builtin, &values, place))
            }
            [x, y] => {
                let values = self.eval(x, frame).and_then(|x| Ok([x, self.eval(y, frame)?]));
                self.in_call(expr, values, |i, values, place| i.call_builtin(builtin, &values, place))
            }
            args => {
                let values = args.iter().map(|arg| self.eval(arg, frame)).collect::<Eval<Args>>();
                self.in_call(expr, values, |i, values, place| i.call_builtin(builtin, &values, place))
            }
        }
    }

    #[inline(never)]
    fn eval_other_call(&mut self, expr: &Expr, callee: &Value, frame: Frame) -> Option<Scalar> {
        let values = call_args(expr).iter().map(|arg| self.eval(arg, frame)).collect::<Eval<Args>>();
        self.in_call(expr, values, |i, values, place| match callee {
            Value::Function(f) => i.call_function(f, values, place),
            other => i.call_value(other, &values, place),
        })
    }

    /// Evaluates `f` as the innermost call `expr`, whose arguments are evaluated.
    #[inline]
    pub(super) fn in_call<T>(
        &mut self,
        expr: &Expr,
        values: Eval<T>,
        call: impl FnOnce(&mut Interp, T, Span) -> Eval<Value>,
    ) -> Option<Scalar> {
        let values = match values {
            Ok(values) => values,
            Err(signal) => return self.scalar_or_other(Err(signal)),
        };
        let place = self.user_place(expr.span);
        let saved = self.span.replace(place);
        let result = call(self, values, place);
        self.span = saved;
        let scalar = self.scalar_or_other(result);
        self.left_call(scalar, expr, place)
    }

    /// The result of the call `expr`, which ran at `place`.
    #[inline]
    fn left_call(&mut self, scalar: Option<Scalar>, expr: &Expr, place: Span) -> Option<Scalar> {
        if let (None, Ok(value)) = (scalar, &self.other) {
            value.made_at(place);
        }
        self.amend(scalar, |interp, signal| match &expr.kind {
            ExprKind::Call { head, args, .. } => interp.leaving_call(signal, expr, head, args),
            _ => signal,
        })
    }

    #[inline]
    pub(super) fn call_builtin(&mut self, builtin: &Builtin, args: &[Value], span: Span) -> Eval<Value> {
        if self.observing.is_some() {
            return self.observed_builtin(builtin, args, span);
        }
        self.run_builtin(builtin, args, span)
    }

    /// [`Interp::call_builtin`] without a report.
    #[inline]
    pub(super) fn run_builtin(&mut self, builtin: &Builtin, args: &[Value], span: Span) -> Eval<Value> {
        builtin.call(self, args).map_err(|signal| blame::in_builtin(signal, span, args))
    }

    /// Calls a function with plain parameters whose arguments are on the stack from `base`.
    fn call_on_stack(
        &mut self,
        function: &Rc<Function>,
        closure: &Closure,
        base: usize,
        span: Span,
    ) -> Option<Scalar> {
        let number = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_));
        let interpreted = self.backend.is_none()
            || self.tracing.staging > 0
            || (self.stack[base..].iter().all(number) && closure.captured.iter().all(number));
        if interpreted && self.observing.is_none() && closure.code.gradient.borrow().is_none() {
            return self.enter_plain(closure, base, span);
        }
        let args = self.stack.drain(base..).collect();
        let value = self.call_function(function, args, span);
        self.scalar_or_other(value)
    }

    fn call_closure(&mut self, closure: &Closure, args: Args, span: Span) -> Eval<Value> {
        let gradient = closure.code.gradient.borrow().clone();
        match gradient {
            Some(gradient)
                if self.tracing.records(&gradient) && args.iter().any(super::custom::has_traced) =>
            {
                self.call_custom(closure, gradient, &args, span)
            }
            _ => self.call_plain(closure, args, span),
        }
    }

    /// Calls a closure by evaluating its body, even if it has a custom gradient.
    pub(super) fn call_plain(&mut self, closure: &Closure, args: Args, span: Span) -> Eval<Value> {
        let base = self.stack.len();
        if closure.code.plain {
            self.stack.extend(args);
            let scalar = self.enter_plain(closure, base, span);
            return self.given(scalar);
        }
        let scalar = self.enter(closure, base, span, |interp| {
            let code = &closure.code;
            code.check_arity(args.len(), span, &interp.sources)?;
            interp.stack.resize(base + frame_size(code), Value::Nil);
            let mut args = args.into_iter();
            for (param, arg) in code.params.iter().zip(args.by_ref()) {
                check_argument(param, &arg, span)?;
                interp.bind_pattern(&param.pattern, arg, base)?;
            }
            match &code.rest {
                Some(rest @ Pattern::Keys(..)) => {
                    let given: Args = args.collect();
                    interp.bind_pattern(rest, code.keyword_arguments(&given, span)?, base)
                }
                Some(rest) => interp.bind_pattern(rest, Value::list(args.collect()), base),
                None => Ok(()),
            }
        });
        self.given(scalar)
    }

    /// Evaluates a function with plain parameters whose arguments are on the stack from `base`.
    fn enter_plain(&mut self, closure: &Closure, base: usize, span: Span) -> Option<Scalar> {
        self.enter(closure, base, span, |interp| {
            let code = &closure.code;
            code.check_arity(interp.stack.len() - base, span, &interp.sources)?;
            let top = base + frame_size(code);
            if interp.stack.len() < top {
                interp.stack.resize(top, Value::Nil);
            }
            Ok(())
        })
    }

    /// Evaluates the body of a function called at `span`, in the frame filled by `bind`.
    #[inline]
    fn enter(
        &mut self,
        closure: &Closure,
        base: usize,
        span: Span,
        bind: impl FnOnce(&mut Interp) -> Eval<()>,
    ) -> Option<Scalar> {
        let code = &closure.code;
        self.depth += 1;
        let root = std::mem::take(&mut self.tracing.at_root);
        let traced = self.tracing.level > 0 && !root;
        if traced {
            self.tracing.calls.push((code.name, span));
        }
        let scalar = if self.depth > MAX_DEPTH || crate::stack::exhausted() {
            let error = too_deep(code, self.depth - 1);
            self.scalar_or_other(Err(error))
        } else {
            match (self.step().and_then(|()| bind(self)), code.body.get()) {
                (Err(signal), _) => self.scalar_or_other(Err(signal)),
                (Ok(()), Some(body)) => {
                    let scalar = self.eval_scalar(body, Frame { base, closure: Some(closure) });
                    self.amend(scalar, |interp, signal| {
                        interp.leaving_library(blame::leaving_closure(signal, code, span), code)
                    })
                }
                (Ok(()), None) => {
                    let error = fail(format!("{} has no body yet", code.display_name()));
                    self.scalar_or_other(error)
                }
            }
        };
        if traced {
            self.tracing.calls.pop();
        }
        self.depth -= 1;
        self.stack.truncate(base);
        scalar
    }

    /// Calls a value that is no function: looks up a keyword, indexes a tensor.
    pub(super) fn call_value(&mut self, head: &Value, args: &[Value], span: Span) -> Eval<Value> {
        let result = self.apply_value(head, args);
        self.unless_lost(result).map_err(|signal| blame::in_value_call(signal, span, head, args))
    }

    fn apply_value(&mut self, head: &Value, args: &[Value]) -> Eval<Value> {
        match (head, args) {
            (Value::Keyword(_), [Value::Dict(_) | Value::Nil]) => {
                crate::builtins::get(self, &[args[0].clone(), head.clone()])
            }
            (Value::Keyword(key), [Value::Dict(dict), default]) => {
                Ok(dict.get(key).unwrap_or(default).clone())
            }
            (Value::Keyword(_), [Value::Nil, default]) => Ok(default.clone()),
            (Value::Keyword(key), [other] | [other, _]) => {
                let looks =
                    format!("(:{key} x) looks :{key} up in a dictionary, but x is {}", other.describe());
                Err(Diagnostic::error(looks)
                    .help(format!("{{:{key} x}} makes a dictionary, and (list :{key} x) a list"))
                    .into())
            }
            (Value::Keyword(key), _) => fail(format!(
                "(:{key} x) takes a dictionary and maybe a default, got {} arguments",
                args.len()
            )),
            (Value::Tensor(_), [_, ..]) => self.index_tensor(head, args),
            (Value::Handle(handle), _) => self.index_handle(handle, args),
            (Value::Nil, _) => fail("nil was called as a function"),
            (other, args) => Err(not_a_function(other, args).into()),
        }
    }
}

fn not_a_function(head: &Value, args: &[Value]) -> Diagnostic {
    let error = Diagnostic::error(format!("{} is not a function", head.describe()));
    match (head, args) {
        (_, [Value::Function(f), _]) => error.help(format!("the function comes first: ({} a b)", f.name())),
        (Value::Dict(_), [key @ Value::Keyword(_)]) => {
            error.help(format!("to look a key up write ({} d)", builtins::repr(key)))
        }
        (Value::Dict(_), _) => error.help("to look a key up write (:key d) or (get d key)"),
        (Value::List(_), _) => {
            error.help("an item is (nth xs i); data in round brackets is quoted: '(1 2 3)")
        }
        _ => error
            .help("round brackets call: the first thing in them is a function; a list of data is '(1 2 3)"),
    }
}

/// The arguments of the call `expr`.
fn call_args(expr: &Expr) -> &[Expr] {
    if let ExprKind::Call { args, .. } = &expr.kind { args } else { &[] }
}

fn frame_size(code: &Code) -> usize {
    code.frame_size.get().copied().unwrap_or(0)
}

#[cold]
fn too_deep(code: &Code, depth: usize) -> Signal {
    Diagnostic::error(format!("calls are nested more than {depth} deep"))
        .at(code.head, "in this function")
        .help("is there a recursion without end? repeat, while and reduce do not nest")
        .into()
}

/// Fails unless `arg` has the declared type of the parameter.
pub(super) fn check_argument(param: &Param, arg: &Value, span: Span) -> Eval<()> {
    let Some(ty) = &param.ty else { return Ok(()) };
    ty.check(arg, &param.name).map_err(|what| {
        let mut d = Diagnostic::error(format!("parameter {what}"))
            .at(span, "called here")
            .at(param.span, "declared here");
        blame::operands(&mut d, std::slice::from_ref(arg));
        d.into()
    })
}
