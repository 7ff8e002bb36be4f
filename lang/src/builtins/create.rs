//! Tensor creation.

use super::operands::{as_dtype, as_shape, as_size};
use super::{Builtin, VARIADIC, as_index, counted};
use crate::eval::{Eval, Interp, fail, positions};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape, element_count};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("zeros", "(zeros shape :dtype d)", "a tensor of zeros, f32 unless a dtype is given", (1, VARIADIC), |_, a| {
        filled(a, 0.0)
    })
    .examples("(zeros '[2 2]) ;=> [[0 0] [0 0]]\n(zeros 3 :dtype :i32) ;=> tensor i32[3] = [0 0 0]"),
    Builtin::new("ones", "(ones shape :dtype d)", "a tensor of ones, f32 unless a dtype is given", (1, VARIADIC), |_, a| {
        filled(a, 1.0)
    })
    .examples("(ones 2 3) ;=> [[1 1 1] [1 1 1]]\n(ones '[2] :dtype :bool) ;=> [true true]"),
    Builtin::new("full", "(full shape x :dtype d)", "a tensor with x everywhere, of its dtype unless one is given", (2, 4), full)
        .examples("(full '[2 2] 7) ;=> tensor i32[2x2] = [[7 7] [7 7]]\n(full 3 0.5) ;=> [0.5 0.5 0.5]"),
    Builtin::new("eye", "(eye n m? :dtype d)", "the n by n identity matrix, or n by m with ones on its diagonal", (1, 4), eye)
    .examples("(eye 2) ;=> [[1 0] [0 1]]\n(eye 2 3) ;=> [[1 0 0] [0 1 0]]"),
    Builtin::new("zeros-like", "(zeros-like x :dtype d)", "zeros of the shape of x, and of its dtype unless one is given", (1, 3), |i, a| { like(i, a, 0.0) })
        .examples("(zeros-like [[1 2] [3 4]]) ;=> [[0 0] [0 0]]"),
    Builtin::new("ones-like", "(ones-like x :dtype d)", "ones of the shape of x, and of its dtype unless one is given", (1, 3), |i, a| { like(i, a, 1.0) })
        .examples("(ones-like [1 2 3]) ;=> [1 1 1]"),
    Builtin::new("arange", "(arange start? end step? :dtype d)", ARANGE, (1, 5), arange)
        .examples("(arange 4) ;=> tensor i32[4] = [0 1 2 3]\n(arange 5 0 -2) ;=> [5 3 1]\n(arange 0 1 0.25) ;=> [0 0.25 0.5 0.75]"),
    Builtin::new("range", "(range start? end step? :dtype d)", ARANGE, (1, 5), arange)
        .examples("(range 2 5) ;=> tensor i32[3] = [2 3 4]"),
    Builtin::new(
        "linspace",
        "(linspace start end n :dtype d)",
        "n numbers at even distances from start to end, both included",
        (3, 5),
        linspace,
    )
    .examples("(linspace 0 1 5) ;=> [0 0.25 0.5 0.75 1]\n(linspace 3 1 3) ;=> [3 2 1]"),
    Builtin::new(
        "one-hot",
        "(one-hot i n :dtype d)",
        "1 at position i of n along a new last axis, 0 elsewhere; all 0 where i is out of range",
        (2, 4),
        one_hot,
    )
    .examples("(one-hot 1 3) ;=> [0 1 0]\n(one-hot [0 2] 3) ;=> [[1 0 0] [0 0 1]]"),
    Builtin::new("tensor", "(tensor x :dtype)", "numbers, nested evenly in lists, as a tensor", (1, 3), tensor)
        .examples("(tensor '[1 2 3]) ;=> [1 2 3]\n(tensor [1 2] :i32) ;=> tensor i32[2] = [1 2]\n(tensor '[[1 2] [3]]) ;=> error: uneven"),
    Builtin::new(
        "cast",
        "(cast x :dtype)",
        "x with elements of another dtype. Floats lose their fraction, and stop at the bounds of the integers; NaN is 0",
        (2, 3),
        |i, a| {
            let parsed = parse_dtype(a)?;
            match (parsed.0.as_slice(), parsed.1) {
                ([x], Some(dtype)) => i.cast(x, dtype),
                ([x, name], None) => i.cast(x, as_dtype(name)?),
                _ => fail("cast wants a tensor and a dtype"),
            }
        },
    )
    .examples("(cast [1.7 -1.7] :i32) ;=> tensor i32[2] = [1 -1]\n(cast [0 2] :bool) ;=> [false true]"),
    Builtin::new(
        "float",
        "(float x)",
        "x as f32; a string is read as a number. A dtype after x is that of x",
        (1, 2),
        |i, a| match annotated(i, a)? {
            Value::Str(text) => {
                let x = read_number::<f64>(&text, "float")?;
                i.cast(&Value::Float(x), DType::F32)
            }
            x => i.cast(&x, DType::F32),
        },
    )
    .examples("(float 3) ;=> tensor f32[] = 3.\n(float [true false]) ;=> [1 0]\n(float \"70.5\") ;=> 70.5\n(float \"x\") ;=> error: no number"),
    Builtin::new(
        "int",
        "(int x)",
        "x as i32, without its fraction; a string is read as a whole number. A dtype after x is that of x",
        (1, 2),
        |i, a| match annotated(i, a)? {
            Value::Str(text) => {
                let n = read_number::<i32>(&text, "int")?;
                i.cast(&Value::Int(n.into()), DType::I32)
            }
            x => i.cast(&x, DType::I32),
        },
    )
    .examples("(int 3.9) ;=> tensor i32[] = 3\n(int [-1.5 2.5]) ;=> [-1 2]\n(int \"7\") ;=> 7\n(int \"7.5\") ;=> error: no whole number"),
];

