//! `logistic`: the sigmoid, `1 / (1 + e^-x)`.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise sigmoid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Logistic;

impl UnaryRule for Logistic {
    const NAME: &'static str = "logistic";
    const OPERATION: &'static str = "stablehlo.logistic";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => 1.0 / (1.0 + (-a).exp()))
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        // dy = y (1 - y) dx
        let one = b.full_like(y, 1.0);
        let rest = b.sub(one, y);
        let slope = b.mul(y, rest);
        Some(b.mul(t, slope))
    }
}
