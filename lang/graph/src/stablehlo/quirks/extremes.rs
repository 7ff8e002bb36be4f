//! Extremes of signed integers, for CUDA (Q54).

use super::filled_up;
use crate::stablehlo::literal::{highest, lowest};
use crate::stablehlo::{Lowering, reduction};
use crate::tensor::{DType, TensorType};

/// Writes the extreme along `axes` of `x`, of type `ty`, as that of unsigned integers whose first bit is turned, which keeps the order; the
/// name of the result. `None`, and nothing written, where a usual reduction is right: threads that share one of signed integers begin with
/// the neutral element of unsigned numbers, -1 for the least and 0 for the greatest.
pub fn extreme_of_signed(
    to: &mut Lowering<'_>,
    operation: &str,
    x: &str,
    ty: &TensorType,
    axes: &[usize],
) -> Option<String> {
    let dtype = unsigned(ty.dtype).filter(|_| to.is_for_cuda())?;
    let init = match operation {
        "stablehlo.minimum" => highest(dtype),
        "stablehlo.maximum" => lowest(dtype),
        _ => return None,
    };
    let shape: Vec<usize> =
        (0..ty.shape.len()).filter(|axis| !axes.contains(axis)).map(|axis| ty.shape[axis]).collect();
    let result = ty.with_shape(shape.as_slice());
    let (from, into) = (ty.with_dtype(dtype), result.with_dtype(dtype));
    let turned = |to: &mut Lowering<'_>, x: &str, ty: &TensorType| {
        let bit = to.splat(ty, &lowest(ty.dtype));
        to.value("stablehlo.xor", &[x, &bit], ty)
    };
    let x = turned(to, x, ty);
    let x = to.bitcast(&x, ty, &from);
    let init = to.splat(&TensorType::scalar(dtype), &init);
    let (x, from) = filled_up(to, &init, axes, &x, &from);
    let found = to.temporary(&reduction(operation, &init, axes, &x, &from, &into));
    let found = to.bitcast(&found, &into, &result);
    Some(turned(to, &found, &result))
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
