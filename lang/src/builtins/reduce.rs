//! Reductions and cumulative operations.

use super::operands::as_axes;
use super::{Builtin, Parsed, VARIADIC, parse};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("sum", "(sum x :axis a :keepdims)", "the sum, also of several numbers; booleans count in i32, integers of 8 and 16 bits in 32, as in JAX", (1, VARIADIC), |i, a| {
        of_several(i, a, Several::Sum, &|i, x, axes| {
            let x = widened(i, x)?;
            i.op(p::ReduceSum { axes: axes.clone() }, &[&x])
        })
    })
    .examples("(sum [1 2 3]) ;=> 6.0\n(sum 1 2 3) ;=> 6\n(sum [[1 2] [3 4]] :axis 0) ;=> [4 6]\n(sum [true true false]) ;=> 2\n(sum [200 100] :u8) ;=> 300"),
    Builtin::new("product", "(product x :axis a :keepdims)", "the product, also of several numbers; booleans count in i32, integers of 8 and 16 bits in 32, as in JAX", (1, VARIADIC), |i, a| {
        of_several(i, a, Several::Product, &|i, x, axes| {
            let x = widened(i, x)?;
            i.op(p::ReduceProd { axes: axes.clone() }, &[&x])
        })
    })
    .examples("(product [2 3 4]) ;=> 24.0\n(product [[1 2] [3 4]] :axis 1) ;=> [2 12]"),
    Builtin::new("mean", "(mean x :axis a :keepdims)", "the mean; f32 of integers and booleans", (1, VARIADIC), |i, a| {
        reduce(i, a, &mean)
    })
    .examples("(mean [1 2 6]) ;=> 3.0\n(mean [[1 2] [3 4]] :axis -1) ;=> [1.5 3.5]"),
    Builtin::new(
        "var",
        "(var x :axis a :keepdims)",
        "the variance: the mean of the squared distances from the mean",
        (1, VARIADIC),
        |i, a| reduce(i, a, &variance),
    )
    .examples("(var [1 3]) ;=> 1.0\n(var [[1 3] [2 6]] :axis 1) ;=> [1 4]"),
    Builtin::new("std", "(std x :axis a :keepdims)", "the standard deviation, sqrt(var x)", (1, VARIADIC), |i, a| {
        reduce(i, a, &|i, x, axes| {
            let v = variance(i, x, axes)?;
            i.op(p::Unary(p::Sqrt), &[&v])
        })
    })
    .examples("(std [1 5]) ;=> 2.0\n(std [[1 3] [2 6]] :axis 1 :keepdims) ;=> [[1] [2]]"),
    Builtin::new(
        "norm",
        "(norm x :ord o :axis a :keepdims)",
        "the Euclidean norm of all elements or along axes, sqrt(sum x^2); with :ord that of vectors along one axis \
         (vector-norm) or of matrices along two (matrix-norm), by default all axes of x",
        (1, VARIADIC),
        norm,
    )
    .examples(
        "(norm [3 4]) ;=> 5.0\n(norm [[3 4] [6 8]] :axis 1) ;=> [5 10]\n(norm [3 -4] :ord 1) ;=> 7\n\
         (norm [[1 2] [3 4]] :ord 1) ;=> 6\n(norm (zeros '[2 2 2]) :ord 1) ;=> error: one axis or two",
    ),
    Builtin::new("max", "(max x :axis a :keepdims)", "the greatest element, or of several numbers; NaN if one is NaN", (1, VARIADIC), |i, a| {
        of_several(i, a, Several::Max, &|i, x, axes| {
            let axes = axes.clone();
            match not_empty("max", x, &axes)?.ty().dtype {
                DType::Bool => i.op(p::ReduceOr { axes }, &[x]),
                _ => i.op(p::ReduceMax { axes }, &[x]),
            }
        })
    })
    .examples("(max [3 1 2]) ;=> 3.0\n(max [[1 2] [3 0]] :axis 1) ;=> [2 3]\n(apply max '[10 52 8]) ;=> 52\n(max [1 2] [2 1]) ;=> error: maximum"),
    Builtin::new("min", "(min x :axis a :keepdims)", "the smallest element, or of several numbers; NaN if one is NaN", (1, VARIADIC), |i, a| {
        of_several(i, a, Several::Min, &|i, x, axes| {
            let axes = axes.clone();
            match not_empty("min", x, &axes)?.ty().dtype {
                DType::Bool => i.op(p::ReduceAnd { axes }, &[x]),
                _ => i.op(p::ReduceMin { axes }, &[x]),
            }
        })
    })
    .examples("(min [3 1 2]) ;=> 1.0\n(min [[1 2] [3 0]] :axis 1) ;=> [1 0]"),
    Builtin::new(
        "argmax",
        "(argmax x :axis a :keepdims)",
        "the position of the greatest element, of equals the first, of NaN if there is one; without :axis as if x had \
         one axis",
        (1, VARIADIC),
        |i, a| arg_reduce(i, a, p::Extreme::Max),
    )
    .examples("(argmax [1 5 5]) ;=> 1\n(argmax [[1 2] [3 0]] :axis 1) ;=> [1 0]\n(argmax [[1 2] [3 0]]) ;=> 2"),
    Builtin::new(
        "argmin",
        "(argmin x :axis a :keepdims)",
        "the position of the smallest element, of equals the first, of NaN if there is one; without :axis as if x had \
         one axis",
        (1, VARIADIC),
        |i, a| arg_reduce(i, a, p::Extreme::Min),
    )
    .examples("(argmin [3 1 1]) ;=> 1\n(argmin [[1 2] [3 0]] :axis 0) ;=> [0 1]"),
    Builtin::new(
        "cumsum",
        "(cumsum x :axis a)",
        "running sums along an axis; without :axis as if x had one axis. Booleans count in i32",
        (1, VARIADIC),
        |i, a| cumulative(i, a, &|i, x, axis| i.op(p::Cumsum { axis, reverse: false }, &[x])),
    )
    .examples("(cumsum [1 2 3]) ;=> [1 3 6]\n(cumsum [[1 2] [3 4]] :axis 0) ;=> [[1 2] [4 6]]"),
    Builtin::new(
        "cumprod",
        "(cumprod x :axis a)",
        "running products along an axis; without :axis as if x had one axis. Booleans count in i32",
        (1, VARIADIC),
        |i, a| cumulative(i, a, &cumulative_product),
    )
    .examples("(cumprod [1 2 3]) ;=> [1 2 6]\n(cumprod [[1 2] [3 4]] :axis 1) ;=> [[1 2] [3 12]]"),
];

