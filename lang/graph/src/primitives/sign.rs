//! `sign`: -1, 0 or 1; zeros keep their sign and NaN stays NaN.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise sign.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sign;

impl UnaryRule for Sign {
    const NAME: &'static str = "sign";
    const OPERATION: &'static str = "stablehlo.sign";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_signed()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => if a == 0.0 || a.is_nan() { a } else { a.signum() }, signed(a) => a.signum())
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
