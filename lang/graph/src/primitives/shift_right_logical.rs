//! `shift_right_logical`: bits move down, zeros come in; by the width or more (or a negative number) gives 0.

use super::{BinaryRule, shift_amount};
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise logical right shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShiftRightLogical;

impl BinaryRule for ShiftRightLogical {
    const NAME: &'static str = "shift_right_logical";
    const OPERATION: &'static str = "stablehlo.shift_right_logical";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_integer()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y;
            signed(a, b) => a.cast_unsigned().checked_shr(shift_amount(b)).unwrap_or(0).cast_signed(),
            unsigned(a, b) => a.checked_shr(shift_amount(b)).unwrap_or(0))
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}
