//! Algebraic identities of elementwise operations. Only those that hold for every float: `x + 0` is not `x` if `x` is
//! negative zero, and `0 * x` is not 0 if `x` is infinite.

use super::{Simplifier, one};
use crate::graph::{Op, Var, Vars};
use crate::primitives::{
    Abs, Add, And, Binary, BinaryRule, Compare, Direction, Div, Max, Min, Mul, Neg, Not, Or, Pow, Select,
    ShiftLeft, ShiftRightArithmetic, ShiftRightLogical, Sub, Unary, UnaryRule, Xor,
};
use crate::tensor::{DType, Data, HostTensor};

pub(super) fn is_binary<R: BinaryRule>(op: &Op) -> bool {
    op.is::<Binary<R>>()
}

/// The operand of the unary operation that defines a variable.
fn under<R: UnaryRule>(s: &Simplifier, var: Var) -> Option<Var> {
    s.made_by::<Unary<R>>(var).map(|(_, operands)| operands[0])
}

/// True if a tensor is uniformly this number; zeros of floats differ by their sign.
pub(super) fn is(s: &Simplifier, var: Var, number: f64) -> bool {
    s.uniform(var).is_some_and(|value| equals(value, number))
}

fn equals(value: &HostTensor, number: f64) -> bool {
    match value.data() {
        Data::F32(v) => v[0].to_bits() == (number as f32).to_bits(),
        _ => value.element_f64(0) == number,
    }
}

/// `x - 0`, `x * 1`, `x / 1`, `x ^ 1`, `x and true`, and similar.
pub(super) fn neutral(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = operands else { return None };
    let (right, either) = neutral_number(op, s.ty(*x).dtype)?;
    if is(s, *y, right) {
        return one(*x);
    }
    if either && is(s, *x, right) { one(*y) } else { None }
}

/// The right identity of an operation, and true if it is the left one as well.
fn neutral_number(op: &Op, dtype: DType) -> Option<(f64, bool)> {
    if is_binary::<Add>(op) {
        return Some((if dtype.is_float() { -0.0 } else { 0.0 }, true));
    }
    if is_binary::<Mul>(op) || is_binary::<And>(op) && dtype == DType::Bool {
        return Some((1.0, true));
    }
    if is_binary::<Div>(op) || is_binary::<Pow>(op) {
        return Some((1.0, false));
    }
    let shift = is_binary::<ShiftLeft>(op)
        || is_binary::<ShiftRightArithmetic>(op)
        || is_binary::<ShiftRightLogical>(op);
    if is_binary::<Sub>(op) || shift {
        return Some((0.0, false));
    }
    (is_binary::<Or>(op) || is_binary::<Xor>(op)).then_some((0.0, true))
}

/// The larger of `x` and `x`, `x and x`, and similar.
pub(super) fn same(_: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = operands else { return None };
    let idempotent =
        is_binary::<Max>(op) || is_binary::<Min>(op) || is_binary::<And>(op) || is_binary::<Or>(op);
    if x == y && idempotent { one(*x) } else { None }
}

/// `-(-x)`, `not not x`, `||x||` and `|-x|`.
pub(super) fn twice(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let x = *operands.first()?;
    if op.is::<Unary<Neg>>() {
        return one(under::<Neg>(s, x)?);
    }
    if op.is::<Unary<Not>>() {
        return one(under::<Not>(s, x)?);
    }
    op.downcast_ref::<Unary<Abs>>()?;
    if under::<Abs>(s, x).is_some() {
        return one(x);
    }
    let inner = under::<Neg>(s, x)?;
    one(s.record(Unary(Abs), &[inner]))
}

/// `x + -y` is `x - y`, `-x * -y` is `x * y`, `x * -1` is `-x`, and similar.
pub(super) fn signs(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = *operands else { return None };
    if is_binary::<Add>(op) {
        if let Some(y) = under::<Neg>(s, y) {
            return one(s.record(Binary(Sub), &[x, y]));
        }
        let x = under::<Neg>(s, x)?;
        return one(s.record(Binary(Sub), &[y, x]));
    }
    if is_binary::<Sub>(op) {
        let y = under::<Neg>(s, y)?;
        return one(s.record(Binary(Add), &[x, y]));
    }
    let product = is_binary::<Mul>(op);
    // An integer quotient is truncated towards zero, but the minimum integer has no negative.
    let quotient = is_binary::<Div>(op) && s.ty(x).dtype.is_float();
    if !(product || quotient) {
        return None;
    }
    if is(s, y, -1.0) {
        return one(s.record(Unary(Neg), &[x]));
    }
    if product && is(s, x, -1.0) {
        return one(s.record(Unary(Neg), &[y]));
    }
    let operands = [under::<Neg>(s, x)?, under::<Neg>(s, y)?];
    Some(s.apply(op.clone(), &operands))
}

/// A select between equal tensors, by a known or negated predicate, or of integers by their equality.
pub(super) fn choice(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    op.downcast_ref::<Select>()?;
    let [predicate, x, y] = *operands else { return None };
    if x == y || is(s, predicate, 1.0) {
        return one(x);
    }
    if is(s, predicate, 0.0) {
        return one(y);
    }
    if let Some((Compare { direction: Direction::Eq }, [a, b])) = s.made_by::<Compare>(predicate)
        && s.ty(x).dtype.is_integer()
        && ([*a, *b] == [x, y] || [*a, *b] == [y, x])
    {
        return one(y);
    }
    let predicate = under::<Not>(s, predicate)?;
    one(s.record(Select, &[predicate, y, x]))
}
