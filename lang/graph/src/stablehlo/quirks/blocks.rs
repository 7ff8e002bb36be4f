//! Loops as blocks of `main`: memory of the device, and of their stacks.

use crate::stablehlo::{Lowering, zero};
use crate::tensor::{DType, TensorType};

/// Attribute of a module: transfers between the device and itself are none (Q33).
pub const ONE_MEMORY: &str = "attributes {stream.topology = #hal.device.topology<links = \
     [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} ";

/// The number from which stack `place` of a program starts, which no other constant is likely to have: equal constants are one
/// buffer (Q35).
fn first_number(dtype: DType, place: usize) -> String {
    match dtype {
        DType::Bool => "true".into(),
        DType::I8 | DType::U8 => "94".into(),
        DType::I16 | DType::U16 => (0x5E00 + place).to_string(),
        DType::BF16 | DType::F16 => format!("0x{:04X}", 0x2F00 + place),
        DType::F32 => format!("0x{:08X}", 0x2F5E_AF00 + place),
        DType::F64 => format!("0x{:016X}", 0x2F5E_AF00_0000_0000 + place),
        DType::I32 | DType::U32 | DType::I64 => (0x5EAF_0000 + place).to_string(),
    }
}

impl Lowering<'_> {
    /// Writes a tensor for the rows of a loop, all of whose elements the loop writes.
    pub fn new_stack(&mut self, ty: &TensorType) -> String {
        if ty.count() == 0 {
            return self.splat(ty, "");
        }
        if !self.emitter.features.blocks {
            return self.splat(ty, &zero(ty.dtype));
        }
        self.emitter.stacks += 1;
        let number = first_number(ty.dtype, self.emitter.stacks);
        self.splat(ty, &number)
    }
}