const ARANGE: &str = "numbers from start, 0 by default, up to but not including end, by step: i32 of integers, f32 if one \
    is a float";

/// `x`, in the dtype that may follow it, as after a vector.
fn annotated(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    match args {
        [x, dtype] => interp.cast(x, as_dtype(dtype)?),
        args => Ok(args[0].clone()),
    }
}

/// Parses a number, ignoring surrounding white space.
fn read_number<T: std::str::FromStr>(text: &str, reader: &str) -> Eval<T> {
    text.trim().parse().map_err(|_| {
        let fraction = text.trim().parse::<f64>().is_ok();
        let (found, help) = match (reader, fraction) {
            ("int", true) => ("no whole number of i32", "(int (float s)) drops a fraction"),
            ("int", false) => ("no whole number", "digits with a sign before them are, such as \"-12\""),
            _ => ("no number", "a number is written as in a program, such as \"70.5\" or \"1e-3\""),
        };
        Diagnostic::error(format!("{reader} reads numbers, and {text:?} is {found}")).help(help).into()
    })
}

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

/// Fails if a tensor of that shape does not fit memory, before anything is allocated.
pub(super) fn checked_count(shape: &[usize]) -> Eval<usize> {
    crate::eval::check_room(shape)?;
    Ok(element_count(shape))
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
    let t = match dtype {
        Some(dtype) => interp.tensor_of(value, dtype)?,
        None => {
            let t = interp.tensor(value)?;
            interp.strong(&t)?
        }
    };
    Ok(Value::Tensor(interp.broadcast_to(&t, &shape)?))
}

fn like(interp: &mut Interp, args: &[Value], x: f64) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [value] = positional.as_slice() else {
        return fail(format!("expected one tensor and maybe a dtype, got {} values", positional.len()));
    };
    let t = interp.tensor(value)?;
    let host = HostTensor::filled(dtype.unwrap_or(t.ty().dtype), t.shape(), x);
    let weak = t.ty().weak && dtype.is_none();
    Ok(Value::from(if weak { Tensor::weak(host) } else { Tensor::host(host) }))
}

