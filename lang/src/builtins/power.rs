//! Powers.

use super::arithmetic::{MUL, divide, numbers, two};
use super::division::constant;
use crate::eval::{Eval, Interp};
use crate::program::Value;
use sheaf_graph::primitives as p;

/// `x^y`. A known integer exponent multiplies (as `jax.lax.integer_pow`), so that its derivative needs no logarithm.
pub(super) fn power(interp: &mut Interp, x: &Value, y: &Value) -> Eval<Value> {
    const MAX_MULTIPLIED: u64 = 64;
    let integer = match x {
        Value::Tensor(t) => !t.ty().dtype.is_float(),
        x => !matches!(x, Value::Float(_)),
    };
    let y = match y {
        // The sign of the exponent decides if integers stay integers.
        Value::Tensor(t) if t.ty().weak && t.ty().dtype.is_integer() && (integer || !t.is_traced()) => {
            &Value::Int(t.elements("the exponent of an integer")?.element_i64(0))
        }
        y => y,
    };
    if let Value::Int(n) = y
        && if integer { *n >= 0 } else { n.unsigned_abs() <= MAX_MULTIPLIED }
    {
        let power = multiplied(interp, x, n.unsigned_abs())?;
        return if *n < 0 { divide(interp, &Value::Int(1), &power) } else { Ok(power) };
    }
    let (a, b) = numbers(interp, x, y)?;
    let (mut a, mut b) = interp.broadcast(&a, &b)?;
    if matches!(y, Value::Int(n) if *n < 0) {
        (a, b) = (interp.float(&Value::Tensor(a))?, interp.float(&Value::Tensor(b))?);
    }
    Ok(Value::from(interp.op(p::Binary(p::Pow), &[&a, &b])?))
}

/// `x^n` by squaring; 1 for n = 0, even of NaN.
fn multiplied(interp: &mut Interp, x: &Value, n: u64) -> Eval<Value> {
    if n == 0 {
        let like = two(interp, x, &Value::Int(1), &MUL)?;
        let like = interp.tensor(&like)?;
        return Ok(Value::from(constant(&like, 1.0)));
    }
    let mut result: Option<Value> = None;
    let mut square = x.clone();
    let mut rest = n;
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
    Ok(result.expect("n is not zero"))
}
