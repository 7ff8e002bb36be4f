//! Values as text in traces: types, extremes and sizes, never elements.

use crate::program::{Tensor, Value};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_graph::watch::Statistics;

/// Maximum keys of a dictionary that are shown.
const SHOWN_KEYS: usize = 8;

/// Maximum characters of a string that are shown.
const SHOWN_TEXT: usize = 40;

/// A value with statistics and sizes of tensors: `f32[4x2] [min:0.00e0 max:1.00e0] (32B)`.
pub fn describe(value: &Value) -> String {
    text(value, true, true)
}

/// A value with statistics of tensors: `f32[4x2] [min:0.00e0 max:1.00e0]`.
pub fn with_statistics(value: &Value) -> String {
    text(value, true, false)
}

/// A value by its type: `f32[4x2]`.
pub fn plain(value: &Value) -> String {
    text(value, false, false)
}

fn text(value: &Value, statistics: bool, size: bool) -> String {
    match value {
        Value::Tensor(t) if t.ty().weak => match t.concrete().and_then(|c| c.peek()) {
            Some(host) => number(&host, size),
            None => t.ty().to_string(),
        },
        Value::Tensor(t) => {
            let statistics = if statistics && t.ty().dtype != DType::Bool { statistics_of(t) } else { None };
            shown_type(t.ty(), statistics.as_ref(), size && t.concrete().is_some())
        }
        Value::Int(n) => n.to_string(),
        Value::Float(x) if size => format!("{x:.6}"),
        Value::Float(x) => sheaf_graph::tensor::format_float(*x as f32),
        Value::Bool(truth) => truth.to_string(),
        Value::Nil => "nil".into(),
        Value::Keyword(key) => format!(":{key}"),
        Value::Symbol(name) => format!("'{name}"),
        Value::Str(text) => format!("{:?}", shortened(text)),
        Value::Range(range) => format!("{}:{}", range.start, range.end),
        Value::List(list) => format!("list({})", list.items.len()),
        Value::Dict(dict) => {
            let keys: Vec<String> =
                dict.keys().take(SHOWN_KEYS).map(|key| format!("{:?}", &*key.name)).collect();
            let more = if dict.len() > SHOWN_KEYS { ", ..." } else { "" };
            format!("dict(keys:[{}{more}])", keys.join(", "))
        }
        Value::Handle(handle) => handle.text(),
        Value::Tokenizer(tokenizer) => format!("<tokenizer {}>", tokenizer.name),
        Value::Function(f) => format!("<fn:{}>", f.name()),
    }
}

/// A type with statistics, if they are known, and the size of its elements: `f32[4x2] [min:0.00e0 max:1.00e0] (32B)`.
pub fn shown_type(ty: &TensorType, statistics: Option<&Statistics>, size: bool) -> String {
    if let Some(found) = statistics.filter(|found| ty.weak && ty.shape.is_empty() && found.min == found.max) {
        return if ty.dtype.is_float() { format!("{:.6}", found.min) } else { format!("{}", found.min) };
    }
    let mut text = ty.to_string();
    if let Some(found) = statistics {
        // Elements that are all NaN have no extremes.
        let nan = if found.nan && found.min <= found.max { " NaN" } else { "" };
        text += &format!(" [{found}{nan}]");
    }
    if size {
        text += &format!(" ({})", bytes((ty.count() * ty.dtype.byte_width()) as u64));
    }
    text
}

/// Statistics of a tensor with elements.
fn statistics_of(tensor: &Tensor) -> Option<Statistics> {
    tensor.concrete()?.peek().map(|host| Statistics::of(&host))
}

fn number(host: &HostTensor, long: bool) -> String {
    if !host.dtype().is_float() {
        return host.element_i64(0).to_string();
    }
    let x = host.element_f64(0);
    if long { format!("{x:.6}") } else { sheaf_graph::tensor::format_float(x as f32) }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN_TEXT) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}

/// A number of bytes: `32B`, `1.5KB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["KB", "MB", "GB", "TB"];
    if count < 1024 {
        return format!("{count}B");
    }
    let mut scaled = count as f64 / 1024.0;
    let mut unit = 0;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{scaled:.1}{}", UNITS[unit])
}

/// A time in nanoseconds: `0.8μs`, `1.59ms`, `3.63s`.
pub fn duration(nanoseconds: u64) -> String {
    let seconds = nanoseconds as f64 / 1e9;
    if seconds >= 1.0 {
        format!("{seconds:.2}s")
    } else if seconds >= 1e-3 {
        format!("{:.2}ms", seconds * 1e3)
    } else {
        format!("{:.1}μs", seconds * 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Dict, Key};
    use std::rc::Rc;

    #[test]
    fn values_are_shown_as_on_the_front_page() {
        let tensor = |elements: &[f32]| {
            Value::Tensor(Tensor::host(HostTensor::new([elements.len()].as_slice(), elements.to_vec())))
        };
        assert_eq!(describe(&tensor(&[0.0, -1.37, 2.333])), "f32[3] [min:-1.37e0 max:2.33e0] (12B)");
        assert_eq!(describe(&tensor(&[f32::NAN; 4])), "f32[4] [min:inf max:-inf] (16B)");
        assert_eq!(describe(&tensor(&[f32::NAN, 0.5])), "f32[2] [min:5.00e-1 max:5.00e-1 NaN] (8B)");
        assert_eq!(plain(&tensor(&[1.0])), "f32[1]");
        assert_eq!(describe(&Value::Float(0.7)), "0.700000");
        assert_eq!(plain(&Value::Float(1000.0)), "1000.0");
        let mut dict = Dict::default();
        dict.insert(Key::from(ustr::Ustr::from("l1")), Value::Nil);
        dict.insert(Key::from(ustr::Ustr::from("l2")), Value::Nil);
        assert_eq!(describe(&Value::Dict(Rc::new(dict))), r#"dict(keys:["l1", "l2"])"#);
        assert_eq!(describe(&Value::text("a \"b\"")), r#""a \"b\"""#);
        let bools = HostTensor::new([2].as_slice(), vec![true, false]);
        assert_eq!(describe(&Value::Tensor(Tensor::host(bools))), "bool[2] (2B)");
    }

    #[test]
    fn sizes_and_times_have_units() {
        assert_eq!([bytes(0), bytes(1023), bytes(1536), bytes(3 << 30)], ["0B", "1023B", "1.5KB", "3.0GB"]);
        assert_eq!(
            [duration(0), duration(800), duration(1_590_000), duration(900_570_000), duration(3_630_000_000)],
            ["0.0μs", "0.8μs", "1.59ms", "900.57ms", "3.63s"]
        );
    }
}
