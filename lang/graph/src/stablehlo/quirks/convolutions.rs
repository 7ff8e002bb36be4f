//! Padding of convolutions (Q23).

use std::iter::once;

use smallvec::SmallVec;

use crate::primitives::Convolution;
use crate::stablehlo::{Lowering, zero};
use crate::tensor::TensorType;

/// The input of a convolution, its type, and the padding that is left to the convolution.
///
/// Dilated inputs and negative padding are written as a padding of their own: IREE's rules for convolutions know neither in all
/// cases.
pub fn padded_input(
    op: &Convolution,
    to: &mut Lowering<'_>,
) -> (String, TensorType, SmallVec<[(i64, i64); 2]>) {
    let is_dilated = op.input_dilation.iter().any(|d| *d != 1);
    if !is_dilated && op.padding.iter().all(|(low, high)| *low >= 0 && *high >= 0) {
        return (to.operand(0), to.operand_type(0).clone(), op.padding.clone());
    }
    let (name, ty) = padded(op, to);
    (name, ty, SmallVec::from_elem((0, 0), op.spatial()))
}

/// The type of the input of a convolution with its dilation and padding.
pub fn padded_type(op: &Convolution, input: &TensorType) -> TensorType {
    let mut padded = input.clone();
    for axis in 0..op.spatial() {
        padded.shape[axis + 1] = op.padded_extent(axis, input.shape[axis + 1]);
    }
    padded
}

/// The input of a convolution with its dilation and padding, and its type.
pub fn padded(op: &Convolution, to: &mut Lowering<'_>) -> (String, TensorType) {
    let (input, ty, n) = (to.operand(0), to.operand_type(0).clone(), op.spatial());
    let padded = padded_type(op, &ty);
    if padded.shape == ty.shape && op.padding.iter().all(|pad| *pad == (0, 0)) {
        return (input, ty);
    }
    let scalar = TensorType::scalar(ty.dtype);
    let fill = to.splat(&scalar, &zero(ty.dtype));
    let list = |inner: &dyn Fn(usize) -> i64| {
        let entries = once(0).chain((0..n).map(inner)).chain([0]);
        entries.map(|i| i.to_string()).collect::<Vec<_>>().join(", ")
    };
    let text = format!(
        "stablehlo.pad {input}, {fill}, low = [{}], high = [{}], interior = [{}] : ({}, {}) -> {}",
        list(&|axis| op.padding[axis].0),
        list(&|axis| op.padding[axis].1),
        list(&|axis| op.input_dilation[axis] as i64 - 1),
        ty.mlir(),
        scalar.mlir(),
        padded.mlir(),
    );
    (to.temporary(&text), padded)
}
