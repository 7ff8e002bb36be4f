//! `not`: logical negation of booleans, all bits inverted of integers.

use super::UnaryRule;
use crate::graph::{Builder, Var};
use crate::map_data;
use crate::tensor::{DType, Data};

/// Element-wise negation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Not;

impl UnaryRule for Not {
    const NAME: &'static str = "not";
    const OPERATION: &'static str = "stablehlo.not";

    fn accepts(self, dtype: DType) -> bool {
        !dtype.is_float()
    }

    fn evaluate(self, x: &Data) -> Data {
        map_data!(x; integer(a) => !a, Bool(a) => !a)
    }

    fn partial(self, _: &mut Builder, _: Var, _: Var, _: Var) -> Option<Var> {
        None
    }
}
