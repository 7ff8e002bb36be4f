//! Operations that are not written into kernels, and those that are written there in another way.

use crate::graph::{Equation, Graph, Var};
use crate::primitives::{ArgReduce, BroadcastInDim, Convolution, Cumsum, Pad, Reshape, Sort};
use crate::stablehlo::{Lowering, dims_list, float, zero};
use crate::tensor::DType;

/// True if IREE fails on an operation beside others in a kernel ("failed to run translation of source executable", Q26), is slow
/// with it, or computes something else: the positions of a maximum and of a minimum change places (Q27).
pub fn is_refused_in_kernels(graph: &Graph, eqn: &Equation) -> bool {
    let op = &eqn.op;
    let is_bool = |v: &Var| graph.ty(*v).dtype == DType::Bool;
    op.is::<Convolution>()
        || op.is::<ArgReduce>()
        || op.is::<Sort>()
        || op.is::<Cumsum>()
        || (op.is::<Pad>() && eqn.inputs.iter().any(is_bool))
        || ((op.is::<Reshape>() || op.is::<BroadcastInDim>()) && gives_axes_to_a_number(graph, eqn))
}

/// True if the operand has no axes, and the result has, of extent 1 (Q25): IREE fails on it in a kernel ("rank 0 memrefs can only
/// be extended/collapsed with/from ones").
fn gives_axes_to_a_number(graph: &Graph, eqn: &Equation) -> bool {
    let (from, to) = (graph.ty(eqn.inputs[0]), graph.ty(eqn.outputs[0]));
    from.rank() == 0 && to.rank() > 0 && to.count() == 1
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
