//! `sine`: sine, of radians.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise sine.
#[derive(Clone, Copy, Debug)]
pub struct Sin;

impl UnaryRule for Sin {
    const NAME: &'static str = "sin";
    const OPERATION: &'static str = "stablehlo.sine";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; F32(a) => a.sin())
    }

    fn partial(self, b: &mut Builder, x: Var, _: Var, t: Var) -> Option<Var> {
        let slope = b.apply(super::Unary(super::Cos), &[x]);
        Some(b.mul(t, slope))
    }
}
