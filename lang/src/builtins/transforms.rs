//! Transformations of functions.

use super::operands::as_integers;
use super::{Builtin, MANY, parse};
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
    let (wrt, wrt_list) = match parsed.option("wrt") {
        None => (vec![0], false),
        Some(option) => {
            let position = |i| usize::try_from(i).or_else(|_| fail(":wrt counts arguments from 0"));
            let wrt = as_integers(option, ":wrt")?.into_iter().map(position).collect::<Eval<Vec<usize>>>()?;
            let list = match option {
                Value::Tensor(t) => t.ty().rank() > 0,
                other => matches!(other, Value::List(_)),
            };
            (wrt, list)
        }
    };
    if let Some(twice) = wrt.iter().enumerate().find(|(i, n)| wrt[..*i].contains(n)) {
        return fail(format!(":wrt names argument {} twice", twice.1));
    }
    let options = GradOptions { wrt, wrt_list, aux: parsed.flag("aux"), value };
    Ok(Value::function(Function::Grad((*f).clone(), options)))
}

fn stop_gradient(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    crate::eval::map_trees(args, &mut |leaf| match &leaf[0] {
        Value::Tensor(t) => Ok(Value::from(interp.op(p::StopGradient, &[t])?)),
        other => Ok(other.clone()),
    })
}
