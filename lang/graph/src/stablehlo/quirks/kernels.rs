//! Operations that are not written into kernels, and those that are written there in another way.

use std::collections::HashSet;

use crate::graph::{Equation, Graph, Var};
use crate::primitives::{
    ArgReduce, BroadcastInDim, Convolution, Cumsum, CustomKernel, DotGeneral, Pad, ReduceAnd, ReduceMax,
    ReduceMin, ReduceOr, ReduceProd, ReduceSum, Reshape, Sort, TopK, Transpose,
};
use crate::stablehlo::{Emitter, Lowering, dims_list, float, zero};
use crate::tensor::{DType, TensorType};

/// True if IREE fails on an operation beside others in a kernel ("failed to run translation of source executable", Q26), or is slow
/// with it.
pub fn is_refused_in_kernels(graph: &Graph, eqn: &Equation) -> bool {
    let op = &eqn.op;
    let is_bool = |v: &Var| graph.ty(*v).dtype == DType::Bool;
    op.is::<Convolution>()
        || op.is::<Sort>()
        || op.is::<TopK>()
        || op.is::<CustomKernel>()
        || op.is::<Cumsum>()
        || (op.is::<Pad>() && eqn.inputs.iter().any(is_bool))
}

/// True if the results of an equation in a kernel must not be stored as they are (Q27): IREE makes reductions, products, paddings and
/// the like in the memory that they are stored to, and others that start from the same initial value there too. Element-wise
/// operations are fused with them. `of_operand` tells it of the operands.
pub fn accumulates(eqn: &Equation, of_operand: impl FnMut(&Var) -> bool) -> bool {
    !eqn.op.is_elementwise() || eqn.inputs.iter().any(of_operand)
}

/// Values in a kernel that are read from copies in memory of their own.
pub fn kept_in_memory(graph: &Graph) -> HashSet<Var> {
    let mut kept = meeting_products(graph);
    kept.extend(operands_of_reductions(graph));
    kept.extend(made_often(graph));
    kept
}

/// Number of times that a value may be made in a kernel.
const MAX_TIMES: u32 = 16;

/// Values of operations that are fused, which would be made more than [`MAX_TIMES`] times (Q59): IREE makes the operands of an
/// operation for each operation that reads them, and theirs again for each of them. A chain of values that two operations read each,
/// as in the gradient of an unrolled loop, takes it twice the time for each link.
fn made_often(graph: &Graph) -> HashSet<Var> {
    let mut times = vec![0_u32; graph.types.len()];
    graph.outputs.iter().for_each(|v| times[v.index()] = 1);
    let mut kept = HashSet::new();
    for eqn in graph.equations.iter().rev() {
        let fused = is_fused(eqn) && !eqn.inputs.is_empty();
        let mut own = eqn.outputs.iter().map(|v| times[v.index()]).max().unwrap_or(0);
        if fused && own > MAX_TIMES {
            kept.extend(eqn.outputs.iter().filter(|v| graph.ty(**v).count() > 1));
            own = 1;
        }
        let reads = if fused { own } else { 1 };
        for v in &eqn.inputs {
            times[v.index()] = times[v.index()].saturating_add(reads);
        }
    }
    kept
}

