//! Reductions.

use super::operands::as_axes;
use super::{Builtin, MANY, Parsed, parse};
use crate::diagnostic::Diagnostic;
use crate::eval::{Eval, Interp, Signal, Tensor, Value, fail};
use crate::primitives as p;
use crate::tensor::{DType, HostTensor, Shape};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("sum", "(sum x :axis a :keepdims)", "the sum; booleans count in i32", (1, MANY), |i, a| {
        reduce(i, a, &|i, x, axes| {
            let x = counted(i, x)?;
            i.op(p::ReduceSum { axes: axes.clone() }, &[&x])
        })
    }),
    Builtin::new("mean", "(mean x :axis a :keepdims)", "the mean, f32 of integers", (1, MANY), |i, a| {
        reduce(i, a, &mean)
    }),
    Builtin::new("var", "(var x :axis a :keepdims)", "the variance, divided by n", (1, MANY), |i, a| {
        reduce(i, a, &variance)
    }),
    Builtin::new("std", "(std x :axis a :keepdims)", "the standard deviation", (1, MANY), |i, a| {
        reduce(i, a, &|i, x, axes| {
            let v = variance(i, x, axes)?;
            i.op(p::Unary(p::Sqrt), &[&v])
        })
    }),
    Builtin::new("max", "(max x :axis a :keepdims)", "the greatest element", (1, MANY), |i, a| {
        reduce(i, a, &|i, x, axes| i.op(p::ReduceMax { axes: axes.clone() }, &[not_empty(x, axes)?]))
    }),
    Builtin::new("min", "(min x :axis a :keepdims)", "the smallest element", (1, MANY), |i, a| {
        reduce(i, a, &|i, x, axes| i.op(p::ReduceMin { axes: axes.clone() }, &[not_empty(x, axes)?]))
    }),
    Builtin::new(
        "argmax",
        "(argmax x :axis a)",
        "the position of the first greatest element",
        (1, MANY),
        |i, a| arg_reduce(i, a, p::Extreme::Max),
    ),
    Builtin::new(
        "argmin",
        "(argmin x :axis a)",
        "the position of the first smallest element",
        (1, MANY),
        |i, a| arg_reduce(i, a, p::Extreme::Min),
    ),
    Builtin::new("any", "(any x :axis a)", "whether any element is true", (1, MANY), |i, a| {
        truth(i, a, false)
    }),
    Builtin::new("all", "(all x :axis a)", "whether all elements are true", (1, MANY), |i, a| {
        truth(i, a, true)
    }),
];

type Rule<'a> = &'a dyn Fn(&mut Interp, &Tensor, &Shape) -> Eval<Tensor>;

/// Reduces over the axes that the options name, and puts them back as extents of 1 with `:keepdims`.
fn reduce(interp: &mut Interp, args: &[Value], rule: Rule) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &["keepdims"])?;
    let [x] = parsed.positional.as_slice() else { return Err(one_tensor(&parsed)) };
    let x = interp.tensor(x)?;
    let axes = as_axes(parsed.option("axis"), x.ty())?;
    let reduced = if axes.is_empty() && x.ty().rank() > 0 { x.clone() } else { rule(interp, &x, &axes)? };
    if !parsed.flag("keepdims") {
        return Ok(Value::from(reduced));
    }
    let shape: Shape = (0..x.ty().rank()).map(|i| if axes.contains(&i) { 1 } else { x.shape()[i] }).collect();
    Ok(Value::from(interp.reshape(&reduced, &shape)?))
}

fn one_tensor(parsed: &Parsed) -> Signal {
    Diagnostic::error(format!("a reduction takes one tensor, got {} arguments", parsed.positional.len()))
        .help("an axis is given as :axis 1; maximum and minimum compare two tensors")
        .into()
}

fn counted(interp: &mut Interp, x: &Tensor) -> Eval<Tensor> {
    if x.ty().dtype == DType::Bool { interp.convert(x, DType::I32) } else { Ok(x.clone()) }
}

fn not_empty<'a>(x: &'a Tensor, axes: &Shape) -> Eval<&'a Tensor> {
    if axes.iter().any(|a| x.shape()[*a] == 0) {
        return fail(format!("a tensor {} has no elements to choose from", x.ty()));
    }
    Ok(x)
}

fn mean(interp: &mut Interp, x: &Tensor, axes: &Shape) -> Eval<Tensor> {
    let x = interp.float(&Value::Tensor(x.clone()))?;
    let n: usize = axes.iter().map(|a| x.shape()[*a]).product();
    let sum = interp.op(p::ReduceSum { axes: axes.clone() }, &[&x])?;
    let count = Tensor::host(HostTensor::filled(x.ty().dtype, sum.shape(), n as f64));
    interp.op(p::Binary(p::Div), &[&sum, &count])
}

fn variance(interp: &mut Interp, x: &Tensor, axes: &Shape) -> Eval<Tensor> {
    let x = interp.float(&Value::Tensor(x.clone()))?;
    let m = mean(interp, &x, axes)?;
    let kept: Shape = (0..x.ty().rank()).map(|i| if axes.contains(&i) { 1 } else { x.shape()[i] }).collect();
    let m = interp.reshape(&m, &kept)?;
    let m = interp.broadcast_to(&m, x.shape())?;
    let centred = interp.op(p::Binary(p::Sub), &[&x, &m])?;
    let squares = interp.op(p::Binary(p::Mul), &[&centred, &centred])?;
    mean(interp, &squares, axes)
}

fn arg_reduce(interp: &mut Interp, args: &[Value], kind: p::Extreme) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    let [x] = parsed.positional.as_slice() else { return Err(one_tensor(&parsed)) };
    let mut x = interp.tensor(x)?;
    let axis = match parsed.option("axis") {
        None => {
            x = interp.reshape(&x, &[x.ty().count()])?;
            0
        }
        Some(axis) => match as_axes(Some(axis), x.ty())?.as_slice() {
            [axis] => *axis,
            _ => return fail("argmax and argmin take one axis"),
        },
    };
    not_empty(&x, &[axis].as_slice().into())?;
    Ok(Value::Tensor(interp.op(p::ArgReduce { axis, extreme: kind }, &[&x])?))
}

fn truth(interp: &mut Interp, args: &[Value], all: bool) -> Eval<Value> {
    reduce(interp, args, &|i, x, axes| {
        let x = i.convert(x, DType::Bool)?;
        if all {
            i.op(p::ReduceAnd { axes: axes.clone() }, &[&x])
        } else {
            i.op(p::ReduceOr { axes: axes.clone() }, &[&x])
        }
    })
}
