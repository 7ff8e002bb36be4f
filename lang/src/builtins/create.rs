//! Making tensors.

use super::operands::{as_dtype, as_shape, as_size, show_shape};
use super::{Builtin, MANY, as_index};
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::primitives as p;
use crate::tensor::{DType, HostTensor, Shape};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("zeros", "(zeros shape :dtype d)", "zeros of a shape", (1, MANY), |_, a| filled(a, 0.0)),
    Builtin::new("ones", "(ones shape :dtype d)", "ones of a shape", (1, MANY), |_, a| filled(a, 1.0)),
    Builtin::new("full", "(full shape x :dtype d)", "one number everywhere", (2, 4), full),
    Builtin::new("zeros-like", "(zeros-like x)", "zeros of the type of x", (1, 1), |i, a| {
        like(i, &a[0], 0.0)
    }),
    Builtin::new("ones-like", "(ones-like x)", "ones of the type of x", (1, 1), |i, a| like(i, &a[0], 1.0)),
    Builtin::new("arange", "(arange start? end step?)", "evenly spaced numbers", (1, 5), |_, a| arange(a)),
    Builtin::new("range", "(range start? end step?)", "the same as arange", (1, 5), |_, a| arange(a)),
    Builtin::new("one-hot", "(one-hot i n)", "1 at position i of n, 0 elsewhere", (2, 4), one_hot),
    Builtin::new("tensor", "(tensor x :dtype)", "a list of numbers as a tensor", (1, 3), |i, a| tensor(i, a)),
    Builtin::new("cast", "(cast x :dtype)", "x with elements of another dtype", (2, 3), |i, a| {
        let parsed = parse_dtype(a)?;
        let (Some(x), Some(dtype)) = (parsed.0.first(), parsed.1) else {
            return fail("cast wants a tensor and a dtype");
        };
        i.cast(x, dtype)
    }),
    Builtin::new("float", "(float x)", "x as f32", (1, 1), |i, a| i.cast(&a[0], DType::F32)),
    Builtin::new("int", "(int x)", "x as i32, truncated", (1, 1), |i, a| i.cast(&a[0], DType::I32)),
];

/// Positional arguments and a dtype, given as `:dtype :i32` or as `:i32` alone.
fn parse_dtype(args: &[Value]) -> Eval<(Vec<&Value>, Option<DType>)> {
    let mut positional = Vec::new();
    let mut dtype = None;
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        match arg {
            Value::Keyword(k) if k == "dtype" => match rest.next() {
                Some(value) => dtype = Some(as_dtype(value)?),
                None => return fail(":dtype wants a dtype after it"),
            },
            Value::Keyword(_) => dtype = Some(as_dtype(arg)?),
            other => positional.push(other),
        }
    }
    Ok((positional, dtype))
}

/// Fails where a tensor would be larger than the address space, before anything is reserved.
fn checked_count(shape: &[usize]) -> Eval<usize> {
    const MOST: usize = 1 << 40;
    match shape.iter().try_fold(1_usize, |n, extent| n.checked_mul(*extent)).filter(|n| *n < MOST) {
        Some(n) => Ok(n),
        None => fail(format!("a tensor of shape {} is too large", show_shape(shape))),
    }
}

fn filled(args: &[Value], x: f64) -> Eval<Value> {
    let (shape, dtype) = parse_dtype(args)?;
    let shape = as_shape(&shape)?;
    checked_count(&shape)?;
    Ok(Value::Tensor(Tensor::host(HostTensor::filled(dtype.unwrap_or(DType::F32), shape, x))))
}

fn full(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [shape, value] = positional.as_slice() else { return fail("full wants a shape and a number") };
    let shape = as_shape(&[shape])?;
    checked_count(&shape)?;
    let t = interp.tensor(value)?;
    let default = match t.ty().dtype {
        DType::I64 if t.ty().weak => DType::I32,
        dtype => dtype,
    };
    let t = interp.convert(&t, dtype.unwrap_or(default))?;
    Ok(Value::Tensor(interp.broadcast_to(&t, &shape)?))
}

