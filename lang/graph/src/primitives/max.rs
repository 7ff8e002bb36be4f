//! `maximum`: the larger of two; NaN if either is NaN.

use super::{BinaryRule, Direction};
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise maximum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Max;

impl BinaryRule for Max {
    const NAME: &'static str = "max";
    const OPERATION: &'static str = "stablehlo.maximum";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; number(a, b) => maximum(a, b))
    }

    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], out: Var, t: Var) -> Option<Var> {
        Some(to_winner(b, args[side], args[1 - side], out, t))
    }
}

/// The larger of two numbers, or NaN.
pub fn maximum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if a.partial_cmp(&a).is_none() || a > b { a } else { b }
}

/// `t` where `x` alone was chosen as `out`, half of it where both were: the derivative of `max` and `min`.
pub fn to_winner(b: &mut Builder, x: Var, other: Var, out: Var, t: Var) -> Var {
    let (chosen, tied) = (b.compare(Direction::Eq, x, out), b.compare(Direction::Eq, other, out));
    let half = b.scale(t, 0.5);
    let share = b.select(tied, half, t);
    let zero = b.full_like(t, 0.0);
    b.select(chosen, share, zero)
}
