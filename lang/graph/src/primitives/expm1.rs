//! `exponential_minus_one`: `e^x - 1`, exact for small `x`.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise `e^x - 1`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expm1;

impl UnaryRule for Expm1 {
    const NAME: &'static str = "expm1";
    const OPERATION: &'static str = "stablehlo.exponential_minus_one";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.exp_m1())
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        // d(e^x - 1) = e^x dx = (y + 1) dx
        let product = b.mul(t, y);
        Some(b.add(t, product))
    }
}
