//! `and`: bitwise conjunction; logical on booleans.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise conjunction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct And;

impl BinaryRule for And {
    const NAME: &'static str = "and";
    const OPERATION: &'static str = "stablehlo.and";

    fn accepts(self, dtype: DType) -> bool {
        !dtype.is_float()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; integer(a, b) => a & b, Bool(a, b) => a & b)
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}
