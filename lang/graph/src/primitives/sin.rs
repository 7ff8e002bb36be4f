//! `sine`: sine, of radians.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::stablehlo::quirks::{self, doubles};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data};

/// Element-wise sine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sin;

impl UnaryRule for Sin {
    const NAME: &'static str = "sin";
    const OPERATION: &'static str = "stablehlo.sine";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.sin())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        let slope = b.apply(super::Unary(super::Cos), &[x]);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype == DType::F64 {
            doubles::sine(to, false);
        } else {
            quirks::by_half_turns(false, to);
        }
    }
}
