//! Arithmetic and element-wise mathematics.

use super::{Builtin, MANY};
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::primitives as p;
use crate::primitives::Primitive;
use crate::tensor::{DType, Kind};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("+", "(+ a b ...)", "the sum, element by element", (0, MANY), |i, a| fold(i, a, &ADD)),
    Builtin::new("-", "(- a b ...)", "the difference; of one argument, its negative", (1, MANY), |i, a| {
        match a {
            [x] => negate(i, x),
            _ => fold(i, a, &SUB),
        }
    }),
    Builtin::new("*", "(* a b ...)", "the product, element by element", (0, MANY), |i, a| fold(i, a, &MUL)),
    Builtin::new("/", "(/ a b ...)", "the quotient; integers become f32", (1, MANY), |i, a| match a {
        [x] => divide(i, &Value::Int(1), x),
        [first, rest @ ..] => rest.iter().try_fold(first.clone(), |acc, x| divide(i, &acc, x)),
        [] => unreachable!("the arity is checked"),
    }),
    Builtin::new("//", "(// a b)", "the quotient rounded down", (2, 2), |i, a| floor_divide(i, &a[0], &a[1])),
    Builtin::new("mod", "(mod a b)", "the remainder, with the sign of the divisor", (2, 2), |i, a| {
        modulo(i, &a[0], &a[1])
    }),
    Builtin::new("%", "(% a b)", "the remainder, with the sign of the divisor", (2, 2), |i, a| {
        modulo(i, &a[0], &a[1])
    }),
    Builtin::new("**", "(** x y)", "x to the power y", (2, 2), |i, a| power(i, &a[0], &a[1])),
    Builtin::new("neg", "(neg x)", "the negative", (1, 1), |i, a| negate(i, &a[0])),
    Builtin::new("abs", "(abs x)", "the absolute value", (1, 1), |i, a| keep(i, &a[0], p::Unary(p::Abs))),
    Builtin::new("sign", "(sign x)", "-1, 0 or 1", (1, 1), |i, a| keep(i, &a[0], p::Unary(p::Sign))),
    Builtin::new("exp", "(exp x)", "e to the power x", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Exp))),
    Builtin::new("expm1", "(expm1 x)", "e^x - 1, exact near 0", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Expm1))
    }),
    Builtin::new("log", "(log x)", "the natural logarithm", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Log))),
    Builtin::new("log1p", "(log1p x)", "log (1 + x), exact near 0", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Log1p))
    }),
    Builtin::new("sqrt", "(sqrt x)", "the square root", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Sqrt))),
    Builtin::new("rsqrt", "(rsqrt x)", "1 / sqrt x", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Rsqrt))),
    Builtin::new("sin", "(sin x)", "the sine of x radians", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Sin))),
    Builtin::new("cos", "(cos x)", "the cosine of x radians", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Cos))
    }),
    Builtin::new("tanh", "(tanh x)", "the hyperbolic tangent", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Tanh))
    }),
    Builtin::new("sigmoid", "(sigmoid x)", "1 / (1 + e^-x)", (1, 1), |i, a| {
        float(i, &a[0], p::Unary(p::Logistic))
    }),
    Builtin::new("erf", "(erf x)", "the error function", (1, 1), |i, a| float(i, &a[0], p::Unary(p::Erf))),
    Builtin::new("floor", "(floor x)", "rounded down", (1, 1), |i, a| rounding(i, &a[0], p::Unary(p::Floor))),
    Builtin::new("ceil", "(ceil x)", "rounded up", (1, 1), |i, a| rounding(i, &a[0], p::Unary(p::Ceil))),
    Builtin::new("round", "(round x)", "rounded to the nearest, ties to even", (1, 1), |i, a| {
        rounding(i, &a[0], p::Unary(p::Round))
    }),
    Builtin::new("maximum", "(maximum a b)", "the greater, element by element", (2, 2), |i, a| {
        binary(i, &a[0], &a[1], p::Binary(p::Max))
    }),
    Builtin::new("minimum", "(minimum a b)", "the smaller, element by element", (2, 2), |i, a| {
        binary(i, &a[0], &a[1], p::Binary(p::Min))
    }),
];

/// A variadic operation: its primitive, its rules for two plain numbers, its neutral element.
struct Fold {
    tensors: fn(&mut Interp, &Tensor, &Tensor) -> Eval<Tensor>,
    ints: fn(i64, i64) -> i64,
    floats: fn(f32, f32) -> f32,
    neutral: i64,
}

