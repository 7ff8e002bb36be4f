//! Single integers cut to unsigned ones of fewer bits (Q18).

use crate::stablehlo::Lowering;
use crate::tensor::TensorType;

/// Writes the result, a conversion of `x` of type `from`, by way of signed integers, if a single integer becomes an unsigned one
/// of fewer bits: IREE may cut it with `arith.trunci`, which gives no unsigned ones.
pub fn cut_to_unsigned(to: &mut Lowering<'_>, x: &str, from: &TensorType) -> bool {
    let result = to.result_type(0).clone();
    let (takes, gives) = (from.dtype, result.dtype);
    let is_cut = takes.is_integer() && gives.is_unsigned() && takes.byte_width() > gives.byte_width();
    if !from.shape.is_empty() || !is_cut {
        return false;
    }
    let signed = result.with_dtype(gives.as_signed_bits());
    let cut = to.temporary(&format!("stablehlo.convert {x} : ({}) -> {}", from.mlir(), signed.mlir()));
    to.line(&format!("stablehlo.bitcast_convert {cut} : ({}) -> {}", signed.mlir(), result.mlir()));
    true
}
