//! JSON encoding and decoding of values. Objects keep the order of their keys in both directions.

use std::fmt;
use std::rc::Rc;

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Error, Serialize, SerializeMap, SerializeSeq, Serializer};

use crate::eval::{Eval, Signal};
use crate::program::{Dict, Key, Tensor, Value};
use sheaf_graph::tensor::{DType, Data, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

/// Decodes the JSON of a file: evenly nested arrays of numbers or booleans are tensors, other arrays lists, objects
/// dictionaries, null is nil.
pub(super) fn read(path: &str, text: &str) -> Eval<Value> {
    serde_json::from_str(text).map(|Read(value)| value).map_err(|e| broken(path, text, 1, &e))
}

/// Decodes a line of a file, which is its `number`-th.
pub(crate) fn read_line(path: &str, number: usize, line: Vec<u8>) -> Eval<Value> {
    let text = String::from_utf8(line)
        .map_err(|e| super::not_text(&format!("line {number} of {path}"), e.utf8_error().valid_up_to()))?;
    serde_json::from_str(&text).map(|Read(value)| value).map_err(|e| broken(path, &text, number, &e))
}

/// The error of text that is not JSON, whose first line is line `first` of a file.
fn broken(path: &str, text: &str, first: usize, error: &serde_json::Error) -> Signal {
    let place = format!("{path}:{}:{}", first + error.line().saturating_sub(1), error.column());
    let what = error.to_string();
    let what = what.split(" at line ").next().unwrap_or_default();
    let (what, help) = match number_of_other_languages(text, error) {
        Some(word) => (
            format!("{word} is a number of other languages"),
            "JSON has no NaN and no infinity: write null for what is missing, or save such numbers as .npy or .safetensors",
        ),
        None if error.is_eof() => (what.to_owned(), "the file is truncated: it ends before its value does"),
        None if what.starts_with("recursion limit") => {
            (what.to_owned(), "arrays and objects nest at most 128 deep")
        }
        None if what.starts_with("number out of range") => (
            what.to_owned(),
            "JSON has no infinity: write null for it, or save such numbers as .npy or .safetensors",
        ),
        None => {
            (what.to_owned(), "mend the file there; text of another kind is read with (io \"read\" path)")
        }
    };
    Diagnostic::error(format!("{place}: this is not JSON: {what}")).help(help).into()
}

/// The word at the place of an error, if it is a NaN or an infinity, as Python's own `json` writes them.
fn number_of_other_languages<'a>(text: &'a str, error: &serde_json::Error) -> Option<&'a str> {
    let line = text.lines().nth(error.line().checked_sub(1)?)?;
    // Columns are bytes, counted from 1; the error of -Infinity is behind its sign.
    let at = error.column().checked_sub(1).filter(|at| line.is_char_boundary(*at))?;
    let (before, after) = line.split_at(at);
    let start = if before.ends_with('-') { at - 1 } else { at };
    let end = after.find(|c: char| !c.is_alphabetic()).unwrap_or(after.len());
    let word = &line[start..at + end];
    matches!(word.trim_start_matches('-').to_ascii_lowercase().as_str(), "nan" | "inf" | "infinity")
        .then_some(word)
}

/// The entry `weight_map` of an index of shards: names of tensors and the files that have them, sorted.
pub(super) fn weight_map(path: &str, text: &str, help: &str) -> Eval<Vec<(String, String)>> {
    #[derive(serde::Deserialize)]
    struct Index {
        weight_map: std::collections::BTreeMap<String, String>,
    }
    let index: Index = serde_json::from_str(text).map_err(|e| super::broken(path, e, help))?;
    Ok(index.weight_map.into_iter().collect())
}

/// Encodes a value as one line of JSON: tensors as nested arrays, keywords and symbols by name.
pub(super) fn write(value: &Value) -> Eval<String> {
    match serde_json::to_string(&Write(value)) {
        Ok(text) => Ok(text + "\n"),
        Err(e) => Err(Diagnostic::error(format!("this value cannot be written as JSON: {e}")).into()),
    }
}

struct Read(Value);

impl<'de> Deserialize<'de> for Read {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Read, D::Error> {
        deserializer.deserialize_any(AnyValue).map(Read)
    }
}

struct AnyValue;

impl<'de> Visitor<'de> for AnyValue {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Nil)
    }

    fn visit_bool<E>(self, b: bool) -> Result<Value, E> {
        Ok(Value::Bool(b))
    }

    fn visit_i64<E>(self, n: i64) -> Result<Value, E> {
        Ok(Value::Int(n))
    }

    fn visit_u64<E>(self, n: u64) -> Result<Value, E> {
        Ok(i64::try_from(n).map_or(Value::Float(n as f64), Value::Int))
    }

    fn visit_f64<E>(self, x: f64) -> Result<Value, E> {
        Ok(Value::Float(x))
    }

    fn visit_str<E>(self, text: &str) -> Result<Value, E> {
        Ok(Value::text(text))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Read(item)) = array.next_element()? {
            items.push(item);
        }
        Ok(joined(&items).map_or_else(|| Value::list(items), |t| Value::Tensor(Tensor::host(t))))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        let mut dict = Dict::default();
        while let Some((key, Read(value))) = object.next_entry::<String, Read>()? {
            dict.insert(Key::quoted(&key), value);
        }
        Ok(Value::Dict(Rc::new(dict)))
    }
}