fn arange(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
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
            Value::Tensor(t) if t.ty().rank() == 0 => Ok(t.elements("the bounds of arange")?.element_f64(0)),
            other => fail(format!("arange wants numbers, not {}", other.describe())),
        };
        let numbers = positional.iter().map(|v| number(v)).collect::<Eval<Vec<f64>>>()?;
        let (start, end, step) = bounds(&numbers, 0.0, 1.0)?;
        let n = ((end - start) / step).ceil().max(0.0);
        if !n.is_finite() {
            return fail("arange wants a step that is not 0, and finite bounds");
        }
        checked_count(&[n as usize])?;
        let dtype = dtype.unwrap_or(DType::F32);
        if let Some(counted) = counted::floats(interp, n as usize, start, step, dtype)? {
            return Ok(Value::Tensor(counted));
        }
        let elements: Vec<f64> = (0..n as usize).map(|i| start + i as f64 * step).collect();
        let host = HostTensor::new([elements.len()].as_slice(), elements);
        return convert_host(host, Some(dtype));
    }
    let numbers =
        positional.iter().map(|v| as_index(v, "the bounds of arange")).collect::<Eval<Vec<i64>>>()?;
    let (start, end, step) = bounds(&numbers, 0, 1)?;
    if step == 0 {
        return fail("arange wants a step that is not 0");
    }
    let (from, to) = if step > 0 { (start, end) } else { (end, start) };
    let span = (i128::from(to) - i128::from(from)).max(0).unsigned_abs();
    let n = usize::try_from(span.div_ceil(u128::from(step.unsigned_abs()))).unwrap_or(usize::MAX);
    checked_count(&[n])?;
    let last = i128::from(start) + (n as i128 - 1) * i128::from(step);
    if dtype.is_none() && n > 0 && [i128::from(start), last].iter().any(|x| i32::try_from(*x).is_err()) {
        return Err(Diagnostic::error(format!("arange from {start} to {end} exceeds the numbers of i32"))
            .help("give another dtype: (arange start end :dtype :i64)")
            .into());
    }
    let dtype = dtype.unwrap_or(DType::I32);
    if let Some(counted) = counted::integers(interp, n, start, step, dtype)? {
        return Ok(Value::Tensor(counted));
    }
    let elements: Vec<i64> = (0..n as i64).map(|i| start.wrapping_add(i.wrapping_mul(step))).collect();
    convert_host(HostTensor::new([n].as_slice(), elements), Some(dtype))
}

/// Start, end and step of one to three numbers.
fn bounds<T: Copy>(numbers: &[T], start: T, step: T) -> Eval<(T, T, T)> {
    match *numbers {
        [end] => Ok((start, end, step)),
        [start, end] => Ok((start, end, step)),
        [start, end, step] => Ok((start, end, step)),
        _ => {
            fail(format!("arange takes an end, or a start, an end and a step, got {} numbers", numbers.len()))
        }
    }
}

fn eye(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let sizes = positional.iter().map(|v| as_size(v, "a size of eye")).collect::<Eval<Vec<usize>>>()?;
    let (n, m) = match *sizes {
        [n] => (n, n),
        [n, m] => (n, m),
        _ => return fail(format!("eye takes one or two sizes, got {}", sizes.len())),
    };
    checked_count(&[n, m])?;
    let positions = |dimension| p::Iota { dtype: DType::I32, shape: [n, m].as_slice().into(), dimension };
    let (rows, columns) = (interp.iota(positions(0))?, interp.iota(positions(1))?);
    let diagonal = interp.op(p::Compare { direction: p::Direction::Eq }, &[&rows, &columns])?;
    Ok(Value::Tensor(interp.convert(&diagonal, dtype.unwrap_or(DType::F32))?))
}

