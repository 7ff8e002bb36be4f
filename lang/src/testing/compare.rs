//! Comparison of expected and actual results.

use crate::builtins::repr;
use crate::eval::Eval;
use crate::program::Value;
use sheaf_graph::tensor::{DType, HostTensor, format_float};

/// Absolute tolerance of floats, besides the relative one: results near zero come from cancellation.
const ABSOLUTE: f64 = 1e-6;

/// The difference of `found` and `expected`, in words; `None` if equal. Numbers are compared by value, with a relative
/// tolerance if one of them is a float, NaN equal to NaN; a list of numbers may stand for a tensor. A number written
/// without a point expects a weak integer or a tensor, one with a point a float or a tensor.
pub(super) fn difference(expected: &Value, found: &Value, tolerance: f64) -> Eval<Option<String>> {
    compare(expected, found, tolerance, "")
}

fn compare(expected: &Value, found: &Value, tolerance: f64, path: &str) -> Eval<Option<String>> {
    let differs = || Ok(Some(at(path, &repr(expected), &repr(found))));
    match (expected, &plain(found)?) {
        (Value::List(a), Value::List(b)) => {
            if a.items.len() != b.items.len() {
                let (a, b) = (a.items.len(), b.items.len());
                return Ok(Some(at(path, &format!("a list of {a}"), &format!("a list of {b}"))));
            }
            for (i, (x, y)) in a.items.iter().zip(&b.items).enumerate() {
                if let Some(text) = compare(x, y, tolerance, &format!("{path}[{i}]"))? {
                    return Ok(Some(text));
                }
            }
            Ok(None)
        }
        (Value::Dict(a), Value::Dict(b)) => {
            if let Some(key) = a.keys().find(|k| !b.contains_key(k)) {
                return Ok(Some(format!("{}the key :{key} is missing", prefix(path))));
            }
            if let Some(key) = b.keys().find(|k| !a.contains_key(k)) {
                return Ok(Some(format!("{}there is a key :{key} more", prefix(path))));
            }
            for (key, x) in a.iter() {
                if let Some(text) = compare(x, &b[&key], tolerance, &format!("{path}:{key}"))? {
                    return Ok(Some(text));
                }
            }
            Ok(None)
        }
        (Value::Int(a), Value::Int(b)) if a == b => Ok(None),
        (Value::Float(a), Value::Float(b)) if close(*a, *b, tolerance) => Ok(None),
        (Value::Int(_) | Value::Float(_), Value::Int(_) | Value::Float(_)) => differs(),
        (a, b @ Value::Tensor(t)) => {
            let Some(wanted) = numbers(a)? else { return differs() };
            let host = t.elements("a comparison")?;
            if wanted.shape != host.shape() {
                let shape = wanted.shape.iter().map(ToString::to_string).collect::<Vec<_>>().join("x");
                return Ok(Some(at(path, &format!("a shape [{shape}]"), &repr(b))));
            }
            Ok(elements(&wanted.elements, host, tolerance)
                .map(|text| format!("{}{text}\nexpected {}\nfound    {}", prefix(path), repr(a), repr(b))))
        }
        (Value::Function(_), Value::Function(_)) => {
            if repr(expected) == repr(found) {
                Ok(None)
            } else {
                differs()
            }
        }
        (a, b) => {
            if crate::builtins::structurally_equal(a, b)? {
                Ok(None)
            } else {
                differs()
            }
        }
    }
}

/// A weak number on the device as a plain number.
fn plain(value: &Value) -> Eval<Value> {
    match value {
        Value::Tensor(t) if t.ty().weak => {
            t.elements("a comparison")?;
            Ok(Value::from(t.clone()))
        }
        other => Ok(other.clone()),
    }
}

/// Numbers in row-major order, and their shape.
struct Numbers {
    shape: Vec<usize>,
    elements: Vec<Number>,
}

#[derive(Clone, Copy)]
enum Number {
    Int(i64),
    Float(f64),
}

/// `None` unless the value consists of evenly nested numbers.
fn numbers(value: &Value) -> Eval<Option<Numbers>> {
    let one = |n| Some(Numbers { shape: Vec::new(), elements: vec![n] });
    Ok(match value {
        Value::Bool(b) => one(Number::Int(i64::from(*b))),
        Value::Int(n) => one(Number::Int(*n)),
        Value::Float(x) => one(Number::Float(*x)),
        Value::Tensor(t) => {
            let host = t.elements("a comparison")?;
            let integer = t.ty().dtype.is_integer();
            let number = |i| {
                if integer { Number::Int(host.element_i64(i)) } else { Number::Float(host.element_f64(i)) }
            };
            Some(Numbers { shape: host.shape().to_vec(), elements: (0..host.count()).map(number).collect() })
        }
        Value::List(list) => {
            let mut all = Numbers { shape: vec![list.items.len()], elements: Vec::new() };
            let mut inner: Option<Vec<usize>> = None;
            for item in &list.items {
                let Some(row) = numbers(item)? else { return Ok(None) };
                if *inner.get_or_insert_with(|| row.shape.clone()) != row.shape {
                    return Ok(None);
                }
                all.elements.extend(row.elements);
            }
            all.shape.extend(inner.unwrap_or_default());
            Some(all)
        }
        _ => None,
    })
}

/// The difference of elements in words.
fn elements(expected: &[Number], found: &HostTensor, tolerance: f64) -> Option<String> {
    let exact = found.dtype().is_integer();
    // Expected numbers are seldom exact in 16-bit floats.
    let tolerance = tolerance.max(match found.dtype() {
        DType::BF16 => 2_f64.powi(-8),
        DType::F16 => 2_f64.powi(-11),
        _ => 0.0,
    });
    let mut wrong = 0;
    let (mut worst, mut worst_at) = (0.0, None);
    for (i, wanted) in expected.iter().enumerate() {
        let (same, distance) = match wanted {
            Number::Int(n) if exact => (*n == found.element_i64(i), (*n - found.element_i64(i)).abs() as f64),
            Number::Int(n) => float(*n as f64, found.element_f64(i), tolerance),
            Number::Float(x) => float(*x, found.element_f64(i), tolerance),
        };
        if !same {
            wrong += 1;
            if worst_at.is_none() || distance > worst {
                (worst, worst_at) = (distance, Some(i));
            }
        }
    }
    let i = worst_at?;
    let place = place(i, found.shape());
    let greatest = format_float(worst as f32);
    Some(match expected.len() {
        1 => format!("the number differs by {greatest}"),
        n => format!("{wrong} of {n} elements differ, at {place} by {greatest}"),
    })
}

fn float(a: f64, b: f64, tolerance: f64) -> (bool, f64) {
    let distance = if a.is_nan() == b.is_nan() { (a - b).abs() } else { f64::INFINITY };
    (close(a, b, tolerance), distance)
}

fn close(a: f64, b: f64, tolerance: f64) -> bool {
    a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= tolerance * a.abs() + ABSOLUTE
}

/// `[1 0]` for a position in row-major order.
fn place(mut i: usize, shape: &[usize]) -> String {
    let mut indices = vec![0; shape.len()];
    for axis in (0..shape.len()).rev() {
        indices[axis] = i % shape[axis];
        i /= shape[axis];
    }
    format!("[{}]", indices.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
}

fn prefix(path: &str) -> String {
    if path.is_empty() { String::new() } else { format!("at {path}: ") }
}

fn at(path: &str, expected: &str, found: &str) -> String {
    format!("{}expected {expected}\nfound    {found}", prefix(path))
}
