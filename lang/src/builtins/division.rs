//! Integer division and modulo.

use super::arithmetic::numbers;
use super::of_scalars;
use crate::eval::{Eval, Interp};
use crate::program::{Scalar, Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::HostTensor;

/// `floor(a / b)`; integer division by 0 gives -1 (all bits set), as the primitive does.
pub(super) fn floor_divide(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    if let Some(quotient) = of_scalars(a, b, floor_divide_numbers) {
        return Ok(quotient);
    }
    let (x, y) = numbers(interp, a, b)?;
    let (x, y) = interp.broadcast(&x, &y)?;
    let quotient = interp.op(p::Binary(p::Div), &[&x, &y])?;
    if x.ty().dtype.is_unsigned() {
        return Ok(Value::Tensor(quotient));
    }
    let rem = interp.op(p::Binary(p::Rem), &[&x, &y])?;
    let one = constant(&x, 1.0);
    let adjust = needs_adjusting(interp, &rem, &y)?;
    if !x.ty().dtype.is_float() {
        let less = interp.op(p::Binary(p::Sub), &[&quotient, &one])?;
        return Ok(Value::from(interp.op(p::Select, &[&adjust, &less, &quotient])?));
    }
    // The rounded quotient may reach the next integer (1 / 0.1 is 10, but 0.1 as f32 is more than a tenth), so the
    // remainder is subtracted first, as in NumPy; the rest is an integer up to rounding.
    let whole = interp.op(p::Binary(p::Sub), &[&x, &rem])?;
    let exact = interp.op(p::Binary(p::Div), &[&whole, &y])?;
    let less = interp.op(p::Binary(p::Sub), &[&exact, &one])?;
    let exact = interp.op(p::Select, &[&adjust, &less, &exact])?;
    let rounded = interp.op(p::Unary(p::Round), &[&exact])?;
    let by_zero = interp.op(p::Compare { direction: p::Direction::Eq }, &[&y, &constant(&y, 0.0)])?;
    Ok(Value::from(interp.op(p::Select, &[&by_zero, &quotient, &rounded])?))
}

/// [`floor_divide`] of two integers.
pub(super) fn floor_divide_numbers(a: Scalar, b: Scalar) -> Option<Scalar> {
    let (Scalar::Int(a), Scalar::Int(b)) = (a, b) else { return None };
    let adjust = i64::from(a.checked_rem(b).is_some_and(|rem| rem.signum() * b.signum() < 0));
    Some(Scalar::Int(if b == 0 { -1 } else { a.wrapping_div(b) - adjust }))
}

/// `a - b floor(a / b)`, with the sign of `b`; an integer modulo 0 is itself.
pub(super) fn modulo(interp: &mut Interp, a: &Value, b: &Value) -> Eval<Value> {
    if let Some(rem) = of_scalars(a, b, modulo_numbers) {
        return Ok(rem);
    }
    let (x, y) = numbers(interp, a, b)?;
    let (x, y) = interp.broadcast(&x, &y)?;
    let rem = interp.op(p::Binary(p::Rem), &[&x, &y])?;
    if x.ty().dtype.is_unsigned() {
        return Ok(Value::Tensor(rem));
    }
    let adjust = needs_adjusting(interp, &rem, &y)?;
    // Adding 0 turns the -0 of -4.0 % 2.0 into 0.
    let addend = interp.op(p::Select, &[&adjust, &y, &constant(&y, 0.0)])?;
    Ok(Value::from(interp.op(p::Binary(p::Add), &[&rem, &addend])?))
}

/// [`modulo`] of two integers.
pub(super) fn modulo_numbers(a: Scalar, b: Scalar) -> Option<Scalar> {
    let (Scalar::Int(a), Scalar::Int(b)) = (a, b) else { return None };
    let rem = if b == 0 { a } else { a.wrapping_rem(b) };
    Some(Scalar::Int(if rem.signum() * b.signum() < 0 { rem + b } else { rem }))
}

/// True if the truncated remainder and the divisor have different signs.
fn needs_adjusting(interp: &mut Interp, rem: &Tensor, divisor: &Tensor) -> Eval<Tensor> {
    let signs = [interp.op(p::Unary(p::Sign), &[rem])?, interp.op(p::Unary(p::Sign), &[divisor])?];
    let product = interp.op(p::Binary(p::Mul), &[&signs[0], &signs[1]])?;
    interp.op(p::Compare { direction: p::Direction::Lt }, &[&product, &constant(&product, 0.0)])
}

/// `x` broadcast to the type of `like`.
pub(super) fn constant(like: &Tensor, x: f64) -> Tensor {
    let host = HostTensor::filled(like.ty().dtype, like.shape(), x);
    if like.ty().weak { Tensor::weak(host) } else { Tensor::host(host) }
}
