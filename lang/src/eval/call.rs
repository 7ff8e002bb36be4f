//! Calling functions.

use std::rc::Rc;

use smallvec::SmallVec;

use super::blame;
use super::expr::{Code, Expr, ExprKind};
use super::interp::{Frame, Interp, MAX_DEPTH};
use super::signal::{Eval, Signal, fail};
use super::typed::check_argument;
use super::value::{Closure, Function, Value};
use crate::builtins::{self, Builtin};
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;

/// Arguments of a call.
pub type Args = SmallVec<[Value; 4]>;

impl Interp {
    /// Calls a function: as a compiled program where that is possible and pays, else by evaluating it.
    pub(crate) fn call_function(&mut self, function: &Rc<Function>, args: Args, span: Span) -> Eval<Value> {
        match &**function {
            Function::Builtin(builtin) => self.call_builtin(builtin, &args, span),
            Function::Closure(_) | Function::Transformed(..) => {
                if self.recording == 0
                    && self.backend.is_some()
                    && let Some(result) = self.call_compiled(function, &args)?
                {
                    return Ok(result);
                }
                self.call_interpreted(function, args, span)
            }
        }
    }

    /// Calls a function by evaluating its body, concrete or traced.
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

    /// Calls whatever a value means as a function: a function, a keyword, a tensor or a dictionary.
    pub(crate) fn call(&mut self, f: &Value, args: Args) -> Eval<Value> {
        self.step()?;
        let span = self.span.unwrap_or(Span { source: crate::syntax::SourceId(0), start: 0, end: 0 });
        match f {
            Value::Function(function) => self.call_function(function, args, span),
            other => self.call_value(other, &args, span),
        }
    }

    /// Evaluates a call.
    pub(super) fn eval_call(&mut self, expr: &Expr, head: &Expr, args: &[Expr], frame: Frame) -> Eval<Value> {
        // A builtin that was known when the code was resolved, with few arguments: they stay where they are.
        if let ExprKind::Const(Value::Function(function)) = &head.kind
            && let Function::Builtin(builtin) = &**function
        {
            match args {
                [x] => {
                    let values = [self.eval(x, frame)?];
                    return self
                        .in_call(expr, head, args, |i, place| i.call_builtin(builtin, &values, place));
                }
                [x, y] => {
                    let values = [self.eval(x, frame)?, self.eval(y, frame)?];
                    return self
                        .in_call(expr, head, args, |i, place| i.call_builtin(builtin, &values, place));
                }
                _ => {}
            }
        }
        let callee = self.eval(head, frame)?;
        if let Value::Function(function) = &callee
            && let Function::Closure(closure) = &**function
            && closure.code.plain
        {
            // The arguments are evaluated to where the frame of the call has them.
            let base = self.stack.len();
            for arg in args {
                let value = self.eval(arg, frame)?;
                self.stack.push(value);
            }
            return self
                .in_call(expr, head, args, |i, place| i.call_on_stack(function, closure, base, place));
        }
        let values = args.iter().map(|arg| self.eval(arg, frame)).collect::<Eval<Args>>()?;
        self.in_call(expr, head, args, |i, place| match &callee {
            Value::Function(f) => i.call_function(f, values, place),
            other => i.call_value(other, &values, place),
        })
    }

    /// Runs the call `expr`, whose arguments are evaluated, as the innermost one.
    #[inline]
    fn in_call(
        &mut self,
        expr: &Expr,
        head: &Expr,
        args: &[Expr],
        call: impl FnOnce(&mut Interp, Span) -> Eval<Value>,
    ) -> Eval<Value> {
        let place = self.user_place(expr.span);
        let saved = self.span.replace(place);
        let result = call(self, place);
        self.span = saved;
        match result {
            Ok(value) => {
                value.made_at(place);
                Ok(value)
            }
            Err(signal) => Err(self.leaving_call(signal, expr, head, args)),
        }
    }

    #[inline]
    fn call_builtin(&mut self, builtin: &Builtin, args: &[Value], span: Span) -> Eval<Value> {
        builtin.call(self, args).map_err(|signal| blame::in_builtin(signal, span, args))
    }

