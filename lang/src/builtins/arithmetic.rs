//! Arithmetic and element-wise mathematics.

use super::{Builtin, VARIADIC, division, of_scalars, power};
use crate::eval::{Eval, Interp};
use crate::program::{OnNumbers, Scalar, Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Primitive;
use sheaf_graph::tensor::{DType, Kind};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("+", "(+ a b ...)", "the sum, element by element; of nothing 0", (0, VARIADIC), |i, a| {
        fold(i, a, &ADD)
    })
    .on_numbers(ADD.numbers)
    .examples("(+ 1 2 3) ;=> 6\n(+ [1 2] 10) ;=> [11 12]\n(+ [1 2] [1 2 3]) ;=> error: do not broadcast"),
    Builtin::new("-", "(- a b ...)", "the difference; of one argument its negative", (1, VARIADIC), |i, a| match a {
        [x] => negate(i, x),
        _ => fold(i, a, &SUB),
    })
    .on_numbers(SUB.numbers)
    .examples("(- 10 3 2) ;=> 5\n(- [1 2]) ;=> [-1 -2]"),
    Builtin::new("*", "(* a b ...)", "the product, element by element; of nothing 1", (0, VARIADIC), |i, a| {
        fold(i, a, &MUL)
    })
    .on_numbers(MUL.numbers)
    .examples("(* 2 3 4) ;=> 24\n(* [[1] [2]] [1 10]) ;=> [[1 10] [2 20]]"),
    Builtin::new(
        "/",
        "(/ a b ...)",
        "the quotient, element by element; integers become f32. Of one argument its reciprocal",
        (1, VARIADIC),
        |i, a| match a {
            [x] => divide(i, &Value::Int(1), x),
            [first, rest @ ..] => rest.iter().try_fold(first.clone(), |acc, x| divide(i, &acc, x)),
            [] => unreachable!("the arity is checked"),
        },
    )
    .on_numbers(divide_numbers)
    .examples("(/ 7 2) ;=> 3.5\n(/ [2 4] 2) ;=> [1 2]\n(/ 1 0) ;=> (exp 1000)"),
    Builtin::new(
        "//",
        "(// a b)",
        "the quotient rounded down, element by element; an integer by zero gives -1 (all bits set)",
        (2, 2),
        |i, a| division::floor_divide(i, &a[0], &a[1]),
    )
    .on_numbers(division::floor_divide_numbers)
    .examples("(// 7 2) ;=> 3\n(// -7 2) ;=> -4\n(// 7.5 2) ;=> 3.0"),
    Builtin::new("mod", "(mod a b)", MODULO, (2, 2), |i, a| division::modulo(i, &a[0], &a[1]))
        .on_numbers(division::modulo_numbers)
        .examples("(mod 7 3) ;=> 1\n(mod -7 3) ;=> 2\n(mod [5.5 -5.5] 2) ;=> [1.5 0.5]"),
    Builtin::new("%", "(% a b)", MODULO, (2, 2), |i, a| division::modulo(i, &a[0], &a[1]))
        .on_numbers(division::modulo_numbers)
        .examples("(% 7 -3) ;=> -2\n(% 7 0) ;=> 7"),
    Builtin::new(
        "**",
        "(** x y)",
        "x to the power y, element by element. A known whole exponent multiplies, so that integers stay integers; \
         a negative one gives a fraction",
        (2, 2),
        |i, a| power::power(i, &a[0], &a[1]),
    )
    .examples("(** 2 10) ;=> 1024\n(** 2 -1) ;=> 0.5\n(** [1 2 3] 2) ;=> [1 4 9]"),
    Builtin::new("neg", "(neg x)", "the negative", (1, 1), |i, a| negate(i, &a[0]))
        .examples("(neg 3) ;=> -3\n(neg [1 -2]) ;=> [-1 2]"),
    Builtin::new("abs", "(abs x)", "the absolute value", (1, 1), |i, a| magnitude(i, &a[0]))
        .examples("(abs -3) ;=> 3\n(abs [1.5 -2]) ;=> [1.5 2]"),
    Builtin::new("sign", "(sign x)", "-1, 0 or 1: the sign of x; NaN of NaN", (1, 1), |i, a| sign(i, &a[0]))
        .examples("(sign -3) ;=> -1\n(sign [2.5 0]) ;=> [1 0]"),
    Builtin::new("exp", "(exp x)", "e to the power x", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Exp)))
        .examples("(exp 0) ;=> 1.0\n(exp [1 2]) ;=> [2.7182817 7.389056]"),
    Builtin::new("expm1", "(expm1 x)", "e^x - 1, exact near 0", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Expm1))
    })
    .examples("(expm1 0) ;=> 0.0\n(expm1 1) ;=> 1.7182817"),
    Builtin::new("log", "(log x)", "the natural logarithm", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Log)))
        .examples("(log 1) ;=> 0.0\n(log (exp 2)) ;=> 2.0"),
    Builtin::new("log1p", "(log1p x)", "log(1 + x), exact near 0", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Log1p))
    })
    .examples("(log1p 0) ;=> 0.0\n(log1p 1e-8) ;=> 1e-8"),
    Builtin::new("sqrt", "(sqrt x)", "the square root; NaN of negative numbers", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Sqrt))
    })
    .examples("(sqrt 4) ;=> 2.0\n(sqrt [1 2]) ;=> [1 1.4142135]"),
    Builtin::new("rsqrt", "(rsqrt x)", "1 / sqrt(x)", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Rsqrt)))
        .examples("(rsqrt 4) ;=> 0.5"),
    Builtin::new("sin", "(sin x)", "the sine of x radians", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Sin)))
        .examples("(sin 0) ;=> 0.0\n(sin [1 2]) ;=> [0.841471 0.9092974]"),
    Builtin::new("cos", "(cos x)", "the cosine of x radians", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Cos))
    })
    .examples("(cos 0) ;=> 1.0\n(cos [1 2]) ;=> [0.5403023 -0.41614684]"),
    Builtin::new(
        "atan2",
        "(atan2 y x)",
        "the angle of the point (x, y), in radians of -pi to pi; 0 at the origin",
        (2, 2),
        |i, a| {
            let (y, x) = i.tensors(&a[0], &a[1])?;
            let (y, x) = (i.float(&Value::Tensor(y))?, i.float(&Value::Tensor(x))?);
            let (y, x) = i.broadcast(&y, &x)?;
            Ok(Value::from(i.op(p::Binary(p::Atan2), &[&y, &x])?))
        },
    )
    .examples("(atan2 1 1) ;=> 0.7853982\n(atan2 [0 1] [-1 0]) ;=> [3.1415927 1.5707964]"),
    Builtin::new("tanh", "(tanh x)", "the hyperbolic tangent", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Tanh))
    })
    .examples("(tanh 0) ;=> 0.0\n(tanh [-100 1]) ;=> [-1 0.7615942]"),
    Builtin::new("erf", "(erf x)", "the error function, 2/sqrt(pi) times the integral of e^-t^2 from 0 to x", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Erf))
    })
    .examples("(erf 0) ;=> 0.0\n(erf 1) ;=> 0.8427008"),
    Builtin::new("-erfc", "(-erfc x)", "1 - erf(x), with its digits where erf is near 1", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Erfc))
    }),
    Builtin::new("floor", "(floor x)", "the greatest whole number not above x; integers stay", (1, 1), |i, a| {
        rounding(i, &a[0], p::Unary(p::Floor))
    })
    .examples("(floor [1.5 -1.5]) ;=> [1 -2]\n(floor 3) ;=> 3"),
    Builtin::new("ceil", "(ceil x)", "the least whole number not below x; integers stay", (1, 1), |i, a| {
        rounding(i, &a[0], p::Unary(p::Ceil))
    })
    .examples("(ceil [1.5 -1.5]) ;=> [2 -1]"),
    Builtin::new(
        "round",
        "(round x)",
        "the nearest whole number, of two the even one; integers stay",
        (1, 1),
        |i, a| rounding(i, &a[0], p::Unary(p::Round)),
    )
    .examples("(round [0.5 1.5 2.5 2.6]) ;=> [0 2 2 3]"),
    Builtin::new("maximum", "(maximum a b)", "the greater of two, element by element; NaN beside NaN", (2, 2), |i, a| {
        extreme(i, &a[0], &a[1], p::Binary(p::Max), p::Binary(p::Or))
    })
    .examples("(maximum 1 2.5) ;=> 2.5\n(maximum [-1 2] 0) ;=> [0 2]"),
    Builtin::new("minimum", "(minimum a b)", "the smaller of two, element by element; NaN beside NaN", (2, 2), |i, a| {
        extreme(i, &a[0], &a[1], p::Binary(p::Min), p::Binary(p::And))
    })
    .examples("(minimum 1 2.5) ;=> 1.0\n(minimum [-1 2] 0) ;=> [-1 0]"),
    Builtin::new("-float", "(-float x)", "integers and booleans as f32, floats as they are", (1, 1), |i, a| {
        i.float(&a[0]).map(Value::from)
    }),
];