/// The Euclidean norm, or with `:ord` that of the library, which is loaded for it.
fn norm(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let ordered =
        args.iter().skip(1).any(|arg| matches!(arg, Value::Keyword(name) if name.as_str() == "ord"));
    if ordered {
        let f = interp.library_value("linalg", "-ordered-norm")?;
        return interp.call(&f, args.to_vec());
    }
    reduce(interp, args, &|i, x, axes| {
        let x = i.float(&Value::Tensor(x.clone()))?;
        let squares = i.op(p::Binary(p::Mul), &[&x, &x])?;
        let sum = i.op(p::ReduceSum { axes: axes.clone() }, &[&squares])?;
        i.op(p::Unary(p::Sqrt), &[&sum])
    })
}

/// Reductions of booleans.
pub(super) const TRUTHS: &[Builtin] = &[
    Builtin::new(
        "any",
        "(any x :axis a :keepdims)",
        "whether any element holds: is true, or a number that is not 0",
        (1, VARIADIC),
        |i, a| truth(i, a, false),
    )
    .examples("(any [false true]) ;=> true\n(any [[0 1] [0 0]] :axis 1) ;=> [true false]"),
    Builtin::new(
        "all",
        "(all x :axis a :keepdims)",
        "whether all elements hold: are true, or numbers that are not 0",
        (1, VARIADIC),
        |i, a| truth(i, a, true),
    )
    .examples("(all [false true]) ;=> false\n(all [[1 1] [0 1]] :axis 1) ;=> [true false]"),
];

type Rule<'a> = &'a dyn Fn(&mut Interp, &Tensor, &Shape) -> Eval<Tensor>;

