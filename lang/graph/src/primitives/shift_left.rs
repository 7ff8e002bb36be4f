//! `shift_left`: bits move up; by the width or more (or a negative number) gives 0.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise left shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShiftLeft;

impl BinaryRule for ShiftLeft {
    const NAME: &'static str = "shift_left";
    const OPERATION: &'static str = "stablehlo.shift_left";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_integer()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            integer(a, b) => a.checked_shl(shift_amount(b)).unwrap_or(0))
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}

/// The number of places to shift; a negative one is beyond every width.
pub fn shift_amount(bits: impl TryInto<u32>) -> u32 {
    bits.try_into().unwrap_or(u32::MAX)
}
