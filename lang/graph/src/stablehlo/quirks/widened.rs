//! Booleans and unsigned integers that become wider numbers (Q46).

use crate::stablehlo::{Lowering, one, zero};
use crate::tensor::{DType, TensorType};

/// The operation that gives `x`, of type `from`, as the wider type `into`. `None` if a conversion by itself serves.
///
/// IREE joins such a conversion with a product that reads it, and takes the sign of the narrow number then: true is -1, and a
/// `u8` of 200 is -56. A selection is no conversion, and neither is a maximum.
pub fn widened(to: &mut Lowering<'_>, x: &str, from: &TensorType, into: &TensorType) -> Option<String> {
    if from.dtype == into.dtype {
        return None;
    }
    if from.dtype == DType::Bool {
        let (one, zero) = (to.splat(into, &one(into.dtype)), to.splat(into, &zero(into.dtype)));
        return Some(format!("stablehlo.select {x}, {one}, {zero} : {}, {}", from.mlir(), into.mlir()));
    }
    if !from.dtype.is_unsigned() || into.dtype.byte_width() <= from.dtype.byte_width() {
        return None;
    }
    let signed =
        if into.dtype.is_unsigned() { into.with_dtype(into.dtype.as_signed_bits()) } else { into.clone() };
    let wide = to.temporary(&format!("stablehlo.convert {x} : ({}) -> {}", from.mlir(), signed.mlir()));
    let zero = to.splat(&signed, &zero(signed.dtype));
    let whole = format!("stablehlo.maximum {wide}, {zero} : {}", signed.mlir());
    if signed == *into {
        return Some(whole);
    }
    let whole = to.temporary(&whole);
    Some(format!("stablehlo.bitcast_convert {whole} : ({}) -> {}", signed.mlir(), into.mlir()))
}
