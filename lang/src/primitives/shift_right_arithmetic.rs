//! `shift_right_arithmetic`: bits move down, the sign comes in; by the width or more (or a negative number) leaves only the sign.

use super::BinaryRule;
use crate::graph::{Builder, Var};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise arithmetic right shift.
#[derive(Clone, Copy, Debug)]
pub struct ShiftRightArithmetic;

impl BinaryRule for ShiftRightArithmetic {
    const NAME: &'static str = "shift_right_arithmetic";
    const OPERATION: &'static str = "stablehlo.shift_right_arithmetic";

    fn accepts(self, dtype: DType) -> bool {
        dtype.is_integer()
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y;
            I32(a, b) => a >> (b as u32).min(31),
            I64(a, b) => a >> (b as u64).min(63),
            U32(a, b) => ((a as i32) >> b.min(31)) as u32)
    }

    fn partial(self, _: &mut Builder, _: usize, _: [Var; 2], _: Var, _: Var) -> Option<Var> {
        None
    }
}
