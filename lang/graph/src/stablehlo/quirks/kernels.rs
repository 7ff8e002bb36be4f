//! Operations that are not written into kernels, and those that are written there in another way.

use std::collections::HashSet;

use crate::graph::{Equation, Graph, Var};
use crate::primitives::{Convolution, Cumsum, DotGeneral, Pad, Sort};
use crate::stablehlo::{Emitter, Lowering, dims_list, float, zero};
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

/// True if a padding depends on another one (Q43): the compiler may never end with a padding of a part of a padding in a kernel, as the
/// second derivative of an indexing has it.
pub fn pads_paddings(graph: &Graph) -> bool {
    let mut of_padding: HashSet<Var> = HashSet::new();
    graph.equations.iter().any(|eqn| {
        let depends = eqn.inputs.iter().any(|v| of_padding.contains(v));
        let pads = eqn.op.is::<Pad>();
        if depends || pads {
            of_padding.extend(&eqn.outputs);
        }
        (depends && pads) || eqn.op.functions().into_iter().any(pads_paddings)
    })
}

/// True if the results of an equation in a kernel must not be stored as they are (Q27): IREE makes reductions, products, paddings and
/// the like in the memory that they are stored to, and others that start from the same initial value there too. Element-wise
/// operations are fused with them. `of_operand` tells it of the operands.
pub fn accumulates(eqn: &Equation, of_operand: impl FnMut(&Var) -> bool) -> bool {
    !eqn.op.is_elementwise() || eqn.inputs.iter().any(of_operand)
}

/// The results of products that meet others in an operation other than a product (Q44): IREE makes pieces of what one of them
/// reads, as the operation that they meet in would have it, also along the axis that the product adds up, and each piece's product
/// takes the place of the one before. In memory of their own they meet no more.
pub fn meeting_products(graph: &Graph) -> HashSet<Var> {
    let mut meeting = HashSet::new();
    // The products whose results each variable depends on by other operations alone.
    let mut products: Vec<Vec<Var>> = vec![Vec::new(); graph.types.len()];
    for eqn in &graph.equations {
        let found = if eqn.op.is::<DotGeneral>() {
            eqn.outputs.to_vec()
        } else {
            let mut found: Vec<Var> = eqn.inputs.iter().flat_map(|v| products[v.index()].clone()).collect();
            found.sort_unstable();
            found.dedup();
            if found.len() > 1 {
                meeting.extend(found.drain(..));
            }
            found
        };
        eqn.outputs.iter().for_each(|v| products[v.index()].clone_from(&found));
    }
    meeting
}

impl Emitter {
    /// Writes a value that [`accumulates`] element by element to memory of its own (Q27).
    pub(in crate::stablehlo) fn detach(
        &mut self,
        x: &str,
        ty: &TensorType,
        memory: &str,
        to: &str,
        name: &str,
    ) {
        let t = ty.mlir();
        let indices: Vec<String> = (0..ty.rank()).map(|axis| format!("{name}_i{axis}")).collect();
        self.put(&format!("{name}_zero = arith.constant 0 : index"));
        self.put(&format!("{name}_one = arith.constant 1 : index"));
        for (axis, extent) in ty.shape.iter().enumerate() {
            self.put(&format!("{name}_n{axis} = arith.constant {extent} : index"));
        }
        for (axis, index) in indices.iter().enumerate() {
            self.put(&format!("scf.for {index} = {name}_zero to {name}_n{axis} step {name}_one {{"));
        }
        let indices = indices.join(", ");
        self.put(&format!("{name}_x = tensor.extract {x}[{indices}] : {t}"));
        self.put(&format!("memref.store {name}_x, {to}[{indices}] : {memory}"));
        (0..ty.rank()).for_each(|_| self.put("}"));
    }
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
