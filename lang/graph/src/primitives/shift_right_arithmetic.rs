//! `shift_right_arithmetic`: bits move down, the sign comes in; by the width or more (or a negative number) leaves only the sign.

use super::{BinaryRule, shift_amount};
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise arithmetic right shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShiftRightArithmetic;

impl BinaryRule for ShiftRightArithmetic {
    const NAME: &'static str = "shift_right_arithmetic";
    const OPERATION: &'static str = "stablehlo.shift_right_arithmetic";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_integer()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            signed(a, b) => a.checked_shr(shift_amount(b)).unwrap_or(a.signum().min(0)),
            unsigned(a, b) => {
                let a = a.cast_signed();
                a.checked_shr(shift_amount(b)).unwrap_or(a.signum().min(0)).cast_unsigned()
            })
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}
