//! `exponential_minus_one`: `e^x - 1`, exact for small `x`.

use super::{UnaryRule, elementary};
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
        map_data!(x; single(a) => elementary::exp_m1(a), F64(a) => a.exp_m1())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        // y + 1 has no digits of e^x where that is small.
        let slope = b.apply(super::Unary(super::Exp), &[x]);
        Some(b.mul(t, slope))
    }
}
