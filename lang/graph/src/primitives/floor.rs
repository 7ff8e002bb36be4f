//! `floor`: the next whole number below.

use super::UnaryRule;
use super::rounding::Rounding as _;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise rounding down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Floor;

impl UnaryRule for Floor {
    const NAME: &'static str = "floor";
    const OPERATION: &'static str = "stablehlo.floor";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.floor_inline())
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
