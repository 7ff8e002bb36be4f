//! `round_nearest_even`: the nearest whole number; halves go to the even one.

use super::UnaryRule;
use super::rounding::Rounding as _;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Round;

impl UnaryRule for Round {
    const NAME: &'static str = "round";
    const OPERATION: &'static str = "stablehlo.round_nearest_even";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.round_inline())
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