/// The results of products that meet others in an operation other than a product (Q44): IREE makes pieces of what one of them
/// reads, as the operation that they meet in would have it, also along the axis that the product adds up, and each piece's product
/// takes the place of the one before. In memory of their own they meet no more.
fn meeting_products(graph: &Graph) -> HashSet<Var> {
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

/// Values that a reduction depends on by operations that are fused with it, and that are not fused with it themselves: reductions,
/// products and the like, and what other operations read as well (Q45). IREE makes pieces of such a value, and the reduction of each
/// piece takes the place of the one before. Read from memory of its own, the value is not made together with the reduction.
fn operands_of_reductions(graph: &Graph) -> HashSet<Var> {
    let mut reduced = vec![false; graph.types.len()];
    let mut read_apart = vec![false; graph.types.len()];
    graph.outputs.iter().for_each(|v| read_apart[v.index()] = true);
    let mut kept = HashSet::new();
    for eqn in graph.equations.iter().rev() {
        let (reduces, fused) = (reduces(eqn), is_fused(eqn));
        let is_constant = eqn.inputs.is_empty();
        let apart =
            |v: &&Var| reduced[v.index()] && graph.ty(**v).count() > 1 && (!fused || read_apart[v.index()]);
        kept.extend(eqn.outputs.iter().filter(apart).filter(|_| !is_constant));
        let depends = reduces || fused && eqn.outputs.iter().any(|v| reduced[v.index()]);
        for v in &eqn.inputs {
            reduced[v.index()] |= depends;
            read_apart[v.index()] |= !reduces && !fused;
        }
    }
    kept
}

/// True if IREE fuses an equation with what reads its result.
fn is_fused(eqn: &Equation) -> bool {
    let op = &eqn.op;
    op.is_elementwise() || op.is::<BroadcastInDim>() || op.is::<Reshape>() || op.is::<Transpose>()
}

/// True if an equation adds up its operands, or the like.
fn reduces(eqn: &Equation) -> bool {
    let op = &eqn.op;
    op.is::<DotGeneral>()
        || op.is::<ArgReduce>()
        || op.is::<ReduceSum>()
        || op.is::<ReduceMax>()
        || op.is::<ReduceMin>()
        || op.is::<ReduceProd>()
        || op.is::<ReduceAnd>()
        || op.is::<ReduceOr>()
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
        self.copy_elements(x, &ty.mlir(), &vec![0; ty.rank()], ty, memory, to, name);
    }

    /// Writes a copy of a part of `x`, element by element, to memory of the part's shape.
    #[expect(clippy::too_many_arguments, reason = "names and types of both sides")]
    pub(in crate::stablehlo) fn copy_elements(
        &mut self,
        x: &str,
        from: &str,
        start: &[usize],
        part: &TensorType,
        memory: &str,
        to: &str,
        name: &str,
    ) {
        self.each_element(&part.shape, name, |emitter, indices| {
            let places = emitter.moved(indices, start, name);
            emitter.put(&format!("{name}_x = tensor.extract {x}[{}] : {from}", places.join(", ")));
            emitter.put(&format!("memref.store {name}_x, {to}[{}] : {memory}", indices.join(", ")));
        });
    }

    /// Writes a number to each element of memory for a tensor of type `ty`.
    pub(in crate::stablehlo) fn fill(
        &mut self,
        number: &str,
        from: &str,
        ty: &TensorType,
        memory: &str,
        to: &str,
        name: &str,
    ) {
        self.put(&format!("{name}_x = tensor.extract {number}[] : {from}"));
        self.each_element(&ty.shape, name, |emitter, indices| {
            emitter.put(&format!("memref.store {name}_x, {to}[{}] : {memory}", indices.join(", ")));
        });
    }

    /// Writes a copy of `x`, element by element, to a part of memory that begins at `start`.
    pub(in crate::stablehlo) fn place_elements(
        &mut self,
        x: &str,
        ty: &TensorType,
        start: &[usize],
        memory: &str,
        to: &str,
        name: &str,
    ) {
        self.each_element(&ty.shape, name, |emitter, indices| {
            emitter.put(&format!("{name}_x = tensor.extract {x}[{}] : {}", indices.join(", "), ty.mlir()));
            let places = emitter.moved(indices, start, name);
            emitter.put(&format!("memref.store {name}_x, {to}[{}] : {memory}", places.join(", ")));
        });
    }

    /// Writes loops over the indices of a shape; `write` writes what they do, given the names of the indices.
    fn each_element(&mut self, shape: &[usize], name: &str, write: impl FnOnce(&mut Self, &[String])) {
        let indices: Vec<String> = (0..shape.len()).map(|axis| format!("{name}_i{axis}")).collect();
        self.put(&format!("{name}_zero = arith.constant 0 : index"));
        self.put(&format!("{name}_one = arith.constant 1 : index"));
        for (axis, extent) in shape.iter().enumerate() {
            self.put(&format!("{name}_n{axis} = arith.constant {extent} : index"));
        }
        for (axis, index) in indices.iter().enumerate() {
            self.put(&format!("scf.for {index} = {name}_zero to {name}_n{axis} step {name}_one {{"));
        }
        write(self, &indices);
        indices.iter().for_each(|_| self.put("}"));
    }

    /// Writes sums of indices and `start`; the names of the sums.
    fn moved(&mut self, indices: &[String], start: &[usize], name: &str) -> Vec<String> {
        let mut places = indices.to_vec();
        for (axis, first) in start.iter().enumerate().filter(|(_, first)| **first > 0) {
            places[axis] = format!("{name}_from{axis}");
            self.put(&format!("{name}_start{axis} = arith.constant {first} : index"));
            self.put(&format!("{} = arith.addi {}, {name}_start{axis} : index", places[axis], indices[axis]));
        }
        places
    }
}

/// Writes a padding in a kernel, of operand 0 from `low` on with operand 1 around it, element by element into memory of its own
/// (Q43): the compiler may have no end with a part of a padding, at a computed place say, or with another padding of it, and makes
/// vectors of whole paddings, with which LLVM takes most of the compilation (Q60).
pub fn padding(to: &mut Lowering<'_>, low: &[usize]) -> bool {
    if !to.in_kernel() {
        return false;
    }
    let (x, around, name) = (to.operand(0), to.operand(1), to.name_temporary());
    let types = [to.operand_type(0), to.operand_type(1), to.result_type(0)].map(Clone::clone);
    let padded = to.emitter.padded(&[x, around], &types, low, &name);
    to.name_results(&[padded]);
    true
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