/// Activations that need a primitive of their own; the others are written in Sheaf.
pub(super) const ACTIVATIONS: &[Builtin] =
    &[Builtin::new("sigmoid", "(sigmoid x)", "1 / (1 + e^-x), element by element", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Logistic))
    })
    .examples("(sigmoid 0) ;=> 0.5\n(sigmoid [-1000 2]) ;=> [0 0.880797]")];

const MODULO: &str = "the remainder of floor division, with the sign of the divisor, element by element; a modulo 0 is a for integers";

/// A variadic operation: its primitive, its rule for two scalars, its neutral element.
pub(super) struct Fold {
    tensors: fn(&mut Interp, &Tensor, &Tensor) -> Eval<Tensor>,
    numbers: OnNumbers,
    neutral: i64,
}

pub(super) const ADD: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Add), &[a, b]),
    numbers: |a, b| on_numbers(a, b, i64::wrapping_add, |a, b| a + b),
    neutral: 0,
};
const SUB: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Sub), &[a, b]),
    numbers: |a, b| on_numbers(a, b, i64::wrapping_sub, |a, b| a - b),
    neutral: 0,
};
pub(super) const MUL: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Mul), &[a, b]),
    numbers: |a, b| on_numbers(a, b, i64::wrapping_mul, |a, b| a * b),
    neutral: 1,
};

