//! `abs`: absolute value; that of the least integer wraps to itself.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise absolute value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Abs;

impl UnaryRule for Abs {
    const NAME: &'static str = "abs";
    const OPERATION: &'static str = "stablehlo.abs";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_signed()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.abs(), signed(a) => a.wrapping_abs())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        // The subgradient at zero is zero.
        let sign = b.apply(super::Unary(super::Sign), &[x]);
        Some(b.mul(t, sign))
    }
}
