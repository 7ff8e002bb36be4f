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

    /// Writes a copy of `x`, of type `ty` and rank 1 at least, in memory of its own, which a loop in blocks may write over. A copy
    /// that IREE makes lies in one allocation with other values, which calls of some programs do not survive (Q37), and equal
    /// copies are one (Q35).
    pub fn copy_apart(&mut self, x: &str, ty: &TensorType) -> String {
        // The compiler computes `x` in the place that it is put into, and reads it there later: a copy of it is read by nothing else.
        let x = &self.copy_of(x, ty);
        let stack = self.new_stack(ty);
        let zero = self.temporary("arith.constant 0 : index");
        // An update of all elements at a known place would be `x` itself.
        let unknown = self.temporary(&format!("util.optimization_barrier {zero} : index"));
        let number = self.temporary(&format!("arith.index_cast {unknown} : index to i32"));
        let start = self.temporary(&format!("tensor.from_elements {number} : tensor<i32>"));
        let starts = vec![start.as_str(); ty.rank()].join(", ");
        let types = vec!["tensor<i32>"; ty.rank()].join(", ");
        let ty = ty.mlir();
        self.temporary(&format!(
            "stablehlo.dynamic_update_slice {stack}, {x}, {starts} : ({ty}, {ty}, {types}) -> {ty}"
        ))
    }

    /// Writes `x`, of type `ty`, as a value with a buffer to itself. IREE puts values that are computed at once into one buffer; where a branch
    /// hands that to two arguments of a block, it has been lost for one of them (Q37). Barriers hold no unsigned numbers (Q30).
    pub fn own_buffer(&mut self, x: &str, ty: &TensorType) -> String {
        let held = ty.signless();
        let x = self.bitcast(x, ty, &held);
        let x = self.temporary(&format!("util.optimization_barrier {x} : {}", held.mlir()));
        self.bitcast(&x, &held, ty)
    }
}
