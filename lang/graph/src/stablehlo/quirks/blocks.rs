//! Loops as blocks of `main`: memory of the device, and of their stacks.

use crate::stablehlo::{Lowering, zero};
use crate::tensor::TensorType;

/// Attribute of a module: transfers between the device and itself are none (Q33).
pub const ONE_MEMORY: &str = "attributes {stream.topology = #hal.device.topology<links = \
     [(@__device_0 -> @__device_0 = {unified_memory = true, transparent_access = true})]>} ";

impl Lowering<'_> {
    /// Writes a tensor for the rows of a loop, all of whose elements the loop writes.
    pub fn new_stack(&mut self, ty: &TensorType) -> String {
        match (ty.count(), self.emitter.features.blocks) {
            (0, _) => self.splat(ty, ""),
            (_, false) => self.splat(ty, &zero(ty.dtype)),
            // Memory of its own (Q35), which nothing fills, and which holds no unsigned numbers (Q30).
            (_, true) => {
                let held = ty.signless();
                let stack = self.temporary(&format!("flow.tensor.alloca : {}", held.mlir()));
                self.bitcast(&stack, &held, ty)
            }
        }
    }
}
