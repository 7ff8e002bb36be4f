//! Strings.

use super::{Builtin, MANY, show};
use crate::eval::{Eval, Value, fail};
use crate::format::{self, FormatArg};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("str", "(str a b ...)", "the arguments as one text", (0, MANY), |_, a| {
        let mut text = String::new();
        for v in a {
            text.push_str(&show(&v.known("a text")?));
        }
        Ok(Value::text(text))
    }),
    Builtin::new(
        "format",
        "(format template args ...)",
        "a template filled as Python's str.format",
        (1, MANY),
        |_, a| {
            let Value::Str(template) = &a[0] else {
                return fail(format!("format wants a text first, got {}", a[0].describe()));
            };
            format_values(template, &a[1..]).map(Value::text)
        },
    ),
    Builtin::new("gensym", "(gensym prefix?)", "a symbol that no program has", (0, 1), |i, a| {
        let prefix = a.first().and_then(Value::as_key).map_or("g", |k| k.as_str());
        Ok(Value::Symbol(ustr::Ustr::from(&format!("{prefix}__{}", i.fresh()))))
    }),
    Builtin::new("tensor?", "(tensor? x)", "whether x is a tensor", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Tensor(t) if !t.ty().weak))
    }),
    Builtin::new("number?", "(number? x)", "whether x is a number", (1, 1), |_, a| {
        is(&a[0], |v| match v {
            Value::Tensor(t) => t.ty().rank() == 0 && t.ty().weak,
            v => matches!(v, Value::Int(_) | Value::Float(_)),
        })
    }),
    Builtin::new("string?", "(string? x)", "whether x is a text", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Str(_)))
    }),
    Builtin::new("symbol?", "(symbol? x)", "whether x is a symbol", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Symbol(_)))
    }),
    Builtin::new("dict?", "(dict? x)", "whether x is a dictionary", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Dict(_)))
    }),
    Builtin::new("list?", "(list? x)", "whether x is a list", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::List(_)))
    }),
    Builtin::new("fn?", "(fn? x)", "whether x is a function", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Function(_)))
    }),
];

#[allow(clippy::unnecessary_wraps)]
fn is(value: &Value, test: fn(&Value) -> bool) -> Eval<Value> {
    Ok(Value::Bool(test(value)))
}

/// A template filled with values: numbers keep their kind, all else goes in as `print` shows it.
pub(super) fn format_values(template: &str, args: &[Value]) -> Eval<String> {
    let values = args.iter().map(|v| v.known("a text")).collect::<Eval<Vec<_>>>()?;
    let texts: Vec<String> = values.iter().map(show).collect();
    let args =
        values.iter().zip(&texts).map(|(v, text)| argument(v, text)).collect::<Eval<Vec<FormatArg>>>()?;
    let result = format::parse(template).and_then(|t| t.render(&args));
    result.or_else(|e| fail(e.to_string()))
}

/// A number as itself, anything else as its text.
fn argument<'a>(value: &Value, text: &'a str) -> Eval<FormatArg<'a>> {
    Ok(match value {
        Value::Int(n) => FormatArg::Int(*n),
        Value::Float(x) => FormatArg::Single(*x as f32),
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_float() => {
            FormatArg::Single(t.elements("a text")?.element_f64(0) as f32)
        }
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_integer() => {
            FormatArg::Int(t.elements("a text")?.element_i64(0))
        }
        _ => FormatArg::Text(text),
    })
}
