//! `multiply`: `x y`; integers wrap.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise product.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mul;

impl BinaryRule for Mul {
    const NAME: &'static str = "mul";
    const OPERATION: &'static str = "stablehlo.multiply";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; float(a, b) => a * b, integer(a, b) => a.wrapping_mul(b))
    }

    fn steep(self, constant: [bool; 2]) -> bool {
        constant == [false; 2]
    }

    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], _: Var, t: Var) -> Option<Var> {
        Some(b.mul(t, args[1 - side]))
    }
}
