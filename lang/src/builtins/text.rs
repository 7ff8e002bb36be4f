//! Strings.

use super::{Builtin, MANY, show};
use crate::eval::{Eval, Interp, Value, fail};
use crate::format::{self, FormatArg};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("str", "(str a b ...)", "the arguments as one text", (0, MANY), |i, a| {
        let mut text = String::new();
        for v in a {
            text.push_str(&show(&known(i, v)?));
        }
        Ok(Value::text(text))
    }),
    Builtin::new(
        "format",
        "(format template args ...)",
        "a template filled as Python's str.format",
        (1, MANY),
        |i, a| {
            let Value::Str(template) = &a[0] else {
                return fail(format!("format wants a text first, got {}", a[0].describe()));
            };
            format_values(i, template, &a[1..]).map(Value::text)
        },
    ),
    Builtin::new("gensym", "(gensym prefix?)", "a symbol that no program has", (0, 1), |i, a| {
        let prefix = a.first().and_then(Value::as_key).map_or("g", |k| k.as_str());
        Ok(Value::Symbol(ustr::Ustr::from(&format!("{prefix}__{}", i.fresh()))))
    }),
    Builtin::new("tensor?", "(tensor? x)", "whether x is a tensor", (1, 1), |_, a| {
        is(&a[0], |v| matches!(v, Value::Tensor(_)))
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

/// The value with traced tensors made concrete, for text.
pub(super) fn known(interp: &mut Interp, value: &Value) -> Eval<Value> {
    match value {
        Value::Tensor(t) => {
            let host = t.elements("a text")?.clone();
            let weak = t.ty().weak;
            Ok(Value::from(if weak {
                crate::eval::Tensor::weak(host)
            } else {
                crate::eval::Tensor::host(host)
            }))
        }
        Value::List(list) => {
            Ok(Value::list(list.items.iter().map(|v| known(interp, v)).collect::<Eval<_>>()?))
        }
        Value::Dict(dict) => {
            let entries = dict.iter().map(|(k, v)| Ok((*k, known(interp, v)?))).collect::<Eval<_>>()?;
            Ok(Value::Dict(std::rc::Rc::new(entries)))
        }
        other => Ok(other.clone()),
    }
}

/// A template filled with values: numbers keep their kind, all else goes in as `print` shows it.
pub(super) fn format_values(interp: &mut Interp, template: &str, args: &[Value]) -> Eval<String> {
    let values = args.iter().map(|v| known(interp, v)).collect::<Eval<Vec<_>>>()?;
    let texts: Vec<String> = values.iter().map(show).collect();
    let arg = |(value, text): (&Value, &'_ String)| -> Result<i64, Result<f64, String>> {
        match value {
            Value::Int(n) => Ok(*n),
            Value::Float(x) => Err(Ok(*x)),
            Value::Tensor(t) if t.ty().rank() == 0 => match t.elements("a text") {
                Ok(host) if host.dtype().is_float() => Err(Ok(host.element_f64(0))),
                Ok(host) if host.dtype().is_integer() => Ok(host.element_i64(0)),
                _ => Err(Err(text.clone())),
            },
            _ => Err(Err(text.clone())),
        }
    };
    let owned: Vec<_> = values.iter().zip(&texts).map(arg).collect();
    let args: Vec<FormatArg> = owned
        .iter()
        .map(|a| match a {
            Ok(n) => FormatArg::Int(*n),
            Err(Ok(x)) => FormatArg::Float(*x),
            Err(Err(text)) => FormatArg::Text(text),
        })
        .collect();
    let result = format::parse(template).and_then(|t| t.render(&args));
    result.or_else(|e| fail(e.to_string()))
}
