//! Effects: printing, and the world of files. They make a function interpreted.

use super::io::IO;
use super::text::format_values;
use super::{Builtin, MANY, show};
use crate::eval::{Eval, Interp, Value};
use crate::format::has_placeholder;

/// What `print` does, for both its names.
const HELP: &str = "writes its arguments on a line, one blank apart, and gives nil; a template first that is written as \
                    a string with a placeholder ({} {0} {:.4f}) is filled with the others, as by format";

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("print", "(print x ...) or (print \"{:.4f}\" x ...)", HELP, (0, MANY), print)
        .effect()
        .examples(
            "(print \"loss\" 0.5) ;=> nil\n(print \"{:.2f}\") ;=> nil\n(print \"{} {}\" 1) ;=> error: {}",
        ),
    Builtin::new("println", "(println x ...) or (println \"{:.4f}\" x ...)", HELP, (0, MANY), print)
        .effect()
        .examples("(println [1 2]) ;=> nil"),
    IO,
];

/// `print` of a template that stands in the call.
const FORMATTED: &Builtin =
    &Builtin::new("print", "(print \"{:.4f}\" x ...)", HELP, (2, MANY), print_formatted).effect();

/// What a call of `builtin` with this literal first and others after it runs in its place: a template that comes as a
/// value is printed as it is.
pub fn with_template(builtin: &Builtin, literal: &str) -> Option<&'static Builtin> {
    let prints = matches!(builtin.name, "print" | "println");
    (prints && has_placeholder(literal)).then_some(FORMATTED)
}

fn print(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parts = args.iter().map(|v| Ok(show(&v.known("a text")?))).collect::<Eval<Vec<String>>>()?;
    interp.host.print(&parts.join(" "))?;
    Ok(Value::Nil)
}

fn print_formatted(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let Value::Str(template) = &args[0] else { return print(interp, args) };
    let line = format_values(template, &args[1..])?;
    interp.host.print(&line)?;
    Ok(Value::Nil)
}
