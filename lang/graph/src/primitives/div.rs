//! `divide`: `x / y`. Integer division truncates; by zero it gives -1 (all bits set), as XLA does on the CPU.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise quotient.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Div;

impl BinaryRule for Div {
    const NAME: &'static str = "div";
    const OPERATION: &'static str = "stablehlo.divide";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            float(a, b) => a / b,
            signed(a, b) => if b == 0 { -1 } else { a.wrapping_div(b) },
            unsigned(a, b) => a.checked_div(b).unwrap_or(!0))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.is_for_processor() || !quirks::divide_by_zero(to) {
            to.elementwise(Self::OPERATION);
        }
    }

    fn steep(self, constant: [bool; 2]) -> bool {
        !constant[1]
    }

    // d(x/y) = dx/y - (x/y) dy/y
    fn partial(self, b: &mut Builder, side: usize, args: [Var; 2], out: Var, t: Var) -> Option<Var> {
        let scaled = b.div(t, args[1]);
        Some(if side == 0 {
            scaled
        } else {
            let product = b.mul(scaled, out);
            b.neg(product)
        })
    }
}
