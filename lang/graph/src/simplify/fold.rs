//! Constant folding: equations of known operands are evaluated.

use smallvec::SmallVec;

use super::Simplifier;
use crate::graph::{Op, RULE, Var, Vars};
use crate::primitives::{
    BroadcastInDim, Constant, DynamicSlice, Full, GatherRows, Reshape, Reverse, Slice, StopGradient,
    Transpose,
};
use crate::tensor::{HostTensor, Shape, TensorType};

/// Maximum elements of a folded constant: larger ones would make programs and keys large, and are left to the compiler.
const MAX_ELEMENTS: usize = 64;

/// An operation of small constants is a constant; a uniform one is a [`Full`].
pub(super) fn constants(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    if let Some(Constant { value, .. }) = op.downcast_ref() {
        let number = value.uniform().filter(|_| !value.shape().is_empty())?;
        return Some(Vars::from_slice(&[s.full(&number, value.shape())]));
    }
    if operands.is_empty() || op.map_bodies(&mut Clone::clone).is_some() {
        return None;
    }
    let small = |var: &Var| s.ty(*var).count() <= MAX_ELEMENTS;
    if !operands.iter().all(small)
        || !result_types(s, op, operands).iter().all(|ty| ty.count() <= MAX_ELEMENTS)
    {
        return None;
    }
    let values: Option<SmallVec<[HostTensor; 4]>> = operands.iter().map(|v| known(s, *v)).collect();
    let values = values?;
    let results = op.evaluate(&values.iter().collect::<SmallVec<[&HostTensor; 4]>>());
    Some(results.into_iter().map(|value| s.record(Constant { value, weak: false }, &[])).collect())
}

/// An operation of uniform tensors gives a uniform tensor.
pub(super) fn uniform(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let value = if moves_only(op) {
        s.uniform(operands[0])?.clone()
    } else if op.is_elementwise() {
        let numbers: Option<SmallVec<[&HostTensor; 4]>> = operands.iter().map(|v| s.uniform(*v)).collect();
        op.evaluate(&numbers?).swap_remove(0)
    } else {
        return None;
    };
    let shape = result_types(s, op, operands).swap_remove(0).shape;
    Some(Vars::from_slice(&[s.full(&value, &shape)]))
}

/// Results without elements need no operation, and results of nothing but such operands are known: sums over an axis of
/// extent 0, say. The compiler crashes at products over one (Q61).
pub(super) fn empty(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    if operands.is_empty() || op.checks() || op.map_bodies(&mut Clone::clone).is_some() {
        return None;
    }
    let types = result_types(s, op, operands);
    let known = if types.iter().all(|ty| ty.count() == 0) {
        types.iter().map(|ty| HostTensor::filled(ty.dtype, Shape::new(), 0.0)).collect()
    } else if operands.iter().all(|var| s.ty(*var).count() == 0) {
        let values: SmallVec<[HostTensor; 4]> = operands
            .iter()
            .map(|var| s.ty(*var))
            .map(|ty| HostTensor::filled(ty.dtype, ty.shape.clone(), 0.0))
            .collect();
        let results = op.evaluate(&values.iter().collect::<SmallVec<[&HostTensor; 4]>>());
        results.iter().map(HostTensor::uniform).collect::<Option<Vec<_>>>()?
    } else {
        return None;
    };
    Some(known.iter().zip(types).map(|(value, ty)| s.full(value, &ty.shape)).collect())
}

/// True if the result consists of elements of the first operand only.
fn moves_only(op: &Op) -> bool {
    op.is::<BroadcastInDim>()
        || op.is::<DynamicSlice>()
        || op.is::<GatherRows>()
        || op.is::<Reshape>()
        || op.is::<Reverse>()
        || op.is::<Slice>()
        || op.is::<StopGradient>()
        || op.is::<Transpose>()
}

/// The elements of a variable, if it is a constant.
fn known(s: &Simplifier, var: Var) -> Option<HostTensor> {
    if let Some((full, _)) = s.made_by::<Full>(var) {
        use crate::primitives::Primitive;
        return Some(full.evaluate(&[]).swap_remove(0));
    }
    s.constant(var).cloned()
}

fn result_types(s: &Simplifier, op: &Op, operands: &[Var]) -> SmallVec<[TensorType; 2]> {
    let types: SmallVec<[&TensorType; 4]> = operands.iter().map(|v| s.ty(*v)).collect();
    op.infer(&types).expect(RULE)
}
