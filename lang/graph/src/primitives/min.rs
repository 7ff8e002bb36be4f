//! `minimum`: the smaller of two; NaN if either is NaN.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise minimum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Min;

impl BinaryRule for Min {
    const NAME: &'static str = "min";
    const OPERATION: &'static str = "stablehlo.minimum";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; number(a, b) => minimum(a, b))
    }

    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], out: Var, t: Var) -> Option<Var> {
        Some(super::to_winner(b, args[side], args[1 - side], out, t))
    }
}

/// The smaller of two numbers, or NaN.
pub fn minimum<T: PartialOrd + Copy>(a: T, b: T) -> T {
    if a.partial_cmp(&a).is_none() || a < b { a } else { b }
}
