//! Effects: printing and file access. They make a function interpreted.

use super::io::IO;
use super::text::format_values;
use super::{Builtin, VARIADIC, show};
use crate::eval::{Eval, Interp};
use crate::format::has_placeholder;
use crate::program::{Tensor, Value};
use sheaf_graph::tensor::HostTensor;

/// Documentation of `print` and its alias.
const HELP: &str = "writes its arguments on a line, one blank apart, and gives nil; a template first that is written as \
                    a string with a placeholder ({} {0} {:.4f}) is filled with the others, as by format\n\
                    :end and :sep with strings, last in the call, are what follows the line and what stands between the arguments";

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("print", "(print x ... :end s :sep s) or (print \"{:.4f}\" x ...)", HELP, (0, VARIADIC), print::<0, false>)
        .effect()
        .examples(
            "(print \"loss\" 0.5) ;=> nil\n(print \"{:.2f}\") ;=> nil\n(print 1 2 :sep \", \" :end \"\") ;=> nil\n\
             (print \"{} {}\" 1) ;=> error: {}",
        ),
    Builtin::new("println", "(println x ... :end s :sep s) or (println \"{:.4f}\" x ...)", HELP, (0, VARIADIC), print::<0, false>)
        .effect()
        .examples("(println [1 2]) ;=> nil"),
    Builtin::new("time", "(time)", "the seconds since the start of 1970 as f64", (0, 0), |i, _| {
        let seconds = i.host.milliseconds()? as f64 / 1000.0;
        Ok(Value::Tensor(Tensor::host(HostTensor::scalar(seconds))))
    })
    .effect()
    .examples("(dtype (time)) ;=> :f64\n(> (time) 1.7e9) ;=> true"),
    IO,
];

/// `print` by number of trailing options, and by whether the call has a literal template.
static PRINTERS: [[Builtin; 2]; 3] = [
    [printer(print::<0, false>), printer(print::<0, true>)],
    [printer(print::<1, false>), printer(print::<1, true>)],
    [printer(print::<2, false>), printer(print::<2, true>)],
];

const fn printer(run: fn(&mut Interp, &[Value]) -> Eval<Value>) -> Builtin {
    Builtin::new("print", "(print x ... :end s :sep s)", HELP, (1, VARIADIC), run).effect()
}

/// The builtin that replaces `builtin` in a call whose literal arguments show a template or options; `args` are the
/// literals. A template or option passed as a value is printed as it is.
pub fn printer_for(builtin: &Builtin, args: &[Option<&Value>]) -> Option<&'static Builtin> {
    if !matches!(builtin.name, "print" | "println") {
        return None;
    }
    let option = |arg: Option<&Value>| matches!(arg, Some(Value::Keyword(k)) if *k == "end" || *k == "sep");
    let mut plain = args;
    let mut options = 0;
    while let [_, .., keyword, _] = plain
        && options < 2
        && option(*keyword)
    {
        plain = &plain[..plain.len() - 2];
        options += 1;
    }
    let template = matches!(plain, [Some(Value::Str(text)), _, ..] if has_placeholder(text));
    (options > 0 || template).then(|| &PRINTERS[options][usize::from(template)])
}

/// Output of `print`: values formatted by a template with placeholders, or separated by blanks.
pub fn printed(values: &[Value]) -> Eval<String> {
    match values {
        [Value::Str(template), others @ ..] if !others.is_empty() && has_placeholder(template) => {
            format_values(template, others)
        }
        _ => Ok(values.iter().map(show).collect::<Vec<_>>().join(" ")),
    }
}

fn print<const OPTIONS: usize, const TEMPLATE: bool>(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (plain, options) = args.split_at(args.len().saturating_sub(2 * OPTIONS));
    let (mut end, mut between, mut plain) = ("\n", " ", plain);
    for option in options.chunks(2) {
        match option {
            [Value::Keyword(key), Value::Str(text)] if *key == "end" => end = text,
            [Value::Keyword(_), Value::Str(text)] => between = text,
            // An option without a string: both are printed like other values.
            _ => (end, between, plain) = ("\n", " ", args),
        }
    }
    let mut line = match plain {
        [Value::Str(template), values @ ..] if TEMPLATE => format_values(template, values)?,
        values => {
            let parts =
                values.iter().map(|v| Ok(show(&v.known("a text")?))).collect::<Eval<Vec<String>>>()?;
            parts.join(between)
        }
    };
    line.push_str(end);
    interp.host.print(&line)?;
    Ok(Value::Nil)
}
