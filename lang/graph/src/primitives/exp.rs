//! `exponential`: `e^x`.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise exponential.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Exp;

impl UnaryRule for Exp {
    const NAME: &'static str = "exp";
    const OPERATION: &'static str = "stablehlo.exponential";
    const STEEP: bool = true;

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.exp())
    }

    fn partial(self, b: &mut Builder, _: Var, y: Var, t: Var) -> Option<Var> {
        Some(b.mul(t, y))
    }
}