/// Reduces over the axes of the options; `:keepdims` keeps them as extents of 1.
fn reduce(interp: &mut Interp, args: &[Value], rule: Rule) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &["keepdims"])?;
    let x = interp.tensor(one_tensor(&parsed)?)?;
    let axes = as_axes(parsed.option("axis"), x.ty())?;
    let reduced = rule(interp, &x, &axes)?;
    if !parsed.flag("keepdims") {
        return Ok(Value::from(reduced));
    }
    Ok(Value::from(interp.reshape(&reduced, &kept(&x, &axes))?))
}

/// A reduction that also takes several numbers, so that `apply` can call it with the items of a list.
#[derive(Clone, Copy)]
enum Several {
    Sum,
    Product,
    Max,
    Min,
}

impl Several {
    fn of_two(self, interp: &mut Interp, a: &Tensor, b: &Tensor) -> Eval<Tensor> {
        let (mut a, mut b) = interp.promote(a, b)?;
        let truths = a.ty().dtype == DType::Bool;
        if truths && matches!(self, Several::Sum | Several::Product) {
            (a, b) = (counted(interp, &a)?, counted(interp, &b)?);
        }
        match self {
            Several::Sum => interp.op(p::Binary(p::Add), &[&a, &b]),
            Several::Product => interp.op(p::Binary(p::Mul), &[&a, &b]),
            Several::Max if truths => interp.op(p::Binary(p::Or), &[&a, &b]),
            Several::Min if truths => interp.op(p::Binary(p::And), &[&a, &b]),
            Several::Max => interp.op(p::Binary(p::Max), &[&a, &b]),
            Several::Min => interp.op(p::Binary(p::Min), &[&a, &b]),
        }
    }
}

/// [`reduce`], or the scalar reduction of several numbers.
fn of_several(interp: &mut Interp, args: &[Value], several: Several, rule: Rule) -> Eval<Value> {
    let number = |v: &Value| match v {
        Value::Tensor(t) => t.ty().rank() == 0,
        v => matches!(v, Value::Int(_) | Value::Float(_) | Value::Bool(_)),
    };
    let [first, rest @ ..] = args else { return reduce(interp, args, rule) };
    if rest.is_empty() || !args.iter().all(number) {
        return reduce(interp, args, rule);
    }
    let mut result = interp.tensor(first)?;
    for value in rest {
        let value = interp.tensor(value)?;
        result = several.of_two(interp, &result, &value)?;
    }
    Ok(Value::from(result))
}

/// The shape of `x` with extents of 1 for `axes`.
fn kept(x: &Tensor, axes: &[usize]) -> Shape {
    (0..x.ty().rank()).map(|i| if axes.contains(&i) { 1 } else { x.shape()[i] }).collect()
}

fn one_tensor<'a>(parsed: &Parsed<'a>) -> Eval<&'a Value> {
    match parsed.positional.as_slice() {
        [x] => Ok(x),
        other => {
            Err(Diagnostic::error(format!("a reduction takes one tensor, got {} arguments", other.len()))
                .help("an axis is given as :axis 1; maximum and minimum compare two tensors")
                .into())
        }
    }
}

/// Narrow integers and booleans in 32 bits, which their sum and product may need.
fn widened(interp: &mut Interp, x: &Tensor) -> Eval<Tensor> {
    match x.ty().dtype {
        DType::Bool | DType::I8 | DType::I16 => interp.convert(x, DType::I32),
        DType::U8 | DType::U16 => interp.convert(x, DType::U32),
        _ => Ok(x.clone()),
    }
}

fn counted(interp: &mut Interp, x: &Tensor) -> Eval<Tensor> {
    if x.ty().dtype == DType::Bool { interp.convert(x, DType::I32) } else { Ok(x.clone()) }
}

fn not_empty<'a>(name: &str, x: &'a Tensor, axes: &[usize]) -> Eval<&'a Tensor> {
    if axes.iter().any(|a| x.shape()[*a] == 0) {
        return fail(format!("{name} of a tensor {}: there are no elements to choose from", x.ty()));
    }
    Ok(x)
}

fn mean(interp: &mut Interp, x: &Tensor, axes: &Shape) -> Eval<Tensor> {
    in_single(interp, x, &|interp, x| plain_mean(interp, x, axes))
}