fn like(interp: &mut Interp, x: &Value, value: f64) -> Eval<Value> {
    let t = interp.tensor(x)?;
    let host = HostTensor::filled(t.ty().dtype, t.shape(), value);
    Ok(Value::from(if t.ty().weak { Tensor::weak(host) } else { Tensor::host(host) }))
}

fn arange(args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let float = |v: &Value| match v {
        Value::Float(_) => true,
        Value::Tensor(t) => t.ty().dtype.is_float() && t.ty().rank() == 0,
        _ => false,
    };
    if positional.iter().any(|v| float(v)) {
        let number = |v: &Value| match v {
            Value::Int(n) => Ok(*n as f64),
            Value::Float(x) => Ok(*x),
            Value::Tensor(t) => Ok(t.elements("the bounds of arange")?.element_f64(0)),
            other => fail(format!("arange wants numbers, not {}", other.describe())),
        };
        let numbers = positional.iter().map(|v| number(v)).collect::<Eval<Vec<f64>>>()?;
        let (start, end, step) = match numbers.as_slice() {
            [end] => (0.0, *end, 1.0),
            [start, end] => (*start, *end, 1.0),
            [start, end, step, ..] => (*start, *end, *step),
            [] => return fail("arange wants an end"),
        };
        let n = ((end - start) / step).ceil().max(0.0);
        if !n.is_finite() {
            return fail("arange wants a step that is not 0, and finite bounds");
        }
        checked_count(&[n as usize])?;
        let elements: Vec<f32> = (0..n as usize).map(|i| (start + i as f64 * step) as f32).collect();
        return convert_host(HostTensor::new([elements.len()].as_slice(), elements), dtype);
    }
    let numbers =
        positional.iter().map(|v| as_index(v, "the bounds of arange")).collect::<Eval<Vec<i64>>>()?;
    let (start, end, step) = match numbers.as_slice() {
        [end] => (0, *end, 1),
        [start, end] => (*start, *end, 1),
        [_, _, 0, ..] => return fail("arange wants a step that is not 0"),
        [start, end, step, ..] => (*start, *end, *step),
        [] => return fail("arange wants an end"),
    };
    let span = if step > 0 { end.saturating_sub(start) } else { start.saturating_sub(end) };
    let n = span.max(0).unsigned_abs().div_ceil(step.unsigned_abs()) as usize;
    checked_count(&[n])?;
    let elements: Vec<i32> = (0..n as i64).map(|i| (start + i * step) as i32).collect();
    convert_host(HostTensor::new([n].as_slice(), elements), dtype)
}

fn convert_host(host: HostTensor, dtype: Option<DType>) -> Eval<Value> {
    let t = Tensor::host(host);
    let dtype = dtype.unwrap_or(t.ty().dtype);
    Ok(Value::Tensor(crate::eval::bind(p::Convert { dtype, weak: false }, &[&t], None)?))
}

fn one_hot(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [classes, n] = positional.as_slice() else { return fail("one-hot wants class numbers and a count") };
    let n = as_size(n, "the number of classes")?;
    let classes = super::as_indices(interp, classes)?;
    let mut shape: Shape = classes.shape().into();
    shape.push(n);
    let dims: Shape = (0..classes.ty().rank()).collect();
    let spread = interp.op(p::BroadcastInDim { shape: shape.clone(), dims }, &[&classes])?;
    let dimension = shape.len() - 1;
    let elements: Vec<i32> = (0..n as i32).collect();
    let positions = Tensor::host(HostTensor::new([n].as_slice(), elements));
    let positions =
        interp.op(p::BroadcastInDim { shape, dims: [dimension].as_slice().into() }, &[&positions])?;
    let hot = interp.op(p::Compare { direction: p::Direction::Eq }, &[&spread, &positions])?;
    Ok(Value::Tensor(interp.convert(&hot, dtype.unwrap_or(DType::F32))?))
}