/// `start (1 - t) + end t` for t of 0 to 1, as in JAX: both ends are exact.
fn linspace(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [start, end, n] = *positional.as_slice() else {
        return fail("linspace wants a start, an end and the number of points");
    };
    let n = as_size(n, "the number of points")?;
    checked_count(&[n])?;
    let last = n.saturating_sub(1).max(1) as f64;
    let precise = if dtype == Some(DType::F64) { DType::F64 } else { DType::F32 };
    let number = |x: f64| Tensor::host(HostTensor::filled(DType::F64, [n].as_slice(), x));
    let positions = interp.iota(p::Iota { dtype: DType::F64, shape: [n].as_slice().into(), dimension: 0 })?;
    let to = interp.op(p::Binary(p::Div), &[&positions, &number(last)])?;
    let from = interp.op(p::Binary(p::Sub), &[&number(1.0), &to])?;
    let mut part = |bound: &Value, weights: &Tensor| {
        let bound = scalar_of(interp, bound, precise, "a bound of linspace")?;
        let bound = interp.broadcast_to(&bound, &[n])?;
        let weights = interp.convert(weights, precise)?;
        let part = interp.op(p::Binary(p::Mul), &[&bound, &weights])?;
        if weights.is_traced() { counted::rounded(interp, &part) } else { Ok(part) }
    };
    let (from, to) = (part(start, &from)?, part(end, &to)?);
    let sum = interp.op(p::Binary(p::Add), &[&from, &to])?;
    Ok(Value::Tensor(interp.convert(&sum, dtype.unwrap_or(DType::F32))?))
}

/// One number as `f32`, possibly traced.
pub(super) fn scalar(interp: &mut Interp, value: &Value, wanted: &str) -> Eval<Tensor> {
    scalar_of(interp, value, DType::F32, wanted)
}

fn scalar_of(interp: &mut Interp, value: &Value, dtype: DType, wanted: &str) -> Eval<Tensor> {
    let t = interp.tensor_of(value, dtype)?;
    if t.ty().rank() > 0 {
        return fail(format!("{wanted} is a number, not {}", value.describe()));
    }
    Ok(t)
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
    let classes = interp.given_to_program(&classes, element_count(&shape), DType::I32)?;
    let dimension = shape.len() - 1;
    let spread = interp.op(p::BroadcastInDim { shape, dims }, &[&classes])?;
    let positions = positions(&spread, dimension, interp.span)?;
    let hot = interp.op(p::Compare { direction: p::Direction::Eq }, &[&spread, &positions])?;
    Ok(Value::Tensor(interp.convert(&hot, dtype.unwrap_or(DType::F32))?))
}

fn tensor(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (positional, dtype) = parse_dtype(args)?;
    let [value] = positional.as_slice() else { return fail("tensor wants one value") };
    match (from_list(interp, value, dtype)?, dtype) {
        (Value::List(list), _) if list.items.is_empty() => {
            Err(Diagnostic::error("an empty list has no dtype and no shape to make a tensor of")
                .help("an empty tensor is (zeros 0), or (zeros '[0 3]) with an axis of three")
                .into())
        }
        (Value::List(_), _) => {
            fail("the rows are uneven or of different types; a tensor wants numbers, nested evenly")
        }
        (value, Some(dtype)) => interp.cast(&value, dtype),
        (value, None) => {
            let t = interp.tensor(&value)?;
            interp.strong(&t).map(Value::Tensor)
        }
    }
}

/// Maximum rank of a tensor; lists nested deeper are mistakes.
const MAX_RANK: usize = 64;

