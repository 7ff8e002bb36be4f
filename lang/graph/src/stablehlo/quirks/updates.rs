//! Operands that an operation writes over, and the copies that keep IREE from computing wrong numbers with them.
//!
//! IREE writes a `dynamic_update_slice` and a `scatter` into the memory of the first operand, with a copy before it where
//! something else reads that operand. It leaves this copy out too often: it has written over arguments of `main` (Q01), and
//! over values that another update reads (Q02). A `concatenate` becomes one update for each operand, of new memory that two of
//! them share where their first operands are the same; each result then has parts of the other one (Q03).
//!
//! In programs with loops as blocks, transfers that are left out are such copies, too (Q34): there only the stacks of loops are
//! written over, and states of loops with memory of their own.

use std::iter::successors;

use crate::graph::Var;
use crate::primitives::{Full, Reshape};
use crate::stablehlo::{Lowering, zero};
use crate::tensor::{DType, TensorType};

impl Lowering<'_> {
    /// Operand `i`, which the operation writes over.
    pub fn overwritten(&mut self, i: usize) -> String {
        let is_converted = !std::ptr::eq(self.graph, self.recorded.graph);
        if !is_converted && self.emitter.updated.contains(&self.operand(i)) {
            let result = self.result_var(0);
            if self.recorded.results(result) == 0 {
                let name = self.name(result).to_owned();
                self.may_be_updated(name);
            }
            return self.operand(i);
        }
        if self.is_full(i) || (self.is_owned(i) && !self.emitter.features.blocks) {
            return self.operand(i);
        }
        self.copy(i)
    }

    /// Notes that a step of a loop updates the value of this name, a state or what updates made of it, in place.
    pub fn may_be_updated(&mut self, name: String) {
        self.emitter.updated.insert(name);
    }

    /// The operands of a `concatenate`, separated by commas.
    pub fn joined(&mut self) -> String {
        let mut operands: Vec<String> = (0..self.operand_count()).map(|i| self.operand(i)).collect();
        let origins: Vec<String> = self.origins(0).map(|v| self.names[v.index()].clone()).collect();
        let mut begins_another = false;
        for origin in origins {
            begins_another |= !self.emitter.first_joined.insert(origin);
        }
        if begins_another {
            operands[0] = self.copy(0);
        }
        operands.join(", ")
    }

    /// True if nothing but this operation reads operand `i`.
    fn is_owned(&self, i: usize) -> bool {
        let last = self.origins(i).last().unwrap_or(self.sources[i]);
        let is_parameter = self.recorded.definition(last).is_none();
        let is_converted = !std::ptr::eq(self.graph, self.recorded.graph);
        let is_donated = || is_converted || self.emitter.donated.contains(&self.names[last.index()]);
        (!is_parameter || is_donated()) && self.origins(i).all(|v| self.recorded.count(v) == 1)
    }

    /// Operand `i`, and what it is in other shapes.
    fn origins(&self, i: usize) -> impl Iterator<Item = Var> {
        successors(Some(self.sources[i]), |v| {
            let eqn = self.recorded.definition(*v)?;
            eqn.op.is::<Reshape>().then(|| eqn.inputs[0])
        })
    }

    /// A copy of operand `i` that the compiler does not know to be one.
    fn copy(&mut self, i: usize) -> String {
        let x = self.operand(i);
        let ty = self.operand_type(i).clone();
        if self.in_kernel() || ty.count() == 0 {
            return x;
        }
        let bits = bits_of(&ty);
        let x = self.bitcast(&x, &ty, &bits);
        let number = self.scalar_zero(&bits);
        let scalar = TensorType::scalar(bits.dtype).mlir();
        let none = self.temporary(&format!("stablehlo.optimization_barrier {number} : {scalar}"));
        self.bits_or(&x, &none, &bits, &ty)
    }

    /// Writes a copy of `x`, of type `ty`, that the compiler joins with no other. Its zero comes from the host: in a buffer of the device,
    /// it has made calls fail (Q37).
    pub(super) fn copy_of(&mut self, x: &str, ty: &TensorType) -> String {
        let bits = bits_of(ty);
        let x = self.bitcast(x, ty, &bits);
        let scalar = bits.dtype.mlir();
        let zero = self.temporary(&format!("arith.constant {} : {scalar}", zero(bits.dtype)));
        let unknown = self.temporary(&format!("util.optimization_barrier {zero} : {scalar}"));
        let none = self.temporary(&format!("tensor.from_elements {unknown} : tensor<{scalar}>"));
        self.bits_or(&x, &none, &bits, ty)
    }

    /// Writes a copy of `x`, of type `ty`, beside `other`, of the same type: an operation that depends on both, and that the
    /// compiler does not know to be a copy.
    pub(super) fn copy_beside(&mut self, x: &str, other: &str, ty: &TensorType) -> String {
        if ty.count() == 0 {
            return x.to_owned();
        }
        let bits = bits_of(ty);
        let x = self.bitcast(x, ty, &bits);
        let number = self.scalar_zero(&bits);
        let (none, unused) = (self.name_temporary(), self.name_temporary());
        let types = format!("{}, {}", TensorType::scalar(bits.dtype).mlir(), ty.mlir());
        self.raw(&format!("{none}, {unused} = stablehlo.optimization_barrier {number}, {other} : {types}"));
        self.bits_or(&x, &none, &bits, ty)
    }

    /// Writes a scalar zero of the dtype of `bits`. Behind a barrier, the compiler does not know that it is one.
    fn scalar_zero(&mut self, bits: &TensorType) -> String {
        self.splat(&TensorType::scalar(bits.dtype), &zero(bits.dtype))
    }

    /// Writes `x`, of type `bits`, with the ones of a scalar, as a tensor of type `ty`.
    fn bits_or(&mut self, x: &str, scalar: &str, bits: &TensorType, ty: &TensorType) -> String {
        let all = self.broadcast(scalar, &TensorType::scalar(bits.dtype), bits);
        let same = self.value("stablehlo.or", &[x, &all], bits);
        self.bitcast(&same, bits, ty)
    }

    fn broadcast(&mut self, number: &str, scalar: &TensorType, ty: &TensorType) -> String {
        self.temporary(&format!(
            "stablehlo.broadcast_in_dim {number}, dims = [] : ({}) -> {}",
            scalar.mlir(),
            ty.mlir()
        ))
    }

    /// True if operand `i` is one number throughout.
    fn is_full(&self, i: usize) -> bool {
        let maker = self.recorded.definition(self.sources[i]);
        maker.is_some_and(|eqn| eqn.op.is::<Full>())
    }
}

/// The type of the bits of a tensor of type `ty`.
fn bits_of(ty: &TensorType) -> TensorType {
    if ty.dtype == DType::Bool { ty.clone() } else { ty.with_dtype(ty.dtype.as_signed_bits()) }
}
