//! `ceil`: the next whole number above.

use super::UnaryRule;
use super::rounding::Rounding as _;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise rounding up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ceil;

impl UnaryRule for Ceil {
    const NAME: &'static str = "ceil";
    const OPERATION: &'static str = "stablehlo.ceil";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.ceil_inline())
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
