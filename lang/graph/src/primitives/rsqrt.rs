//! `rsqrt`: `1 / sqrt(x)`.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise reciprocal square root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rsqrt;

impl UnaryRule for Rsqrt {
    const NAME: &'static str = "rsqrt";
    const OPERATION: &'static str = "stablehlo.rsqrt";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => 1.0 / a.sqrt())
    }

    fn partial(self, b: &mut Builder, x: Var, y: Var, t: Var) -> Option<Var> {
        // d(x^(-1/2)) = -1/2 x^(-3/2) dx = -1/2 (y / x) dx
        let half = b.scale(t, -0.5);
        let quotient = b.div(y, x);
        Some(b.mul(half, quotient))
    }
}
