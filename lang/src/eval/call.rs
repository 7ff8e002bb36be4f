//! Calling functions.

use std::rc::Rc;

use smallvec::SmallVec;

use super::blame;
use super::interp::{Frame, Interp, MAX_DEPTH, STACK_BYTES};
use super::signal::{Eval, fail};
use super::typed::check_argument;
use super::value::{Closure, Function, Value};
use crate::builtins;
use crate::diagnostic::Diagnostic;
use crate::syntax::Span;

/// Arguments of a call.
pub type Args = SmallVec<[Value; 4]>;

impl Interp {
    /// Calls a function: as a compiled program where that is possible and pays, else by evaluating it.
    pub(crate) fn call_function(&mut self, function: &Rc<Function>, args: Args, span: Span) -> Eval<Value> {
        match &**function {
            Function::Builtin(builtin) => {
                builtin.call(self, &args).map_err(|signal| blame::in_builtin(signal, span, &args))
            }
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
            Function::Builtin(builtin) => {
                builtin.call(self, &args).map_err(|signal| blame::in_builtin(signal, span, &args))
            }
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
        let code = &closure.code;
        self.step()?;
        let base_marker = 0_u8;
        let stack_used = std::ptr::from_ref(&base_marker).addr().abs_diff(self.stack_start);
        if self.depth >= MAX_DEPTH || stack_used > STACK_BYTES / 4 * 3 {
            return Err(Diagnostic::error(format!("calls are nested more than {} deep", self.depth))
                .at(code.head, "in this function")
                .help("is there a recursion without end? repeat, while and reduce do not nest")
                .into());
        }
        let base = self.stack.len();
        let size = code.frame_size.get().copied().unwrap_or(0);
        self.stack.resize(base + size, Value::Nil);
        self.depth += 1;
        let result = self.enter(closure, args, base, span);
        self.depth -= 1;
        self.stack.truncate(base);
        result
    }

    fn enter(&mut self, closure: &Closure, args: Args, base: usize, span: Span) -> Eval<Value> {
        let code = &closure.code;
        code.check_arity(args.len(), span, &self.sources)?;
        let mut args = args.into_iter();
        for (param, arg) in code.params.iter().zip(args.by_ref()) {
            check_argument(param, &arg, span)?;
            self.bind_pattern(&param.pattern, arg, base)?;
        }
        if let Some(rest) = &code.rest {
            self.bind_pattern(rest, Value::list(args.collect()), base)?;
        }
        let Some(body) = code.body.get() else {
            return fail(format!("{} has no body yet", code.display_name()));
        };
        let result = self.eval(body, Frame { base, captured: &closure.captured });
        result.map_err(|signal| self.leaving_library(blame::leaving_closure(signal, code), code))
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
        (Value::Dict(_), [key]) if key.as_key().is_some() => {
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
