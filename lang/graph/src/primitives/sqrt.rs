//! `sqrt`: square root; NaN below zero.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise square root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sqrt;

impl UnaryRule for Sqrt {
    const NAME: &'static str = "sqrt";
    const OPERATION: &'static str = "stablehlo.sqrt";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.sqrt())
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        let half = b.scale(t, 0.5);
        Some(b.div(half, y))
    }
}