/// Integer result for two integers; any other two numbers give a float rounded to `f32`.
#[inline]
fn on_numbers(
    a: Scalar,
    b: Scalar,
    ints: impl Fn(i64, i64) -> i64,
    floats: impl Fn(f32, f32) -> f32,
) -> Option<Scalar> {
    match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => Some(Scalar::Int(ints(a, b))),
        (a, b) => Some(Scalar::from(floats(a.single()?, b.single()?) as f64)),
    }
}

fn fold(interp: &mut Interp, args: &[Value], op: &Fold) -> Eval<Value> {
    if let [a, b] = args {
        return two(interp, a, b, op);
    }
    let Some((first, rest)) = args.split_first() else { return Ok(Value::Int(op.neutral)) };
    if rest.is_empty() {
        return keep(interp, first).map(Value::from);
    }
    rest.iter().try_fold(first.clone(), |acc, x| two(interp, &acc, x, op))
}

pub(super) fn two(interp: &mut Interp, a: &Value, b: &Value, op: &Fold) -> Eval<Value> {
    if let Some(number) = of_scalars(a, b, op.numbers) {
        return Ok(number);
    }
    let (a, b) = numbers(interp, a, b)?;
    let (a, b) = interp.broadcast(&a, &b)?;
    Ok(Value::from((op.tensors)(interp, &a, &b)?))
}

