//! `tanh`: hyperbolic tangent.

use super::{UnaryRule, elementary};
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::Lowering;
use crate::stablehlo::quirks::doubles;
use crate::tensor::{DType, Data};

/// Element-wise hyperbolic tangent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tanh;

impl UnaryRule for Tanh {
    const NAME: &'static str = "tanh";
    const OPERATION: &'static str = "stablehlo.tanh";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; single(a) => elementary::tanh(a), F64(a) => a.tanh())
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype == DType::F64 {
            doubles::tanh(to);
        } else {
            to.typed(Self::OPERATION, "");
        }
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        // 1 - y^2 as (1 + y)(1 - y), which keeps its precision where y is near 1 or -1.
        let product = b.mul(t, y);
        let sum = b.add(t, product);
        let one = b.full_like(y, 1.0);
        let rest = b.sub(one, y);
        Some(b.mul(sum, rest))
    }
}
