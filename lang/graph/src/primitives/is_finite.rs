//! `is_finite`: true for elements that are neither infinite nor NaN.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise test for finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IsFinite;

impl UnaryRule for IsFinite {
    const NAME: &'static str = "is_finite";
    const OPERATION: &'static str = "stablehlo.is_finite";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_float()
    }

    fn result(self, _: DType) -> DType {
        DType::Bool
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; float(a) => a.is_finite())
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
