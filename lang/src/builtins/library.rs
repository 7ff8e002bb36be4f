//! Helpers of functions written in Sheaf: defaults of arguments, argument checks, kernels.

use std::rc::Rc;

use super::Builtin;
use super::dict::dictionary;
use super::text::format_values;
use crate::eval::{Eval, Interp, fail};
use crate::program::{Key, Value};
use sheaf_graph::primitives::Kernel;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "-optional",
        "(-optional given defaults)",
        "the last arguments of a call over their defaults: by position, or by name as options",
        (2, 2),
        optional,
    ),
    Builtin::new(
        "-check",
        "(-check condition template values...)",
        "fails with a formatted message unless the condition holds",
        (2, super::VARIADIC),
        check,
    ),
    Builtin::new(
        "-by-kernel",
        "(-by-kernel name f tensors...)",
        "(f tensors...), for which compiled code has a kernel on processors",
        (3, super::VARIADIC),
        by_kernel,
    ),
];

fn optional(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let defaults = dictionary(&args[1])?;
    let names: Vec<&str> = defaults.keys().map(|k| k.name.as_str()).collect();
    let given = interp.sequence(&args[0])?;
    let parsed = super::parse(&given, &names, &[])?;
    if parsed.positional.len() > names.len() {
        return fail(format!(
            "too many arguments: after the required ones come at most {} ({}), got {}",
            names.len(),
            names.join(" "),
            parsed.positional.len()
        ));
    }
    let value = |(i, (name, default)): (usize, (Key, &Value))| {
        let value = parsed.positional.get(i).copied().or_else(|| parsed.option(&name)).unwrap_or(default);
        (name, value.clone())
    };
    Ok(Value::Dict(Rc::new(defaults.iter().enumerate().map(value).collect())))
}

fn check(_: &mut Interp, args: &[Value]) -> Eval<Value> {
    if args[0].truthy()? {
        return Ok(Value::Nil);
    }
    let Value::Str(template) = &args[1] else { return fail("-check wants a template") };
    fail(format_values(template, &args[2..])?)
}

fn by_kernel(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let Value::Str(wanted) = &args[0] else { return fail("-by-kernel wants the name of a kernel") };
    match Kernel::ALL.into_iter().find(|kernel| *kernel.name() == **wanted) {
        Some(kernel) => interp.custom_kernel(kernel, &args[1], &args[2..]),
        None => fail(format!("there is no kernel {wanted}")),
    }
}