fn plain_mean(interp: &mut Interp, x: &Tensor, axes: &Shape) -> Eval<Tensor> {
    let n: usize = axes.iter().map(|a| x.shape()[*a]).product();
    let sum = interp.op(p::ReduceSum { axes: axes.clone() }, &[x])?;
    let count = Tensor::host(HostTensor::filled(x.ty().dtype, sum.shape(), n as f64));
    interp.op(p::Binary(p::Div), &[&sum, &count])
}

fn variance(interp: &mut Interp, x: &Tensor, axes: &Shape) -> Eval<Tensor> {
    in_single(interp, x, &|interp, x| {
        let m = plain_mean(interp, x, axes)?;
        let m = interp.reshape(&m, &kept(x, axes))?;
        let m = interp.broadcast_to(&m, x.shape())?;
        let centred = interp.op(p::Binary(p::Sub), &[x, &m])?;
        let squares = interp.op(p::Binary(p::Mul), &[&centred, &centred])?;
        plain_mean(interp, &squares, axes)
    })
}

/// Computes a float function of 16-bit floats in `f32` and casts back, as in JAX: the sum of a few hundred `f16`
/// numbers may overflow where their mean does not.
fn in_single(
    interp: &mut Interp,
    x: &Tensor,
    f: &dyn Fn(&mut Interp, &Tensor) -> Eval<Tensor>,
) -> Eval<Tensor> {
    let x = interp.float(&Value::Tensor(x.clone()))?;
    let dtype = x.ty().dtype;
    if !dtype.is_half() {
        return f(interp, &x);
    }
    let wide = interp.convert(&x, DType::F32)?;
    let result = f(interp, &wide)?;
    interp.convert(&result, dtype)
}

/// Tensor and single axis of a function along an axis; without `:axis` the tensor is flattened.
fn along_axis(interp: &mut Interp, parsed: &Parsed) -> Eval<(Tensor, usize)> {
    let x = interp.tensor(one_tensor(parsed)?)?;
    let x = counted(interp, &x)?;
    match parsed.option("axis").filter(|v| !matches!(v, Value::Nil)) {
        None => Ok((interp.reshape(&x, &[x.ty().count()])?, 0)),
        Some(axis) => match as_axes(Some(axis), x.ty())?.as_slice() {
            [axis] => Ok((x, *axis)),
            axes => fail(format!("expected one axis, got {}", axes.len())),
        },
    }
}

fn arg_reduce(interp: &mut Interp, args: &[Value], extreme: p::Extreme) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &["keepdims"])?;
    let (x, axis) = along_axis(interp, &parsed)?;
    let name = if extreme == p::Extreme::Max { "argmax" } else { "argmin" };
    let position = interp.op(p::ArgReduce { axis, extreme }, &[not_empty(name, &x, &[axis])?])?;
    if !parsed.flag("keepdims") {
        return Ok(Value::Tensor(position));
    }
    let flattened = parsed.option("axis").is_none_or(|v| matches!(v, Value::Nil));
    let shape = if flattened {
        let rank = interp.tensor(parsed.positional[0])?.ty().rank();
        Shape::from_elem(1, rank)
    } else {
        kept(&x, &[axis])
    };
    Ok(Value::Tensor(interp.reshape(&position, &shape)?))
}

fn cumulative(
    interp: &mut Interp,
    args: &[Value],
    rule: &dyn Fn(&mut Interp, &Tensor, usize) -> Eval<Tensor>,
) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    let (x, axis) = along_axis(interp, &parsed)?;
    Ok(Value::Tensor(rule(interp, &x, axis)?))
}

/// Hillis and Steele, "Data parallel algorithms", 1986: after step k every element holds the product of 2^k.
fn cumulative_product(interp: &mut Interp, x: &Tensor, axis: usize) -> Eval<Tensor> {
    let extent = x.shape()[axis];
    let mut product = interp.strong(x)?;
    let mut distance = 1;
    while distance < extent {
        let mut head: Shape = x.shape().into();
        head[axis] = distance;
        let ones = Tensor::host(HostTensor::filled(product.ty().dtype, head, 1.0));
        let earlier = interp.slice_axis(&product, axis, 0, (extent - distance) as i64)?;
        let factors = interp.op(p::Concatenate { axis }, &[&ones, &earlier])?;
        product = interp.op(p::Binary(p::Mul), &[&product, &factors])?;
        distance *= 2;
    }
    Ok(product)
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