fn tensor(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [value] = positional.as_slice() else { return fail("tensor wants one value") };
    let value = nested(interp, value)?;
    match (value, dtype) {
        (Value::List(_), _) => {
            fail("the rows are uneven or of different types; a tensor wants numbers, nested evenly")
        }
        (value, Some(dtype)) => interp.cast(&value, dtype),
        (value, None) => interp.tensor(&value).map(Value::Tensor),
    }
}

/// Lists of numbers as vector literals, from the inside out.
pub(super) fn nested(interp: &mut Interp, value: &Value) -> Eval<Value> {
    let Value::List(list) = value else { return Ok(value.clone()) };
    let items = list.items.iter().map(|v| nested(interp, v)).collect::<Eval<Vec<_>>>()?;
    vector_literal(interp, items, true)
}

/// What a vector literal means: a tensor where its items are numbers or rank-0 tensors of one dtype, nested evenly;
/// a list otherwise (SPEC section 2).
///
/// `nested`: the items are vector literals themselves. Rows that were computed are not joined by a literal, so that
/// structure follows ranks and types.
pub fn vector_literal(interp: &mut Interp, items: Vec<Value>, nested: bool) -> Eval<Value> {
    if let Some((shape, elements)) = literal_numbers(&items) {
        return Ok(Value::Tensor(Tensor::host(HostTensor::new(shape, elements))));
    }
    if !items.is_empty() && items.iter().all(|v| matches!(v, Value::Bool(_))) {
        let elements: Vec<bool> = items.iter().map(|v| matches!(v, Value::Bool(true))).collect();
        return Ok(Value::Tensor(Tensor::host(HostTensor::new([elements.len()].as_slice(), elements))));
    }
    if nested && let Some(rows) = literal_rows(&items) {
        return super::shape::stack(interp, &rows, 0);
    }
    let scalar = |v: &Value| match v {
        Value::Tensor(t) => t.ty().rank() == 0,
        v => matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
    };
    if items.is_empty() || !items.iter().all(scalar) {
        return Ok(Value::list(items));
    }
    let tensors = items.iter().map(|v| interp.tensor(v)).collect::<Eval<Vec<Tensor>>>()?;
    let mut strong = tensors.iter().filter(|t| !t.ty().weak).map(|t| t.ty().dtype);
    let dtype = match strong.next() {
        Some(first) if strong.all(|d| d == first) => first,
        Some(_) => return Ok(Value::list(items)),
        None => DType::F32,
    };
    let mut rows = Vec::with_capacity(tensors.len());
    for t in tensors {
        rows.push(Value::Tensor(interp.convert(&t, dtype)?));
    }
    super::shape::stack(interp, &rows, 0)
}

/// A flat vector of plain numbers.
fn literal_numbers(items: &[Value]) -> Option<(Shape, Vec<f32>)> {
    let number = |v: &Value| match v {
        Value::Int(n) => Some(*n as f32),
        Value::Float(x) => Some(*x as f32),
        _ => None,
    };
    let elements = items.iter().map(number).collect::<Option<Vec<f32>>>()?;
    (!elements.is_empty()).then(|| ([elements.len()].as_slice().into(), elements))
}

/// Tensors of one type, of rank 1 and up.
fn literal_rows(items: &[Value]) -> Option<Vec<Value>> {
    let mut first: Option<&crate::tensor::TensorType> = None;
    for item in items {
        let Value::Tensor(t) = item else { return None };
        if t.ty().rank() == 0 {
            return None;
        }
        match first {
            None => first = Some(t.ty()),
            Some(ty) if ty == t.ty() => {}
            Some(_) => return None,
        }
    }
    first.map(|_| items.to_vec())
}