/// Maximum integer below which all integers are exact in `f32`.
const EXACT: u64 = 1 << 24;

/// An array as a tensor: `i32` for integers, `f32` with fractions, `bool`. `None` for ragged or mixed items, or numbers
/// out of range.
fn joined(items: &[Value]) -> Option<HostTensor> {
    let first = items.first()?;
    if let Value::Tensor(Tensor::Concrete(row)) = first {
        let shape = row.ty().shape.clone();
        let rows = items.iter().map(|item| match item {
            Value::Tensor(Tensor::Concrete(t)) if t.ty().shape == shape => t.host().ok(),
            _ => None,
        });
        return stacked(&rows.collect::<Option<Vec<&HostTensor>>>()?);
    }
    let count = [items.len()];
    if let Some(truths) = items.iter().map(|v| if let Value::Bool(b) = v { Some(*b) } else { None }).collect()
    {
        let truths: Vec<bool> = truths;
        return Some(HostTensor::new(count.as_slice(), truths));
    }
    let whole = |v: &Value| if let Value::Int(n) = v { i32::try_from(*n).ok() } else { None };
    if let Some(numbers) = items.iter().map(whole).collect::<Option<Vec<i32>>>() {
        return Some(HostTensor::new(count.as_slice(), numbers));
    }
    let float = |v: &Value| match v {
        Value::Int(n) if n.unsigned_abs() <= EXACT => Some(*n as f32),
        Value::Float(x) => Some(*x as f32).filter(|x| x.is_finite()),
        _ => None,
    };
    let numbers = items.iter().map(float).collect::<Option<Vec<f32>>>()?;
    Some(HostTensor::new(count.as_slice(), numbers))
}

/// Rows of one shape as a tensor; integers mixed with fractions become `f32`.
fn stacked(rows: &[&HostTensor]) -> Option<HostTensor> {
    let (first, rest) = rows.split_first()?;
    let shape: Shape = std::iter::once(rows.len()).chain(first.shape().iter().copied()).collect();
    let truth = |t: &HostTensor| t.dtype() == DType::Bool;
    if rest.iter().any(|row| truth(row) != truth(first)) {
        return None;
    }
    let elements = || rows.iter().flat_map(|row| (0..row.count()).map(move |i| row.element_f64(i)));
    Some(if truth(first) {
        HostTensor::new(shape, elements().map(|x| x != 0.0).collect::<Vec<bool>>())
    } else if rows.iter().all(|row| row.dtype() == DType::I32) {
        HostTensor::new(shape, elements().map(|x| x as i32).collect::<Vec<i32>>())
    } else if rows.iter().any(|row| row.dtype() == DType::I32) && elements().any(|x| x.abs() > EXACT as f64) {
        return None;
    } else {
        HostTensor::new(shape, elements().map(|x| x as f32).collect::<Vec<f32>>())
    })
}

struct Write<'v>(&'v Value);

impl Serialize for Write<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Nil => to.serialize_unit(),
            Value::Bool(b) => to.serialize_bool(*b),
            Value::Int(n) => to.serialize_i64(*n),
            Value::Float(x) => write_float(*x, to),
            Value::Str(s) => to.serialize_str(s),
            Value::Keyword(name) | Value::Symbol(name) => to.serialize_str(name),
            Value::List(list) => to.collect_seq(list.items.iter().map(Write)),
            Value::Dict(dict) => {
                let mut object = to.serialize_map(Some(dict.len()))?;
                for (key, value) in dict.iter() {
                    object.serialize_entry(key.as_str(), &Write(value))?;
                }
                object.end()
            }
            Value::Tensor(Tensor::Concrete(t)) => {
                let host = t
                    .host()
                    .map_err(|_| S::Error::custom("a tensor could not be fetched from the device"))?;
                Nested { tensor: host, axis: 0, first: 0 }.serialize(to)
            }
            other => Err(S::Error::custom(format!("there is no JSON for {}", other.describe()))),
        }
    }
}

/// The part of a tensor from one element on, over the axes from `axis` on.
struct Nested<'t> {
    tensor: &'t HostTensor,
    axis: usize,
    first: usize,
}

impl Serialize for Nested<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let Some((count, inner)) = self.tensor.shape()[self.axis..].split_first() else {
            return match self.tensor.data() {
                Data::Bool(v) => to.serialize_bool(v[self.first]),
                _ if self.tensor.dtype().is_float() => write_float(self.tensor.element_f64(self.first), to),
                _ => to.serialize_i64(self.tensor.element_i64(self.first)),
            };
        };
        let stride: usize = inner.iter().product();
        let mut array = to.serialize_seq(Some(*count))?;
        for i in 0..*count {
            array.serialize_element(&Nested {
                axis: self.axis + 1,
                first: self.first + i * stride,
                ..*self
            })?;
        }
        array.end()
    }
}

/// The shortest digits that round-trip, as an `f32` if it is one.
fn write_float<S: Serializer>(x: f64, to: S) -> Result<S::Ok, S::Error> {
    if !x.is_finite() {
        return Err(S::Error::custom(format!("JSON has no {x}")));
    }
    if f64::from(x as f32) == x { to.serialize_f32(x as f32) } else { to.serialize_f64(x) }
}
