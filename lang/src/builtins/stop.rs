//! `error` and `assert`: errors raised by the program.

use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp};
use crate::program::Value;
use sheaf_syntax::diagnostic::Kind;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "error",
        "(error message x ...)",
        "stops the program with the message, written as print writes it: a template with placeholders is filled with the others\n\
         a branch of if, case or cond that ends so agrees with any other, compiled too; tensors of more than 16 elements\n\
         are shown by their type",
        (1, VARIADIC),
        error,
    )
    .examples(
        "(error \"no rate for {}\" :adam) ;=> error: no rate for :adam\n(error \"not yet\" 3) ;=> error: not yet 3\n\
         (if (> 2 1) :fine (error \"never\")) ;=> :fine",
    ),
    Builtin::new(
        "assert",
        "(assert condition message x ...)",
        "stops the program with the message, as error does, unless the condition holds; gives nil\n\
         a condition on data is looked at when a result of the compiled function is read, or when the function is interpreted",
        (1, VARIADIC),
        assert,
    )
    .examples(
        "(assert (> 2 1) \"two is more\") ;=> nil\n(assert (< 0.5 0) \"a rate of {:.2f}\" 0.5) ;=> error: a rate of 0.50\n\
         (assert (= 1 2)) ;=> error: the assertion does not hold\n(assert [true false] \"both\") ;=> error: a condition is one truth value",
    ),
];

fn error(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    Err(interp.raise(Kind::Raised, args)?)
}

fn assert(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let default = [Value::text("the assertion does not hold")];
    let message = if args.len() > 1 { &args[1..] } else { &default };
    if let Value::Tensor(condition) = &args[0]
        && condition.is_unknown_truth()
    {
        interp.assert_later(Kind::Raised, condition, message)?;
    } else if !args[0].truthy()? {
        return Err(interp.raise(Kind::Raised, message)?);
    }
    Ok(Value::Nil)
}
