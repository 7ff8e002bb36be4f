//! Comparison and logic.

use std::rc::Rc;

use super::{Builtin, VARIADIC, of_scalars};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Scalar, Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Direction;
use sheaf_graph::tensor::{DType, HostTensor, Shape};

const EQUALITY: &str =
    "whether a and b are equal: element by element on tensors, in structure on anything else";

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("=", "(= a b)", EQUALITY, (2, 2), |i, a| equal(i, &a[0], &a[1], Direction::Eq))
        .takes_whole()
        .on_numbers(|a, b| compare_numbers(a, b, Direction::Eq))
        .examples("(= [1 2 1] 1) ;=> [true false true]\n(= '[1 :a] '[1 :a]) ;=> true\n(= 1 1.0) ;=> true"),
    Builtin::new("==", "(== a b)", EQUALITY, (2, 2), |i, a| equal(i, &a[0], &a[1], Direction::Eq))
        .takes_whole()
        .on_numbers(|a, b| compare_numbers(a, b, Direction::Eq))
        .examples("(== [1 2] [1 3]) ;=> [true false]"),
    Builtin::new(
        "!=",
        "(!= a b)",
        "the opposite of =: element by element on tensors, structural on anything else",
        (2, 2),
        |i, a| equal(i, &a[0], &a[1], Direction::Ne),
    )
    .takes_whole()
    .on_numbers(|a, b| compare_numbers(a, b, Direction::Ne))
    .examples("(!= [1 2] [1 3]) ;=> [false true]\n(!= :a :b) ;=> true"),
    Builtin::new(
        "<",
        "(< a b)",
        "less than, element by element; strings by their letters",
        (2, 2),
        |i, a| order(i, &a[0], &a[1], Direction::Lt),
    )
    .on_numbers(|a, b| compare_numbers(a, b, Direction::Lt))
    .examples("(< 1 2) ;=> true\n(< [1 2 3] 2) ;=> [true false false]"),
    Builtin::new(
        ">",
        "(> a b)",
        "greater than, element by element; strings by their letters",
        (2, 2),
        |i, a| order(i, &a[0], &a[1], Direction::Gt),
    )
    .on_numbers(|a, b| compare_numbers(a, b, Direction::Gt))
    .examples("(> 2 1) ;=> true\n(> [1 2 3] 2) ;=> [false false true]"),
    Builtin::new(
        "<=",
        "(<= a b)",
        "at most, element by element; strings by their letters",
        (2, 2),
        |i, a| order(i, &a[0], &a[1], Direction::Le),
    )
    .on_numbers(|a, b| compare_numbers(a, b, Direction::Le))
    .examples("(<= 2 2) ;=> true\n(<= [1 2 3] 2) ;=> [true true false]"),
    Builtin::new(
        ">=",
        "(>= a b)",
        "at least, element by element; strings by their letters",
        (2, 2),
        |i, a| order(i, &a[0], &a[1], Direction::Ge),
    )
    .on_numbers(|a, b| compare_numbers(a, b, Direction::Ge))
    .examples("(>= 2 2) ;=> true\n(>= [1 2 3] 2) ;=> [false true true]"),
    Builtin::new(
        "equal?",
        "(equal? a b)",
        "whether two values are equal in structure, numbers by value and not by dtype: one boolean",
        (2, 2),
        |_, a| structurally_equal(&a[0], &a[1]).map(Value::Bool),
    )
    .takes_whole()
    .examples(
        "(equal? [1 2] [1 2]) ;=> true\n(equal? [1 2] [1 2 3]) ;=> false\n(equal? [1 2] '[1 2]) ;=> true",
    ),
    Builtin::new(
        "not",
        "(not x)",
        "true for false and nil, else false; element by element on booleans",
        (1, 1),
        |i, a| not(i, &a[0]),
    )
    .examples("(not nil) ;=> true\n(not 0) ;=> false\n(not [true false]) ;=> [false true]"),
    Builtin::new(
        "logical-not",
        "(logical-not x)",
        "whether x is 0 or false, element by element",
        (1, 1),
        |i, a| {
            let t = truths(i, &a[0])?;
            Ok(Value::Tensor(i.op(p::Unary(p::Not), &[&t])?))
        },
    )
    .examples("(logical-not [true false]) ;=> [false true]\n(logical-not [2 0]) ;=> [false true]"),
    Builtin::new(
        "isfinite",
        "(isfinite x)",
        "whether x is neither infinite nor NaN, element by element",
        (1, 1),
        |i, a| {
            let t = i.float(&a[0])?;
            Ok(Value::Tensor(i.op(p::Unary(p::IsFinite), &[&t])?))
        },
    )
    .examples("(isfinite (log [0 1])) ;=> [false true]"),
    Builtin::new("isnan", "(isnan x)", "whether x is NaN, element by element", (1, 1), |i, a| {
        let t = i.float(&a[0])?;
        elementwise(i, &t, &t, Direction::Ne)
    })
    .examples("(isnan (sqrt [-1 1])) ;=> [true false]"),
    Builtin::new(
        "logical-and",
        "(logical-and a b ...)",
        "whether all hold, element by element; numbers hold unless they are 0",
        (2, VARIADIC),
        |i, a| logic(i, a, true),
    )
    .examples("(logical-and [true true false] [true false false]) ;=> [true false false]"),
    Builtin::new(
        "logical-or",
        "(logical-or a b ...)",
        "whether any holds, element by element; numbers hold unless they are 0",
        (2, VARIADIC),
        |i, a| logic(i, a, false),
    )
    .examples("(logical-or [true true false] [true false false]) ;=> [true true false]"),
    Builtin::new(
        "where",
        "(where condition a b)",
        "a where the condition holds, else b, element by element; all three broadcast. What is not chosen has no part in a gradient, even where its own derivative is infinite or NaN",
        (3, 3),
        |i, a| {
            let condition = truths(i, &a[0])?;
            let (x, y) = i.tensors(&a[1], &a[2])?;
            let (x, y) = i.broadcast(&x, &y)?;
            let shape = super::operands::broadcast_shapes(condition.ty(), x.ty())?;
            let (c, x, y) = (
                i.broadcast_beside(&condition, &shape, &[&x, &y])?,
                i.broadcast_beside(&x, &shape, &[&condition])?,
                i.broadcast_beside(&y, &shape, &[&condition])?,
            );
            Ok(Value::from(i.op(p::Select, &[&c, &x, &y])?))
        },
    )
    .examples("(where [true false] [1 2] [3 4]) ;=> [1 4]\n(where (> [1 -2 3] 0) [1 -2 3] 0) ;=> [1 0 3]"),
];

fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Int(n) => Some(*n as f64),
        Value::Float(x) => Some(*x),
        _ => None,
    }
}

fn holds<T: PartialOrd>(direction: Direction, a: &T, b: &T) -> bool {
    match direction {
        Direction::Eq => a == b,
        Direction::Ne => a != b,
        Direction::Lt => a < b,
        Direction::Le => a <= b,
        Direction::Gt => a > b,
        Direction::Ge => a >= b,
    }
}

/// Compares two integers exactly, other numbers as `f32`, their dtype on the device.
#[inline]
fn compare_numbers(a: Scalar, b: Scalar, direction: Direction) -> Option<Scalar> {
    Some(Scalar::from(match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => holds(direction, &a, &b),
        (a, b) => holds(direction, &a.single()?, &b.single()?),
    }))
}

fn elementwise(interp: &mut Interp, a: &Tensor, b: &Tensor, direction: Direction) -> Eval<Value> {
    let (a, b) = interp.broadcast(a, b)?;
    Ok(Value::Tensor(interp.op(p::Compare { direction }, &[&a, &b])?))
}

fn order(interp: &mut Interp, a: &Value, b: &Value, direction: Direction) -> Eval<Value> {
    if let Some(truth) = of_scalars(a, b, |a, b| compare_numbers(a, b, direction)) {
        return Ok(truth);
    }
    if let (Value::Str(a), Value::Str(b)) = (a, b) {
        return Ok(Value::Bool(holds(direction, a, b)));
    }
    let (a, b) = interp.tensors(a, b)?;
    elementwise(interp, &a, &b, direction)
}

fn equal(interp: &mut Interp, a: &Value, b: &Value, direction: Direction) -> Eval<Value> {
    if let Some(truth) = of_scalars(a, b, |a, b| compare_numbers(a, b, direction)) {
        return Ok(truth);
    }
    // Numbers and booleans compare as their scalars on the device.
    let scalar = |v: &Value| if let Value::Bool(b) = v { Some(f64::from(*b)) } else { number(v) };
    if let Some((a, b)) = scalar(a).zip(scalar(b)) {
        return Ok(Value::Bool(holds(direction, &(a as f32), &(b as f32))));
    }
    let comparable =
        |v: &Value| matches!(v, Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_));
    let tensor = |v: &Value| matches!(v, Value::Tensor(_));
    match (a, b) {
        (a, b) if (tensor(a) && comparable(b)) || (tensor(b) && comparable(a)) => {
            let (a, b) = interp.tensors(a, b)?;
            elementwise(interp, &a, &b, direction)
        }
        // A list of numbers compared with a tensor counts as a tensor.
        (Value::List(list), other) | (other, Value::List(list)) if tensor(other) => {
            match super::create::from_list(interp, &Value::List(list.clone()), None)? {
                Value::Tensor(t) => {
                    let other = interp.tensor(other)?;
                    elementwise(interp, &other, &t, direction)
                }
                _ => Ok(Value::Bool(direction == Direction::Ne)),
            }
        }
        (a, b) => Ok(Value::Bool(structurally_equal(a, b)? == (direction == Direction::Eq))),
    }
}

