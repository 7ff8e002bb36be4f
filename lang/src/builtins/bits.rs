//! Operations on the bits of integers.

use super::division::constant;
use super::operands::whole;
use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::primitives::Primitive;
use sheaf_graph::tensor::DType;
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "ash",
        "(ash x n)",
        "the integer x shifted by n bits: left, times 2^n, when n is positive; right, floor(x / 2^-n), when it is \
         negative. Bits beyond the width are lost. Whole f32 numbers count as i32",
        (2, 2),
        |i, a| shift(i, &a[0], &a[1]),
    )
    .examples("(ash 1 10) ;=> 1024\n(ash -5 -1) ;=> -3\n(ash [1 2] 3) ;=> tensor i32[2] = [8 16]"),
    Builtin::new("bit-and", "(bit-and a b ...)", "the bits set in all; of booleans, both", (2, VARIADIC), |i, a| {
        bitwise(i, a, |a, b| a & b, p::Binary(p::And))
    })
    .examples("(bit-and 12 10) ;=> 8\n(bit-and 1.5 1) ;=> error: integers"),
    Builtin::new("bit-or", "(bit-or a b ...)", "the bits set in any; of booleans, either", (2, VARIADIC), |i, a| {
        bitwise(i, a, |a, b| a | b, p::Binary(p::Or))
    })
    .examples("(bit-or 12 10) ;=> 14"),
    Builtin::new(
        "bit-xor",
        "(bit-xor a b ...)",
        "the bits set in an odd number of them; of booleans, one but not both",
        (2, VARIADIC),
        |i, a| bitwise(i, a, |a, b| a ^ b, p::Binary(p::Xor)),
    )
    .examples("(bit-xor 12 10) ;=> 6"),
];

/// A tensor of integers, or of booleans if `bool`.
fn integers(interp: &mut Interp, value: &Value, bool: bool) -> Eval<Tensor> {
    let t = interp.tensor(value)?;
    if t.ty().dtype.is_float() || (t.ty().dtype == DType::Bool && !bool) {
        return Err(Diagnostic::error(format!("bits are those of integers, not of {}", value.describe()))
            .help("a vector literal is f32 unless a dtype follows it: [1 2 3] :i32; (cast x :i32) converts")
            .into());
    }
    Ok(t)
}

/// An operand of a shift: integers, or whole `f32` numbers as integers.
fn shifted(interp: &mut Interp, value: &Value) -> Eval<Tensor> {
    let t = interp.tensor(value)?;
    if t.ty().dtype == DType::F32 {
        return whole(interp, &t, "what is shifted, and by how much,");
    }
    integers(interp, value, false)
}

fn bitwise(
    interp: &mut Interp,
    args: &[Value],
    ints: fn(i64, i64) -> i64,
    op: impl Primitive + Copy,
) -> Eval<Value> {
    args[1..].iter().try_fold(args[0].clone(), |acc, x| {
        if let (Value::Int(a), Value::Int(b)) = (&acc, x) {
            return Ok(Value::Int(ints(*a, *b)));
        }
        let (a, b) = (integers(interp, &acc, true)?, integers(interp, x, true)?);
        let (a, b) = interp.broadcast(&a, &b)?;
        Ok(Value::from(interp.op(op, &[&a, &b])?))
    })
}

fn shift(interp: &mut Interp, x: &Value, n: &Value) -> Eval<Value> {
    // Shifts beyond the maximum width are all equal; clamped, a known amount fits every dtype.
    let amount = if let Value::Int(n) = n { &Value::Int((*n).clamp(-64, 64)) } else { n };
    let (x, n) = (shifted(interp, x)?, shifted(interp, amount)?);
    let unsigned = x.ty().dtype.is_unsigned();
    if let Value::Int(n) = amount {
        let size = Value::Int(n.abs());
        let size = interp.tensor(&size)?;
        return if *n < 0 { right(interp, &x, &size, unsigned) } else { left(interp, &x, &size) };
    }
    if n.ty().dtype.is_unsigned() {
        let n = interp.op(p::Binary(p::Min), &[&n, &constant(&n, 64.0)])?;
        return left(interp, &x, &n);
    }
    let n = within_width(interp, &n)?;
    let zero = constant(&n, 0.0);
    let is_left = interp.op(p::Compare { direction: p::Direction::Ge }, &[&n, &zero])?;
    let negated = interp.op(p::Unary(p::Neg), &[&n])?;
    let (up, down) = (left(interp, &x, &n)?, right(interp, &x, &negated, unsigned)?);
    let select = super::find("where").expect("a builtin");
    select.call(interp, &[Value::Tensor(is_left), up, down])
}

/// Shift amounts clamped so that they keep their meaning in fewer bits.
fn within_width(interp: &mut Interp, n: &Tensor) -> Eval<Tensor> {
    let n = interp.op(p::Binary(p::Max), &[n, &constant(n, -64.0)])?;
    interp.op(p::Binary(p::Min), &[&n, &constant(&n, 64.0)])
}

fn left(interp: &mut Interp, x: &Tensor, n: &Tensor) -> Eval<Value> {
    shift_by(interp, x, n, p::Binary(p::ShiftLeft))
}

fn right(interp: &mut Interp, x: &Tensor, n: &Tensor, unsigned: bool) -> Eval<Value> {
    if unsigned {
        return shift_by(interp, x, n, p::Binary(p::ShiftRightLogical));
    }
    shift_by(interp, x, n, p::Binary(p::ShiftRightArithmetic))
}

/// Shifts by an amount of any integer dtype.
fn shift_by(interp: &mut Interp, x: &Tensor, n: &Tensor, op: impl Primitive) -> Eval<Value> {
    // A weak number takes the dtype of the tensor it meets.
    let x = &if x.ty().weak && !n.ty().weak { interp.convert(x, n.ty().dtype)? } else { x.clone() };
    let same = x.ty().dtype == n.ty().dtype;
    let n = if same {
        n.clone()
    } else {
        interp.op(p::Convert { dtype: x.ty().dtype, weak: n.ty().weak }, &[n])?
    };
    let (x, n) = interp.broadcast(x, &n)?;
    Ok(Value::from(interp.op(op, &[&x, &n])?))
}