const ADD: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Add), &[a, b]),
    ints: i64::wrapping_add,
    floats: |a, b| a + b,
    neutral: 0,
};
const SUB: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Sub), &[a, b]),
    ints: i64::wrapping_sub,
    floats: |a, b| a - b,
    neutral: 0,
};
const MUL: Fold = Fold {
    tensors: |i, a, b| i.op(p::Binary(p::Mul), &[a, b]),
    ints: i64::wrapping_mul,
    floats: |a, b| a * b,
    neutral: 1,
};

fn fold(interp: &mut Interp, args: &[Value], op: &Fold) -> Eval<Value> {
    let Some((first, rest)) = args.split_first() else { return Ok(Value::Int(op.neutral)) };
    if rest.is_empty() {
        return interp.tensor(first).map(Value::from);
    }
    rest.iter().try_fold(first.clone(), |acc, x| two(interp, &acc, x, op))
}

fn two(interp: &mut Interp, a: &Value, b: &Value, op: &Fold) -> Eval<Value> {
    Ok(match (a, b) {
        (Value::Int(a), Value::Int(b)) => Value::Int((op.ints)(*a, *b)),
        (Value::Float(a), Value::Float(b)) => Value::Float((op.floats)(*a as f32, *b as f32) as f64),
        (Value::Int(a), Value::Float(b)) => Value::Float((op.floats)(*a as f32, *b as f32) as f64),
        (Value::Float(a), Value::Int(b)) => Value::Float((op.floats)(*a as f32, *b as f32) as f64),
        _ => {
            let (a, b) = numbers(interp, a, b)?;
            let (a, b) = interp.broadcast(&a, &b)?;
            Value::from((op.tensors)(interp, &a, &b)?)
        }
    })
}

/// Two operands; booleans count as integers.
fn numbers(interp: &mut Interp, a: &Value, b: &Value) -> Eval<(Tensor, Tensor)> {
    let (a, b) = (interp.tensor(a)?, interp.tensor(b)?);
    if a.ty().dtype == DType::Bool && b.ty().dtype == DType::Bool {
        return Ok((interp.convert(&a, DType::I32)?, interp.convert(&b, DType::I32)?));
    }
    Ok((a, b))
}

fn negate(interp: &mut Interp, x: &Value) -> Eval<Value> {
    match x {
        Value::Int(n) => Ok(Value::Int(n.wrapping_neg())),
        Value::Float(v) => Ok(Value::Float(-v)),
        x => keep(interp, x, p::Unary(p::Neg)),
    }
}

/// A function that keeps the dtype.
fn keep(interp: &mut Interp, x: &Value, op: impl Primitive) -> Eval<Value> {
    let t = interp.tensor(x)?;
    let t = if t.ty().dtype == DType::Bool { interp.convert(&t, DType::I32)? } else { t };
    Ok(Value::from(interp.op(op, &[&t])?))
}

/// A function that turns integers into `f32`.
fn float(interp: &mut Interp, x: &Value, op: impl Primitive) -> Eval<Value> {
    let t = interp.float(x)?;
    Ok(Value::from(interp.op(op, &[&t])?))
}

fn rounding(interp: &mut Interp, x: &Value, op: impl Primitive) -> Eval<Value> {
    let t = interp.tensor(x)?;
    if t.ty().dtype.kind() == Kind::Integer {
        return Ok(Value::from(t));
    }
    float(interp, x, op)
}

fn binary(interp: &mut Interp, a: &Value, b: &Value, op: impl Primitive) -> Eval<Value> {
    let (a, b) = (interp.tensor(a)?, interp.tensor(b)?);
    let (a, b) = interp.broadcast(&a, &b)?;
    Ok(Value::from(interp.op(op, &[&a, &b])?))
}

fn divide(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    let number = |v: &Value| match v {
        Value::Int(n) => Some(*n as f32),
        Value::Float(x) => Some(*x as f32),
        _ => None,
    };
    if let (Some(a), Some(b)) = (number(a), number(b)) {
        return Ok(Value::Float((a / b) as f64));
    }
    let (mut x, mut y) = (interp.tensor(a)?, interp.tensor(b)?);
    if !x.ty().dtype.is_float() && !y.ty().dtype.is_float() {
        (x, y) = (interp.float(a)?, interp.float(b)?);
    }
    let (x, y) = interp.broadcast(&x, &y)?;
    Ok(Value::from(interp.op(p::Binary(p::Div), &[&x, &y])?))
}

