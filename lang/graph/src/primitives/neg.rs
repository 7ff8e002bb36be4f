//! `negate`: `-x`; integers wrap.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Neg;

impl UnaryRule for Neg {
    const NAME: &'static str = "neg";
    const OPERATION: &'static str = "stablehlo.negate";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => -a, integer(a) => a.wrapping_neg())
    }

    fn partial(self, b: &mut Builder, _: Var, _: Var, t: Var) -> Option<Var> {
        Some(b.neg(t))
    }
}
