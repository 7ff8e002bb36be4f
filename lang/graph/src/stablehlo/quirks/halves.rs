//! Rounding to 16-bit floats (Q06).

use crate::tensor::{DType, TensorType};

/// The text that rounds `x`, of type `ty`, to the numbers of `dtype`, if a conversion to it might not.
///
/// Within a kernel, IREE keeps `bf16` as `f32` and drops conversions there and back; it keeps this, which is
/// arithmetic on bits. Conversions to `f16` it keeps.
pub fn rounding(x: &str, ty: &TensorType, dtype: DType) -> Option<String> {
    let narrows = dtype == DType::BF16 && ty.dtype == DType::F32;
    narrows.then(|| format!("stablehlo.reduce_precision {x}, format = e8m7 : {}", ty.mlir()))
}
