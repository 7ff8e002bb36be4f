//! Extremes of signed integers, for CUDA (Q54).

use crate::stablehlo::literal::{highest, literal, lowest};
use crate::stablehlo::{Lowering, dims_list};
use crate::tensor::{DType, Number, TensorType};

/// True if a reduction of operand 0 is written by [`extreme_of_signed`]: threads that share it begin with the neutral element of unsigned
/// numbers, -1 for the least and 0 for the greatest.
pub fn is_extreme_of_signed(to: &Lowering<'_>, operation: &str) -> bool {
    matches!(operation, "stablehlo.minimum" | "stablehlo.maximum")
        && to.is_for_cuda()
        && unsigned(to.operand_type(0).dtype).is_some()
}

/// Writes the extreme along `axes` of `x`, signed integers of type `ty`, as that of unsigned ones whose first bit is turned, which keeps the
/// order; the name of the result.
pub fn extreme_of_signed(
    to: &mut Lowering<'_>,
    operation: &str,
    x: &str,
    ty: &TensorType,
    axes: &[usize],
) -> String {
    let dtype = unsigned(ty.dtype).expect("signed integers");
    let shape: Vec<usize> =
        (0..ty.shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| ty.shape[axis]).collect();
    let (result, scalar) = (ty.with_shape(shape.as_slice()), TensorType::scalar(dtype));
    let least = ty.dtype.bounds().map_or(0, |(least, _)| least);
    let turned = |to: &mut Lowering<'_>, x: &str, ty: &TensorType| {
        let bit = to.splat(ty, &literal(ty.dtype, Number::Int(least)));
        to.value("stablehlo.xor", &[x, &bit], ty)
    };
    let x = turned(to, x, ty);
    let cast = |x: &str, from: &TensorType, into: &TensorType| {
        format!("stablehlo.bitcast_convert {x} : ({}) -> {}", from.mlir(), into.mlir())
    };
    let x = to.temporary(&cast(&x, ty, &ty.with_dtype(dtype)));
    let init =
        to.splat(&scalar, &if operation == "stablehlo.minimum" { highest(dtype) } else { lowest(dtype) });
    let found = to.temporary(&format!(
        "stablehlo.reduce({x} init: {init}) applies {operation} across dimensions = {} : ({}, {}) -> {}",
        dims_list(axes),
        ty.with_dtype(dtype).mlir(),
        scalar.mlir(),
        result.with_dtype(dtype).mlir()
    ));
    let found = to.temporary(&cast(&found, &result.with_dtype(dtype), &result));
    turned(to, &found, &result)
}

/// The unsigned integers of as many bits as these signed ones; none of 64 bits, which are compared rightly.
fn unsigned(dtype: DType) -> Option<DType> {
    Some(match dtype {
        DType::I8 => DType::U8,
        DType::I16 => DType::U16,
        DType::I32 => DType::U32,
        _ => return None,
    })
}
