//! Reversal of unsigned integers (Q10), and of columns (Q48).

use crate::stablehlo::{Lowering, dims_list};

/// Writes operand 0 with the order of its elements turned round along `axes`: unsigned integers as signed ones of the same bits,
/// since the compiler refuses them. It also refuses to reverse a column of a matrix in one step with taking it: a barrier stands before
/// the reversal of each computed value.
pub fn reverse(to: &mut Lowering<'_>, axes: &[usize]) {
    let (mut x, ty, dims) = (to.operand(0), to.result_type(0).clone(), dims_list(axes));
    if to.is_computed(0) && !to.in_kernel() {
        x = to.value("stablehlo.optimization_barrier", &[&x], &ty);
    }
    if !ty.dtype.is_unsigned() {
        return to.line(&format!("stablehlo.reverse {x}, dims = {dims} : {}", ty.mlir()));
    }
    let (unsigned, signed) = (ty.mlir(), ty.with_dtype(ty.dtype.as_signed_bits()).mlir());
    let x = to.temporary(&format!("stablehlo.bitcast_convert {x} : ({unsigned}) -> {signed}"));
    let turned = to.temporary(&format!("stablehlo.reverse {x}, dims = {dims} : {signed}"));
    to.line(&format!("stablehlo.bitcast_convert {turned} : ({signed}) -> {unsigned}"));
}
