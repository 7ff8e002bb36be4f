//! Values as text.

use crate::eval::Value;
use crate::tensor::{format_float, format_tensor};

/// A value as `print` shows it: strings bare.
pub fn show(value: &Value) -> String {
    match value {
        Value::Nil => "nil".into(),
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => format_float(*x as f32),
        Value::Tensor(t) => match t.concrete().map(|c| c.host()) {
            Some(Ok(host)) if t.ty().rank() == 0 && t.ty().dtype.is_float() => {
                format_float(host.element_f64(0) as f32)
            }
            Some(Ok(host)) => format_tensor(host),
            _ => format!("<{}>", t.ty()),
        },
        Value::List(list) => format!("[{}]", list.items.iter().map(show).collect::<Vec<_>>().join(" ")),
        Value::Dict(dict) => {
            let entries: Vec<String> = dict.iter().map(|(k, v)| format!(":{k} {}", show(v))).collect();
            format!("{{{}}}", entries.join(" "))
        }
        Value::Keyword(k) => format!(":{k}"),
        Value::Symbol(s) => s.to_string(),
        Value::Str(s) => s.to_string(),
        Value::Range(a, b) => format!("{a}:{b}"),
        Value::Function(f) => format!("<fn:{}>", f.name()),
    }
}

/// A value as the REPL shows it: strings quoted, tensors with their type.
pub fn repr(value: &Value) -> String {
    match value {
        Value::Str(s) => format!("{s:?}"),
        Value::List(_) => format!("'{}", show(value)),
        Value::Tensor(t) => format!("tensor {} = {}", t.ty(), show(value)),
        other => show(other),
    }
}

/// The type of a value, as `:type` of the REPL shows it: `tensor f32[4x2]`, `list of 3`.
pub fn type_text(value: &Value) -> String {
    match value {
        Value::Nil => "nil".into(),
        Value::Bool(_) => "boolean".into(),
        Value::Int(_) => "number, a weak integer".into(),
        Value::Float(_) => "number, a weak float".into(),
        Value::Tensor(t) if t.ty().weak => format!("number, a weak {}", t.ty()),
        Value::Tensor(t) => format!("tensor {}", t.ty()),
        Value::List(list) => format!("list of {}", list.items.len()),
        Value::Dict(dict) => {
            let keys: String = dict.keys().map(|key| format!(" :{key}")).collect();
            format!("dictionary of {}{}{keys}", dict.len(), if dict.is_empty() { "" } else { ":" })
        }
        Value::Keyword(_) => "keyword".into(),
        Value::Symbol(_) => "symbol".into(),
        Value::Str(text) => format!("string of {}", text.chars().count()),
        Value::Range(..) => "range".into(),
        Value::Function(_) => "function".into(),
    }
}