/// `floor(a / b)`; for integers from the truncated quotient, one less where signs differ and a rest remains.
fn floor_divide(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        if *b == 0 {
            return fail("integer division by zero");
        }
        return Ok(Value::Int(
            a.wrapping_div(*b) - i64::from(a.wrapping_rem(*b) != 0 && (*a < 0) != (*b < 0)),
        ));
    }
    let (x, y) = numbers(interp, a, b)?;
    let (x, y) = interp.broadcast(&x, &y)?;
    let quotient = interp.op(p::Binary(p::Div), &[&x, &y])?;
    if x.ty().dtype.is_float() {
        return Ok(Value::from(interp.op(p::Unary(p::Floor), &[&quotient])?));
    }
    let less = needs_adjusting(interp, &x, &y)?;
    let one = interp.op(p::Convert { dtype: x.ty().dtype, weak: x.ty().weak }, &[&less])?;
    Ok(Value::from(interp.op(p::Binary(p::Sub), &[&quotient, &one])?))
}

/// Whether the truncated remainder is not zero and its sign is not that of the divisor.
fn needs_adjusting(interp: &mut Interp, x: &Tensor, y: &Tensor) -> Eval<Tensor> {
    let rem = interp.op(p::Binary(p::Rem), &[x, y])?;
    let zero = interp.op(p::Binary(p::Sub), &[x, x])?;
    let compare = |i: &mut Interp, d, a: &Tensor, b: &Tensor| i.op(p::Compare { direction: d }, &[a, b]);
    let left = compare(interp, p::Direction::Ne, &rem, &zero)?;
    let rem_negative = compare(interp, p::Direction::Lt, &rem, &zero)?;
    let divisor_negative = compare(interp, p::Direction::Lt, y, &zero)?;
    let differ = compare(interp, p::Direction::Ne, &rem_negative, &divisor_negative)?;
    interp.op(p::Binary(p::And), &[&left, &differ])
}

fn modulo(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        if *b == 0 {
            return fail("remainder by zero");
        }
        let rem = a.wrapping_rem(*b);
        return Ok(Value::Int(if rem != 0 && (rem < 0) != (*b < 0) { rem + b } else { rem }));
    }
    let (x, y) = numbers(interp, a, b)?;
    let (x, y) = interp.broadcast(&x, &y)?;
    let rem = interp.op(p::Binary(p::Rem), &[&x, &y])?;
    let adjust = needs_adjusting(interp, &x, &y)?;
    let moved = interp.op(p::Binary(p::Add), &[&rem, &y])?;
    Ok(Value::from(interp.op(p::Select, &[&adjust, &moved, &rem])?))
}

/// A known whole exponent multiplies (as `jax.lax.integer_pow`), so that its derivative needs no logarithm.
fn power(interp: &mut Interp, x: &Value, y: &Value) -> Eval<Value> {
    const MOST_MULTIPLIED: i64 = 64;
    let integer = match x {
        Value::Tensor(t) => !t.ty().dtype.is_float(),
        x => !matches!(x, Value::Float(_)),
    };
    let y = match y {
        // The sign of the exponent decides whether integers stay integers.
        Value::Tensor(t) if t.ty().weak && t.ty().dtype.is_integer() && (integer || !t.is_traced()) => {
            &Value::Int(t.elements("the exponent of an integer")?.element_i64(0))
        }
        y => y,
    };
    if let Value::Int(n) = y
        && if integer { *n >= 0 } else { n.abs() <= MOST_MULTIPLIED }
    {
        if *n == 0 {
            let zero = two(interp, x, &Value::Int(0), &MUL)?;
            return two(interp, &zero, &Value::Int(1), &ADD);
        }
        let mut result: Option<Value> = None;
        let mut square = x.clone();
        let mut rest = n.unsigned_abs();
        while rest > 0 {
            if rest % 2 == 1 {
                result = Some(match result {
                    Some(r) => two(interp, &r, &square, &MUL)?,
                    None => square.clone(),
                });
            }
            rest /= 2;
            if rest > 0 {
                square = two(interp, &square, &square, &MUL)?;
            }
        }
        let result = result.expect("n is not zero");
        return if *n < 0 { divide(interp, &Value::Int(1), &result) } else { Ok(result) };
    }
    let (a, b) = (interp.tensor(x)?, interp.tensor(y)?);
    let (a, b) = interp.broadcast(&a, &b)?;
    if a.ty().dtype.is_float() {
        return Ok(Value::from(interp.op(p::Binary(p::Pow), &[&a, &b])?));
    }
    let (a, b) = (interp.float(&Value::Tensor(a))?, interp.float(&Value::Tensor(b))?);
    Ok(Value::from(interp.op(p::Binary(p::Pow), &[&a, &b])?))
}
