//! `xor`: bitwise exclusive disjunction; logical on booleans.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise exclusive disjunction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Xor;

impl BinaryRule for Xor {
    const NAME: &'static str = "xor";
    const OPERATION: &'static str = "stablehlo.xor";

    fn accepts(self, dtype: DType) -> bool {
        !dtype.is_float()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; integer(a, b) => a ^ b, Bool(a, b) => a ^ b)
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}