/// Both values as operands; booleans count as integers.
pub(super) fn numbers(interp: &mut Interp, a: &Value, b: &Value) -> Eval<(Tensor, Tensor)> {
    let (a, b) = interp.tensors(a, b)?;
    if a.ty().dtype == DType::Bool && b.ty().dtype == DType::Bool {
        return Ok((interp.convert(&a, DType::I32)?, interp.convert(&b, DType::I32)?));
    }
    Ok((a, b))
}

fn negate(interp: &mut Interp, x: &Value) -> Eval<Value> {
    match x {
        Value::Int(n) => Ok(Value::Int(n.wrapping_neg())),
        Value::Float(v) => Ok(Value::Float(-v)),
        x => {
            let t = keep(interp, x)?;
            Ok(Value::from(interp.op(p::Unary(p::Neg), &[&t])?))
        }
    }
}

/// The operand of a function that keeps the dtype; booleans count as integers.
fn keep(interp: &mut Interp, x: &Value) -> Eval<Tensor> {
    let t = interp.tensor(x)?;
    if t.ty().dtype == DType::Bool { interp.convert(&t, DType::I32) } else { Ok(t) }
}

fn magnitude(interp: &mut Interp, x: &Value) -> Eval<Value> {
    let t = keep(interp, x)?;
    if t.ty().dtype.is_unsigned() {
        return Ok(Value::Tensor(t));
    }
    Ok(Value::from(interp.op(p::Unary(p::Abs), &[&t])?))
}

fn sign(interp: &mut Interp, x: &Value) -> Eval<Value> {
    let t = keep(interp, x)?;
    if t.ty().dtype.is_unsigned() {
        let positive = interp.convert(&t, DType::Bool)?;
        return Ok(Value::Tensor(interp.convert(&positive, t.ty().dtype)?));
    }
    Ok(Value::from(interp.op(p::Unary(p::Sign), &[&t])?))
}

/// A function that turns integers into `f32`.
fn float(interp: &mut Interp, x: &Value, op: impl Primitive) -> Eval<Value> {
    let t = interp.float(x)?;
    Ok(Value::from(interp.op(op, &[&t])?))
}

fn rounding(interp: &mut Interp, x: &Value, op: impl Primitive) -> Eval<Value> {
    let t = keep(interp, x)?;
    if t.ty().dtype.kind() == Kind::Integer {
        return Ok(Value::from(t));
    }
    Ok(Value::from(interp.op(op, &[&t])?))
}

/// The greater or smaller of two, with an operation for booleans.
fn extreme(
    interp: &mut Interp,
    a: &Value,
    b: &Value,
    numbers: impl Primitive,
    truths: impl Primitive,
) -> Eval<Value> {
    let (a, b) = interp.tensors(a, b)?;
    let (a, b) = interp.broadcast(&a, &b)?;
    let result = if a.ty().dtype == DType::Bool {
        interp.op(truths, &[&a, &b])?
    } else {
        interp.op(numbers, &[&a, &b])?
    };
    Ok(Value::from(result))
}

fn divide_numbers(a: Scalar, b: Scalar) -> Option<Scalar> {
    Some(Scalar::from((a.single()? / b.single()?) as f64))
}

pub(super) fn divide(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    if let Some(quotient) = of_scalars(a, b, divide_numbers) {
        return Ok(quotient);
    }
    let (mut x, mut y) = interp.tensors(a, b)?;
    if !x.ty().dtype.is_float() && !y.ty().dtype.is_float() {
        (x, y) = (interp.float(a)?, interp.float(b)?);
    }
    let (x, y) = interp.broadcast(&x, &y)?;
    Ok(Value::from(interp.op(p::Binary(p::Div), &[&x, &y])?))
}