/// True if two values are equal in structure; numbers are compared by value, not dtype.
pub fn structurally_equal(a: &Value, b: &Value) -> Eval<bool> {
    // An explicit work list: nested values need no recursion.
    let mut pairs = vec![(a, b)];
    while let Some((a, b)) = pairs.pop() {
        let equal = match (a, b) {
            (Value::Nil, Value::Nil) => true,
            (Value::Bool(a), Value::Bool(b)) => a == b,
            (Value::Int(a), Value::Int(b)) => a == b,
            (Value::Keyword(a), Value::Keyword(b)) | (Value::Symbol(a), Value::Symbol(b)) => a == b,
            (Value::Str(a), Value::Str(b)) => a == b,
            (Value::Range(a), Value::Range(b)) => a == b,
            (Value::Handle(a), Value::Handle(b)) => Rc::ptr_eq(a, b),
            (Value::Tokenizer(a), Value::Tokenizer(b)) => Rc::ptr_eq(a, b),
            (Value::List(a), Value::List(b)) => {
                pairs.extend(a.items.iter().zip(&b.items).rev());
                a.items.len() == b.items.len()
            }
            (Value::Dict(a), Value::Dict(b)) => {
                let known = pairs.len();
                pairs.extend(a.iter().filter_map(|(key, x)| Some((x, b.get(&key)?))));
                a.len() == b.len() && pairs.len() - known == a.len()
            }
            (Value::Tensor(t), other) | (other, Value::Tensor(t)) => {
                fits(t.shape(), other) && same_elements(t.elements("equal?")?, t.shape(), 0, other)?
            }
            (a, b) => number(a).zip(number(b)).is_some_and(|(a, b)| a == b),
        };
        if !equal {
            return Ok(false);
        }
    }
    Ok(true)
}

/// True if a value may equal a tensor of that shape: tensors and numbers by shape, lists by length.
fn fits(shape: &[usize], value: &Value) -> bool {
    match value {
        Value::Tensor(t) => t.shape() == shape,
        Value::List(list) => shape.first() == Some(&list.items.len()),
        Value::Bool(_) | Value::Int(_) | Value::Float(_) => shape.is_empty(),
        _ => false,
    }
}

/// True if the block of `x` of that shape at `offset` equals a tensor, a number or a list.
fn same_elements(x: &HostTensor, shape: &[usize], offset: usize, value: &Value) -> Eval<bool> {
    if !fits(shape, value) {
        return Ok(false);
    }
    let (float, integer) = (|i| x.element_f64(offset + i), |i| x.element_i64(offset + i));
    Ok(match value {
        Value::Tensor(t) => {
            let y = t.elements("equal?")?;
            let exact = x.dtype().is_integer() && y.dtype().is_integer();
            let same = |i| if exact { integer(i) == y.element_i64(i) } else { float(i) == y.element_f64(i) };
            (0..y.count()).all(same)
        }
        Value::List(list) => {
            let width: usize = shape[1..].iter().product();
            for (i, item) in list.items.iter().enumerate() {
                if !same_elements(x, &shape[1..], offset + i * width, item)? {
                    return Ok(false);
                }
            }
            true
        }
        Value::Bool(b) => x.dtype() == DType::Bool && float(0) == f64::from(*b),
        Value::Int(n) if x.dtype().is_integer() => integer(0) == *n,
        // A number compares in the tensor's dtype.
        other => number(other).is_some_and(|y| {
            let dtype = if x.dtype().is_float() { x.dtype() } else { DType::F32 };
            HostTensor::filled(dtype, Shape::new(), y).element_f64(0) == float(0)
        }),
    })
}

/// Elementwise truth values: anything but zero is true.
fn truths(interp: &mut Interp, value: &Value) -> Eval<Tensor> {
    let t = interp.tensor(value)?;
    interp.convert(&t, DType::Bool)
}

fn not(interp: &mut Interp, value: &Value) -> Eval<Value> {
    match value {
        Value::Tensor(t) if t.ty().dtype == DType::Bool => {
            let t = t.clone();
            Ok(Value::Tensor(interp.op(p::Unary(p::Not), &[&t])?))
        }
        Value::Tensor(t) if t.ty().rank() > 0 => fail(format!("not wants truth values, got {}", t.ty())),
        other => Ok(Value::Bool(!other.truthy()?)),
    }
}

fn logic(interp: &mut Interp, args: &[Value], and: bool) -> Eval<Value> {
    let mut acc = truths(interp, &args[0])?;
    for arg in &args[1..] {
        let next = truths(interp, arg)?;
        let (a, b) = interp.broadcast(&acc, &next)?;
        acc = if and {
            interp.op(p::Binary(p::And), &[&a, &b])?
        } else {
            interp.op(p::Binary(p::Or), &[&a, &b])?
        };
    }
    Ok(Value::Tensor(acc))
}
