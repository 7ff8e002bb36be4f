//! Transformations of functions.

use super::{Builtin, MANY, as_index, parse};
use crate::eval::{Eval, Function, GradOptions, Interp, Value, fail};
use crate::primitives as p;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "value-and-grad",
        "(value-and-grad f :wrt i :aux)",
        "a function that gives [value gradient] of f, by its first argument or those of :wrt",
        (1, MANY),
        |_, a| transform(a, true),
    ),
    Builtin::new(
        "grad",
        "(grad f :wrt i :aux)",
        "a function that gives the gradient of f",
        (1, MANY),
        |_, a| transform(a, false),
    ),
    Builtin::new(
        "stop-gradient",
        "(stop-gradient x)",
        "x, through which no gradient flows",
        (1, 1),
        stop_gradient,
    ),
];

fn transform(args: &[Value], value: bool) -> Eval<Value> {
    let parsed = parse(args, &["wrt"], &["aux"])?;
    let [f] = parsed.positional.as_slice() else { return fail("expected one function") };
    if !matches!(f, Value::Function(_)) {
        return fail(format!("expected a function to differentiate, got {}", f.describe()));
    }
    let position = |v: &Value| -> Eval<usize> {
        usize::try_from(as_index(v, ":wrt")?).or_else(|_| fail(":wrt counts arguments from 0"))
    };
    let (wrt, wrt_list) = match parsed.option("wrt") {
        None => (vec![0], false),
        Some(Value::List(list)) => (list.items.iter().map(position).collect::<Eval<_>>()?, true),
        Some(other) => (vec![position(other)?], false),
    };
    let options = GradOptions { wrt, wrt_list, aux: parsed.flag("aux"), value };
    Ok(Value::function(Function::Grad((*f).clone(), options)))
}

fn stop_gradient(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    crate::eval::map_trees(args, &mut |leaf| match &leaf[0] {
        Value::Tensor(t) => Ok(Value::from(interp.op(p::StopGradient, &[t])?)),
        other => Ok(other.clone()),
    })
}
