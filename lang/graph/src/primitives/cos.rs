//! `cosine`: cosine, of radians.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::quirks::{self, doubles};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};

/// Element-wise cosine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cos;

impl UnaryRule for Cos {
    const NAME: &'static str = "cos";
    const OPERATION: &'static str = "stablehlo.cosine";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.cos())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        let sine = b.apply(super::Unary(super::Sin), &[x]);
        let product = b.mul(t, sine);
        Some(b.neg(product))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype == DType::F64 {
            doubles::sine(to, true);
        } else {
            quirks::by_half_turns(true, to);
        }
    }
}
