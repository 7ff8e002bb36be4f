//! `add`: `x + y`; integers wrap, booleans are refused (use `or`).

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Add;

impl BinaryRule for Add {
    const NAME: &'static str = "add";
    const OPERATION: &'static str = "stablehlo.add";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; float(a, b) => a + b, integer(a, b) => a.wrapping_add(b))
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, t: Var) -> Option<Var> {
        Some(t)
    }
}
