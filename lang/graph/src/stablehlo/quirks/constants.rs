//! Constants in buffers, for CUDA (Q51).

use crate::stablehlo::Lowering;
use crate::stablehlo::literal::literal;
use crate::tensor::{DType, HostTensor, Number, TensorType};

/// Bytes up to which IREE writes a constant into the code of kernels.
const IN_CODE: usize = 256;

/// Writes a constant of several numbers as part of one that is too large for the code of kernels. Truth values are bytes there: IREE counts
/// their bits.
pub fn in_buffer(to: &mut Lowering<'_>, value: &HostTensor) {
    let ty = to.result_type(0).clone();
    let dtype = if ty.dtype == DType::Bool { DType::I8 } else { ty.dtype };
    let padded = value.count().max(IN_CODE / dtype.byte_width() + 1);
    let elements: Vec<String> = (0..padded)
        .map(|i| literal(dtype, if i < value.count() { value.element(i) } else { Number::Int(0) }))
        .collect();
    let [flat, whole] = [value.count(), padded].map(|n| TensorType::new(dtype, [n].as_slice()));
    let constant =
        to.temporary(&format!("stablehlo.constant dense<[{}]> : {}", elements.join(", "), whole.mlir()));
    let part = to.temporary(&format!(
        "stablehlo.slice {constant} [0:{}] : ({}) -> {}",
        value.count(),
        whole.mlir(),
        flat.mlir()
    ));
    let stored = ty.with_dtype(dtype);
    if dtype == ty.dtype {
        return to.line(&format!("stablehlo.reshape {part} : ({}) -> {}", flat.mlir(), ty.mlir()));
    }
    let shaped = to.with_shape(&part, &flat, &stored);
    to.line(&format!("stablehlo.convert {shaped} : ({}) -> {}", stored.mlir(), ty.mlir()));
}
