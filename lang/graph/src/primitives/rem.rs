//! `remainder` of truncating division; it has the sign of `x`, as C's `fmod` has. An integer modulo 0 is
//! the integer itself.

use super::{BinaryRule, Floor, Sign, Unary};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::stablehlo::quirks::doubles;
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise remainder.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rem;

impl BinaryRule for Rem {
    const NAME: &'static str = "rem";
    const OPERATION: &'static str = "stablehlo.remainder";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            float(a, b) => a % b,
            signed(a, b) => if b == 0 { a } else { a.wrapping_rem(b) },
            unsigned(a, b) => a.checked_rem(b).unwrap_or(a))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype == DType::F64 {
            doubles::remainder(to);
        } else {
            to.elementwise(Self::OPERATION);
        }
    }

    fn steep(self, constant: [bool; 2]) -> bool {
        !constant[1]
    }

    // rem(x, y) = x - y trunc(x / y)
    fn partial(self, b: &mut Builder, side: usize, [x, y]: [Var; 2], _: Var, t: Var) -> Option<Var> {
        if side == 0 {
            return Some(t);
        }
        let quotient = b.div(x, y);
        let size = b.abs(quotient);
        let whole = b.apply(Unary(Floor), &[size]);
        let sign = b.apply(Unary(Sign), &[quotient]);
        let truncated = b.mul(sign, whole);
        let product = b.mul(t, truncated);
        Some(b.neg(product))
    }
}
