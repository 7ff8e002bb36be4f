//! `log`: natural logarithm; NaN below zero.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise natural logarithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Log;

impl UnaryRule for Log {
    const NAME: &'static str = "log";
    const OPERATION: &'static str = "stablehlo.log";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.ln())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        Some(b.div(t, x))
    }
}
