//! Values as text.

use crate::program::{Key, Value};
use sheaf_graph::tensor::{DType, TensorType, format_float, format_number, format_tensor};

/// An explicit work list of pending output: nested values need no recursion.
enum Piece<'a> {
    Value(&'a Value),
    Key(Key),
    Text(&'static str),
}

/// A value as `print` shows it: strings bare.
pub fn show(value: &Value) -> String {
    let mut out = String::new();
    let mut pieces = vec![Piece::Value(value)];
    while let Some(piece) = pieces.pop() {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Key(key) => out.push_str(&format!("{} ", key.form())),
            Piece::Value(Value::List(list)) => {
                out.push('[');
                pieces.push(Piece::Text("]"));
                for (i, item) in list.items.iter().enumerate().rev() {
                    pieces.push(Piece::Value(item));
                    pieces.push(Piece::Text(if i > 0 { " " } else { "" }));
                }
            }
            Piece::Value(Value::Dict(dict)) => {
                out.push('{');
                pieces.push(Piece::Text("}"));
                for (i, (key, entry)) in dict.iter().rev().enumerate() {
                    pieces.push(Piece::Value(entry));
                    pieces.push(Piece::Key(key));
                    pieces.push(Piece::Text(if i + 1 < dict.len() { " " } else { "" }));
                }
            }
            Piece::Value(Value::Str(text)) => out.push_str(text),
            Piece::Value(leaf) => out.push_str(&show_leaf(leaf)),
        }
    }
    out
}

/// A value that is neither a list nor a dictionary.
fn show_leaf(value: &Value) -> String {
    match value {
        Value::Bool(b) => b.to_string(),
        Value::Int(n) => n.to_string(),
        Value::Float(x) => format_float(*x as f32),
        Value::Tensor(t) => match t.concrete().map(|c| c.host()) {
            Some(Ok(host)) if t.ty().rank() == 0 && t.ty().dtype.is_float() => {
                format_number(host.element_f64(0), shown_dtype(t.ty()))
            }
            Some(Ok(host)) => format_tensor(host),
            _ => format!("<{}>", t.ty()),
        },
        Value::Keyword(k) => format!(":{k}"),
        Value::Symbol(s) => s.to_string(),
        Value::Range(r) if r.end == i64::MAX => format!("{}:", r.start),
        Value::Range(r) => format!("{}:{}", r.start, r.end),
        Value::Function(f) => format!("<fn:{}>", f.name()),
        Value::Handle(handle) => handle.text(),
        Value::Tokenizer(tokenizer) => tokenizer.text(),
        Value::Nil => "nil".into(),
        Value::Str(_) | Value::List(_) | Value::Dict(_) => unreachable!("written by show"),
    }
}

/// The dtype whose digits a float shows: weak numbers are `f32`.
pub(super) fn shown_dtype(ty: &TensorType) -> DType {
    if ty.weak { DType::F32 } else { ty.dtype }
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
            let keys: String = dict.keys().map(|key| format!(" {}", key.form())).collect();
            format!("dictionary of {}{}{keys}", dict.len(), if dict.is_empty() { "" } else { ":" })
        }
        Value::Keyword(_) => "keyword".into(),
        Value::Symbol(_) => "symbol".into(),
        Value::Str(text) => format!("string of {}", text.chars().count()),
        Value::Range(..) => "range".into(),
        Value::Function(_) => "function".into(),
        Value::Handle(handle) => match handle.rows() {
            Some((_, ty)) => format!("handle {ty}"),
            None => format!("handle of {}", handle.count()),
        },
        Value::Tokenizer(_) => "tokenizer".into(),
    }
}