    /// Calls a function with plain parameters whose arguments lie on the stack from `base`.
    fn call_on_stack(
        &mut self,
        function: &Rc<Function>,
        closure: &Closure,
        base: usize,
        span: Span,
    ) -> Eval<Value> {
        let number = |v: &Value| matches!(v, Value::Int(_) | Value::Float(_));
        let interpreted = self.backend.is_none()
            || self.recording > 0
            || (self.stack[base..].iter().all(number) && closure.captured.iter().all(number));
        if interpreted && closure.code.gradient.borrow().is_none() {
            return self.enter_plain(closure, base, span);
        }
        let args = self.stack.drain(base..).collect();
        self.call_function(function, args, span)
    }

    fn call_closure(&mut self, closure: &Closure, args: Args, span: Span) -> Eval<Value> {
        let gradient = closure.code.gradient.borrow().clone();
        match gradient {
            Some(gradient) if args.iter().any(super::custom::has_traced) => {
                self.call_custom(closure, gradient, &args, span)
            }
            _ => self.call_plain(closure, args, span),
        }
    }

    /// Calls a closure by evaluating its body, whatever gradient it has.
    pub(super) fn call_plain(&mut self, closure: &Closure, args: Args, span: Span) -> Eval<Value> {
        let base = self.stack.len();
        if closure.code.plain {
            self.stack.extend(args);
            return self.enter_plain(closure, base, span);
        }
        self.enter(closure, base, |interp| {
            let code = &closure.code;
            code.check_arity(args.len(), span, &interp.sources)?;
            interp.stack.resize(base + frame_size(code), Value::Nil);
            let mut args = args.into_iter();
            for (param, arg) in code.params.iter().zip(args.by_ref()) {
                check_argument(param, &arg, span)?;
                interp.bind_pattern(&param.pattern, arg, base)?;
            }
            match &code.rest {
                Some(rest) => interp.bind_pattern(rest, Value::list(args.collect()), base),
                None => Ok(()),
            }
        })
    }

    /// Evaluates a function with plain parameters whose arguments lie on the stack from `base`.
    fn enter_plain(&mut self, closure: &Closure, base: usize, span: Span) -> Eval<Value> {
        self.enter(closure, base, |interp| {
            let code = &closure.code;
            code.check_arity(interp.stack.len() - base, span, &interp.sources)?;
            interp.stack.resize(base + frame_size(code), Value::Nil);
            Ok(())
        })
    }

    /// Evaluates the body of a function in the frame that `bind` fills.
    #[inline]
    fn enter(
        &mut self,
        closure: &Closure,
        base: usize,
        bind: impl FnOnce(&mut Interp) -> Eval<()>,
    ) -> Eval<Value> {
        let code = &closure.code;
        self.depth += 1;
        let result = if self.depth > MAX_DEPTH || crate::stack::exhausted() {
            Err(too_deep(code, self.depth - 1))
        } else {
            match (self.step().and_then(|()| bind(self)), code.body.get()) {
                (Err(signal), _) => Err(signal),
                (Ok(()), Some(body)) => self
                    .eval(body, Frame { base, captured: &closure.captured })
                    .map_err(|signal| self.leaving_library(blame::leaving_closure(signal, code), code)),
                (Ok(()), None) => fail(format!("{} has no body yet", code.display_name())),
            }
        };
        self.depth -= 1;
        self.stack.truncate(base);
        result
    }

    /// A keyword looks itself up, a tensor is indexed.
    pub(super) fn call_value(&mut self, head: &Value, args: &[Value], span: Span) -> Eval<Value> {
        self.apply_value(head, args).map_err(|signal| blame::in_value_call(signal, span, head, args))
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
                fail(format!("(:{key} x) looks :{key} up in a dictionary, but x is {}", other.describe()))
            }
            (Value::Keyword(key), _) => fail(format!(
                "(:{key} x) takes a dictionary and maybe a default, got {} arguments",
                args.len()
            )),
            (Value::Tensor(_), [_, ..]) => self.index_tensor(head, args),
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