/// A list as the equivalent vector literal, numbers read as `dtype`; ragged lists stay lists.
pub(super) fn from_list(interp: &mut Interp, value: &Value, dtype: Option<DType>) -> Eval<Value> {
    fn collect(value: &Value, depth: usize, shape: &mut Shape, leaves: &mut Vec<Value>) -> bool {
        let Value::List(list) = value else {
            leaves.push(value.clone());
            return depth == shape.len();
        };
        if depth == MAX_RANK {
            return false;
        }
        if depth == shape.len() && leaves.is_empty() {
            shape.push(list.items.len());
        }
        shape.get(depth) == Some(&list.items.len())
            && list.items.iter().all(|item| collect(item, depth + 1, shape, leaves))
    }
    let (mut shape, mut leaves) = (Shape::new(), Vec::new());
    match value {
        Value::List(_) if collect(value, 0, &mut shape, &mut leaves) => {
            vector_literal(interp, leaves, &shape, dtype)
        }
        other => Ok(other.clone()),
    }
}

/// Value of an evenly nested vector literal: a tensor if its innermost items are numbers or rank-0 tensors of one
/// dtype; otherwise a list of the values of its rows (SPEC section 2). Numbers alone become `dtype`, by default `f32`.
pub fn vector_literal(
    interp: &mut Interp,
    leaves: Vec<Value>,
    shape: &[usize],
    dtype: Option<DType>,
) -> Eval<Value> {
    if let Some(numbers) = literal_numbers(&leaves, shape, dtype.unwrap_or(DType::F32)) {
        return Ok(Value::Tensor(Tensor::host(numbers)));
    }
    let scalar = |v: &Value| match v {
        Value::Tensor(t) => t.ty().rank() == 0,
        v => matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
    };
    if !leaves.is_empty() && leaves.iter().all(scalar) {
        let tensors = leaves.iter().map(|v| interp.tensor(v)).collect::<Eval<Vec<Tensor>>>()?;
        if let Some(common) = literal_dtype(&tensors) {
            let items = leaves.iter().map(|v| interp.cast(v, common)).collect::<Eval<Vec<Value>>>()?;
            let flat = super::arrange::stack(interp, &items, 0)?;
            let flat = interp.tensor(&flat)?;
            return interp.reshape(&flat, shape).map(Value::Tensor);
        }
    }
    let [rows, inner @ ..] = shape else { return Ok(Value::vector(leaves)) };
    if inner.is_empty() {
        return Ok(Value::vector(leaves));
    }
    let width: usize = inner.iter().product();
    let row = |i: usize| vector_literal(interp, leaves[i * width..(i + 1) * width].to_vec(), inner, dtype);
    (0..*rows).map(row).collect::<Eval<Vec<Value>>>().map(Value::vector)
}

/// A tensor of plain numbers, with all digits that the dtype holds.
fn literal_numbers(leaves: &[Value], shape: &[usize], dtype: DType) -> Option<HostTensor> {
    let float = |v: &Value| match v {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    };
    let integer = |v: &Value| if let Value::Int(n) = v { Some(*n) } else { None };
    if leaves.is_empty() {
        return None;
    }
    if dtype.is_integer()
        && let Some(integers) = leaves.iter().map(integer).collect::<Option<Vec<i64>>>()
    {
        return Some(HostTensor::new(shape, integers));
    }
    let floats = leaves.iter().map(float).collect::<Option<Vec<f64>>>()?;
    if dtype == DType::F64 {
        return Some(HostTensor::new(shape, floats));
    }
    Some(HostTensor::new(shape, floats.into_iter().map(|x| x as f32).collect::<Vec<f32>>()))
}

/// The dtype of a literal: that of the tensors among its items, which weak numbers take if they are of its kind or a
/// lower one; `None` if the dtypes differ.
fn literal_dtype(tensors: &[Tensor]) -> Option<DType> {
    let mut strong = tensors.iter().map(Tensor::ty).filter(|ty| !ty.weak).map(|ty| ty.dtype);
    let weak = tensors.iter().map(Tensor::ty).filter(|ty| ty.weak).map(|ty| ty.dtype.kind()).max();
    let Some(dtype) = strong.next() else { return Some(DType::F32) };
    let one = strong.all(|d| d == dtype);
    let fits = weak.is_none_or(|kind| dtype != DType::Bool && kind <= dtype.kind());
    (one && fits).then_some(dtype)
}
