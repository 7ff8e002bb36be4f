//! Operations that are not written into kernels, and those that are written there in another way.

use crate::graph::{Equation, Graph, Var};
use crate::primitives::{Convolution, Cumsum, Pad, Sort};
use crate::stablehlo::{Lowering, dims_list, float, highest, zero};
use crate::tensor::{DType, TensorType};

/// True if IREE fails on an operation beside others in a kernel ("failed to run translation of source executable", Q26), or is slow
/// with it.
pub fn is_refused_in_kernels(graph: &Graph, eqn: &Equation) -> bool {
    let op = &eqn.op;
    let is_bool = |v: &Var| graph.ty(*v).dtype == DType::Bool;
    op.is::<Convolution>()
        || op.is::<Sort>()
        || op.is::<Cumsum>()
        || (op.is::<Pad>() && eqn.inputs.iter().any(is_bool))
}

/// Writes operand 0, a number, with axes of extent 1, if it is in a kernel, as a part of two such elements (Q25): IREE may fail on
/// the reshape there ("rank 0 memrefs can only be extended/collapsed with/from ones"), and on a broadcast, which becomes one.
pub fn number_to_element(to: &mut Lowering<'_>) -> bool {
    let (from, ty) = (to.operand_type(0).clone(), to.result_type(0).clone());
    if !to.in_kernel() || from.rank() > 0 || ty.rank() == 0 || ty.count() != 1 {
        return false;
    }
    let mut shape = ty.shape.clone();
    shape[0] = 2;
    let two = ty.with_shape(shape);
    let (x, two_type) = (to.operand(0), two.mlir());
    let twice =
        to.temporary(&format!("stablehlo.broadcast_in_dim {x}, dims = [] : ({}) -> {two_type}", from.mlir()));
    let first = vec!["0:1"; ty.rank()].join(", ");
    to.line(&format!("stablehlo.slice {twice} [{first}] : ({two_type}) -> {}", ty.mlir()));
    true
}

/// Writes the position along `axis` of an extreme of operand 0, if it is in a kernel, as the least of the positions that have it
/// (Q27): two reductions of pairs (position, element) in one kernel give the numbers of one of them. `operation` reduces to the
/// extreme, `init` is its neutral element.
pub fn position_of_extreme(to: &mut Lowering<'_>, axis: usize, operation: &str, init: &str) -> bool {
    if !to.in_kernel() {
        return false;
    }
    let (ty, result) = (to.operand_type(0).clone(), to.result_type(0).clone());
    let x = to.operand(0);
    let kept: Vec<usize> = (0..ty.rank()).filter(|i| *i != axis).collect();
    let reduction = |operation: &str, x: &str, init: &str, from: &TensorType, to: &TensorType| {
        let scalar = TensorType::scalar(from.dtype).mlir();
        format!(
            "stablehlo.reduce({x} init: {init}) applies {operation} across dimensions = [{axis}] : ({}, {scalar}) -> {}",
            from.mlir(),
            to.mlir(),
        )
    };
    let extremes = result.with_dtype(ty.dtype);
    let init = to.splat(&TensorType::scalar(ty.dtype), init);
    let extreme = to.temporary(&reduction(operation, &x, &init, &ty, &extremes));
    let extreme = to.temporary(&format!(
        "stablehlo.broadcast_in_dim {extreme}, dims = {} : ({}) -> {}",
        dims_list(&kept),
        extremes.mlir(),
        ty.mlir()
    ));
    let mut has_it = to.compare("EQ", &x, &extreme, &ty);
    if ty.dtype.is_float() {
        // The extreme of elements with a NaN among them is one.
        let is_nan = to.compare("NE", &x, &x, &ty);
        has_it = to.value("stablehlo.or", &[&has_it, &is_nan], &ty.with_dtype(DType::Bool));
    }
    let position = ty.with_dtype(result.dtype);
    let positions = to.temporary(&format!("stablehlo.iota dim = {axis} : {}", position.mlir()));
    let last = highest(result.dtype);
    let behind = to.splat(&position, &last);
    let candidates = to.select(&has_it, &positions, &behind, &position);
    let init = to.splat(&TensorType::scalar(result.dtype), &last);
    to.line(&reduction("stablehlo.minimum", &candidates, &init, &position, &result));
    true
}

/// Writes a reshape of operand 0 to no axes, if it is in a kernel, as a sum (Q24): IREE fails on the reshape there ("expected
/// mixed sizes rank to match mixed strides rank").
pub fn reshape_to_number(to: &mut Lowering<'_>) -> bool {
    let becomes_number = to.result_type(0).rank() == 0 && to.operand_type(0).rank() > 0;
    if becomes_number && to.in_kernel() {
        sum_of_one(to);
        return true;
    }
    false
}

/// Writes the one element of operand 0 as a sum over all axes, of it and a zero that changes nothing: that of floats is
/// negative.
fn sum_of_one(to: &mut Lowering<'_>) {
    let scalar = to.result_type(0).clone();
    let (operation, init) = match scalar.dtype {
        DType::Bool => ("stablehlo.or", zero(scalar.dtype)),
        dtype if dtype.is_float() => ("stablehlo.add", float(dtype, -0.0)),
        dtype => ("stablehlo.add", zero(dtype)),
    };
    let from = to.operand_type(0).clone();
    let axes: Vec<usize> = (0..from.rank()).collect();
    let init = to.splat(&scalar, &init);
    let (x, ty, from) = (to.operand(0), scalar.mlir(), from.mlir());
    to.line(&format!(
        "stablehlo.reduce({x} init: {init}) applies {operation} across dimensions = {} : ({from}, {ty}) -> {ty}",
        dims_list(&axes)
    ));
}
