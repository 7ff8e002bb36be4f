//! `subtract`: `x - y`; integers wrap.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sub;

impl BinaryRule for Sub {
    const NAME: &'static str = "sub";
    const OPERATION: &'static str = "stablehlo.subtract";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; float(a, b) => a - b, integer(a, b) => a.wrapping_sub(b))
    }

    fn partial(self, b: &mut Builder, side: usize, _: [Var; 2], _: Var, t: Var) -> Option<Var> {
        Some(if side == 0 { t } else { b.neg(t) })
    }
}
