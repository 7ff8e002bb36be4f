//! Small loops and small programs as one kernel.
//!
//! A dispatch of IREE takes about a microsecond, whatever it computes. The operations of a small program are therefore
//! written into one `flow.dispatch.workgroups`, and so is a loop with a small step. What such a loop carries is memory of
//! the kernel, its rows are read from the operands and written to the results in place: neither is a loop-carried tensor,
//! which IREE 3.13 fails on where an extent is 1 or a vector is carried ("operand #0 does not dominate this use", "Yield
//! operand is not equivalent to the corresponding iter bbArg").

use std::any::Any;
use std::mem::{replace, take};

use super::loops::has_loops;
use super::{Emitter, KernelSize, Lowering, Model};
use crate::graph::{Equation, Graph, Var};
use crate::primitives::{ArgReduce, BroadcastInDim, Convolution, Cumsum, Pad, Reshape, Sort};
use crate::tensor::{DType, TensorType};

/// What a kernel holds at most.
struct Limits {
    /// Elements of a value.
    elements: usize,
    /// Scalar operations (as [`Graph::cost`] has them), those of a step of its loop.
    work: u64,
    /// Bytes that a loop carries. They are on the stack, twice.
    carried: usize,
}

impl Limits {
    /// None for a model without such kernels.
    fn of(model: Model) -> Option<Limits> {
        match model {
            Model::Hal | Model::Blocks | Model::Gpu => None,
            // More are quicker as several kernels, each with its tiles (`docs/benchmarks.md`).
            Model::Kernels(KernelSize::Small) => {
                Some(Limits { elements: 4096, work: 40_000, carried: 8 << 10 })
            }
            Model::Kernels(KernelSize::Any) => {
                Some(Limits { elements: 1 << 16, work: 10_000_000, carried: 32 << 10 })
            }
        }
    }

    /// True if the equations of a graph fit.
    fn hold(&self, graph: &Graph) -> bool {
        let mut fits = graph.cost() <= self.work;
        graph.visit(&mut |function, eqn| {
            fits &= !is_refused(function, eqn);
            let sizes = eqn.inputs.iter().chain(&eqn.outputs).map(|v| function.ty(*v).count());
            fits &= sizes.clone().all(|count| (1..=self.elements).contains(&count));
        });
        fits
    }
}

/// The kernel that is being written.
#[derive(Default)]
pub(super) struct Kernel {
    /// Constants of the program that are arguments of `main`: the argument, and its type.
    captured: Vec<(String, TensorType)>,
}

impl Kernel {
    /// The name in the kernel of a constant that is an argument of `main`.
    pub(super) fn capture(&mut self, argument: String, ty: &TensorType) -> String {
        let known = self.captured.iter().position(|(name, _)| *name == argument);
        let place = known.unwrap_or_else(|| {
            self.captured.push((argument, ty.clone()));
            self.captured.len() - 1
        });
        format!("%kernelconstant{place}")
    }
}

/// True if IREE 3.13 fails on an operation beside others in a kernel ("failed to run translation of source executable"), is slow
/// with it, or computes something else: the positions of a maximum and of a minimum change places.
fn is_refused(graph: &Graph, eqn: &Equation) -> bool {
    let op = eqn.op.as_ref() as &dyn Any;
    let is_bool = |v: &Var| graph.ty(*v).dtype == DType::Bool;
    op.is::<Convolution>()
        || op.is::<ArgReduce>()
        || op.is::<Sort>()
        || op.is::<Cumsum>()
        || (op.is::<Pad>() && eqn.inputs.iter().any(is_bool))
        || ((op.is::<Reshape>() || op.is::<BroadcastInDim>()) && gives_axes_to_a_number(graph, eqn))
}

/// True if the operand has no axes, and the result has, of extent 1: IREE 3.13 fails on it in a kernel ("rank 0 memrefs can only be
/// extended/collapsed with/from ones").
fn gives_axes_to_a_number(graph: &Graph, eqn: &Equation) -> bool {
    let (from, to) = (graph.ty(eqn.inputs[0]), graph.ty(eqn.outputs[0]));
    from.rank() == 0 && to.rank() > 0 && to.count() == 1
}

/// Most operands and results of a kernel: IREE binds 32 buffers, and constants come besides.
const BINDINGS: usize = 24;

/// True if a program is one kernel: it has no loops, which are kernels of their own.
pub(super) fn program_fits(graph: &Graph, model: Model) -> bool {
    let mut variables = graph.inputs.iter().chain(&graph.outputs);
    !graph.outputs.is_empty()
        && graph.inputs.len() + graph.outputs.len() <= BINDINGS
        && graph.equations.len() > 1
        && variables.all(|v| graph.ty(*v).count() > 0)
        && !has_loops(graph)
        && Limits::of(model).is_some_and(|limits| limits.hold(graph))
}

/// The type in which memory holds a tensor: IREE has no memory of booleans, and MLIR's kernels no unsigned numbers.
fn stored(ty: &TensorType) -> TensorType {
    match ty.dtype {
        DType::Bool => ty.with_dtype(DType::I8),
        dtype if dtype.is_unsigned() => ty.with_dtype(dtype.as_signed_bits()),
        _ => ty.clone(),
    }
}

/// `!iree_tensor_ext.dispatch.tensor<readonly:tensor<4x2xf32>>`.
fn binding(access: &str, ty: &TensorType) -> String {
    format!("!iree_tensor_ext.dispatch.tensor<{access}:{}>", ty.mlir())
}

/// `memref<4x2xf32>`.
fn memory(ty: &TensorType) -> String {
    ty.mlir().replacen("tensor", "memref", 1)
}

/// The box of a whole tensor.
fn whole(ty: &TensorType) -> String {
    bounds(&vec!["0".to_owned(); ty.rank()], &ty.shape)
}

/// A box, as MLIR writes it.
fn bounds(offsets: &[String], sizes: &[usize]) -> String {
    format!("offsets = [{}], sizes = {sizes:?}, strides = {:?}", offsets.join(", "), vec![1; sizes.len()])
}

/// The box of one row of a tensor of rows of type `ty`, and its place.
fn row_bounds(ty: &TensorType, position: &str) -> (Vec<String>, Vec<usize>) {
    let offsets = std::iter::once(position.to_owned()).chain(vec!["0".to_owned(); ty.rank()]).collect();
    let sizes = std::iter::once(1).chain(ty.shape.iter().copied()).collect();
    (offsets, sizes)
}

/// Memory of a kernel for a tensor.
#[derive(Clone)]
pub struct Cell {
    name: String,
    ty: TensorType,
}

/// A tensor of rows from which a loop reads, or to which it writes.
#[derive(Clone)]
pub enum Rows {
    /// An operand or a result of the kernel.
    Binding(String, TensorType),
    /// A value in the kernel.
    Value(String),
    /// Memory of the kernel.
    Cell(Cell),
}

impl Emitter {
    fn put(&mut self, line: &str) {
        self.body.push_str("    ");
        self.body.push_str(line);
        self.body.push('\n');
    }

    /// Writes a conversion of `x` between a type and the one in which it is stored; its name.
    fn stored_as(&mut self, x: &str, from: &TensorType, to: &TensorType, name: &str) -> String {
        if from.dtype == to.dtype {
            return x.to_owned();
        }
        let (a, b) = (from.mlir(), to.mlir());
        if to.dtype == DType::Bool {
            self.put(&format!("{name}_0 = stablehlo.constant dense<0> : {a}"));
            self.put(&format!("{name} = stablehlo.compare NE, {x}, {name}_0, SIGNED : ({a}, {a}) -> {b}"));
        } else {
            let operation = if from.dtype == DType::Bool { "convert" } else { "bitcast_convert" };
            self.put(&format!("{name} = stablehlo.{operation} {x} : ({a}) -> {b}"));
        }
        name.to_owned()
    }

    /// Writes a kernel of these operands, each with its type. `write` writes what is in it, given the names of its bindings
    /// for operands and results. The names of the results start with `prefix`.
    pub(super) fn kernel(
        &mut self,
        operands: &[(String, TensorType)],
        results: &[TensorType],
        prefix: &str,
        write: impl FnOnce(&mut Emitter, &[Rows], &[Rows]),
    ) -> Vec<String> {
        let mut outer: Vec<(String, TensorType)> = Vec::new();
        for (i, (name, ty)) in operands.iter().enumerate() {
            let held = stored(ty);
            outer.push((self.stored_as(name, ty, &held, &format!("{prefix}in{i}")), held));
        }
        let bindings = |kind: &str, types: &[TensorType]| -> Vec<Rows> {
            let name = |i| format!("{prefix}{kind}{i}");
            types.iter().enumerate().map(|(i, ty)| Rows::Binding(name(i), ty.clone())).collect()
        };
        let types: Vec<TensorType> = operands.iter().map(|(_, ty)| ty.clone()).collect();
        let (read, written) = (bindings("d", &types), bindings("o", results));

        self.has_kernels = true;
        let before = take(&mut self.body);
        self.kernel = Some(Kernel::default());
        write(self, &read, &written);
        let inside = replace(&mut self.body, before);
        let captured = self.kernel.take().map_or_else(Vec::new, |kernel| kernel.captured);

        let mut parameters: Vec<String> = outer
            .iter()
            .enumerate()
            .map(|(i, (_, ty))| format!("{prefix}d{i}: {}", binding("readonly", ty)))
            .collect();
        let mut loads = Vec::new();
        for (i, (argument, ty)) in captured.into_iter().enumerate() {
            let held = stored(&ty);
            let from = binding("readonly", &held);
            parameters.push(format!("{prefix}c{i}: {from}"));
            loads.push((i, from, ty, held.clone()));
            let name = self.stored_as(&argument, &loads[i].2, &held, &format!("{prefix}cin{i}"));
            outer.push((name, held));
        }
        let held: Vec<TensorType> = results.iter().map(stored).collect();
        parameters.extend(
            held.iter().enumerate().map(|(i, ty)| format!("{prefix}o{i}: {}", binding("writeonly", ty))),
        );
        let list = |types: &mut dyn Iterator<Item = String>| types.collect::<Vec<_>>().join(", ");
        let raw: Vec<String> = (0..results.len()).map(|i| format!("{prefix}r{i}")).collect();
        self.put(&format!(
            "{} = flow.dispatch.workgroups({}) : ({}) -> ({}) = ({}) {{",
            raw.join(", "),
            list(&mut outer.iter().map(|(name, _)| name.clone())),
            list(&mut outer.iter().map(|(_, ty)| ty.mlir())),
            list(&mut held.iter().map(TensorType::mlir)),
            parameters.join(", "),
        ));
        for (i, from, ty, held) in loads {
            let whole = whole(&held);
            let to = held.mlir();
            self.put(&format!(
                "{prefix}cl{i} = iree_tensor_ext.dispatch.tensor.load {prefix}c{i}, {whole} : {from} -> {to}"
            ));
            let name = format!("%kernelconstant{i}");
            let loaded = self.stored_as(&format!("{prefix}cl{i}"), &held, &ty, &name);
            if loaded != name {
                self.put(&format!("{name} = stablehlo.reshape {loaded} : ({to}) -> {to}"));
            }
        }
        self.body.push_str(&inside);
        self.put("flow.return");
        self.put("} count() -> (index, index, index) {");
        self.put(&format!("{prefix}one = arith.constant 1 : index"));
        self.put(&format!("flow.return {prefix}one, {prefix}one, {prefix}one : index, index, index"));
        self.put("}");
        let mut names = Vec::new();
        for (i, (ty, held)) in results.iter().zip(&held).enumerate() {
            names.push(self.stored_as(&raw[i], held, ty, &format!("{prefix}v{i}")));
        }
        names
    }

    /// Writes a program as one kernel; the names of its results.
    pub(super) fn program_as_kernel(&mut self, graph: &Graph) -> Vec<String> {
        let operands: Vec<(String, TensorType)> = graph
            .inputs
            .iter()
            .enumerate()
            .map(|(i, v)| (format!("%arg{i}"), graph.ty(*v).clone()))
            .collect();
        let results: Vec<TensorType> = graph.outputs.iter().map(|v| graph.ty(*v).clone()).collect();
        self.kernel(&operands, &results, "%k", |emitter, read, written| {
            let loaded: Vec<String> = read.iter().map(|x| emitter.load(x)).collect();
            let made = emitter.equations(graph, loaded.into_iter(), "");
            for (value, result) in made.iter().zip(written) {
                emitter.store(value, result);
            }
        })
    }

    /// Writes the whole tensor of an operand of the kernel; its name.
    pub(super) fn load(&mut self, rows: &Rows) -> String {
        let Rows::Binding(name, ty) = rows else { unreachable!("an operand of a kernel") };
        let held = stored(ty);
        let value = format!("{name}_value");
        self.put(&format!(
            "{value}s = iree_tensor_ext.dispatch.tensor.load {name}, {} : {} -> {}",
            whole(&held),
            binding("readonly", &held),
            held.mlir()
        ));
        self.stored_as(&format!("{value}s"), &held, ty, &value)
    }

    /// Writes a whole result of the kernel.
    pub(super) fn store(&mut self, value: &str, rows: &Rows) {
        let Rows::Binding(name, ty) = rows else { unreachable!("a result of a kernel") };
        let held = stored(ty);
        let value = self.stored_as(value, ty, &held, &format!("{name}_value"));
        self.put(&format!(
            "iree_tensor_ext.dispatch.tensor.store {value}, {name}, {} : {} -> {}",
            whole(&held),
            held.mlir(),
            binding("writeonly", &held)
        ));
    }
}

impl Lowering<'_> {
    /// True if what is written is inside of a kernel.
    pub fn in_kernel(&self) -> bool {
        self.emitter.kernel.is_some()
    }

    /// True if a loop here, with these functions and states, is to be a kernel.
    pub fn can_be_kernel<'a>(
        &self,
        functions: &[&Graph],
        carried: impl Iterator<Item = &'a TensorType>,
    ) -> bool {
        let Some(limits) = Limits::of(self.emitter.model) else { return false };
        let operands = (0..self.operand_count()).map(|i| self.operand_type(i));
        let results = (0..self.eqn.outputs.len()).map(|i| self.result_type(i));
        let carried: usize = carried.map(|ty| ty.count() * ty.dtype.byte_width()).sum();
        self.emitter.kernel.is_none()
            && self.emitter.regions == 0
            && self.operand_count() + self.eqn.outputs.len() <= BINDINGS
            && operands.chain(results).all(|ty| ty.count() > 0)
            && carried <= limits.carried
            && functions.iter().all(|function| limits.hold(function))
    }

    /// Writes a kernel of the operation's operands and results. `write` writes what is in it.
    pub fn as_kernel(&mut self, write: impl FnOnce(&mut Lowering<'_>, &[Rows], &[Rows])) {
        let operands: Vec<(String, TensorType)> =
            (0..self.operand_count()).map(|i| (self.operand(i), self.operand_type(i).clone())).collect();
        let results: Vec<TensorType> =
            (0..self.eqn.outputs.len()).map(|i| self.result_type(i).clone()).collect();
        let prefix = format!("{}k", self.name_temporary());
        let Lowering { graph, eqn, recorded, sources, names, emitter, temporaries } = self;
        let made = emitter.kernel(&operands, &results, &prefix, |emitter, read, written| {
            let mut inside =
                Lowering { graph, eqn, recorded, sources, names, emitter, temporaries: *temporaries };
            write(&mut inside, read, written);
            *temporaries = inside.temporaries;
        });
        self.name_results(&made);
    }

    /// Writes the whole tensor of an operand of the kernel; its name.
    pub fn load(&mut self, rows: &Rows) -> String {
        self.emitter.load(rows)
    }

    /// Writes a whole result of the kernel.
    pub fn store(&mut self, value: &str, rows: &Rows) {
        self.emitter.store(value, rows);
    }

    /// Writes memory of the kernel for a tensor.
    pub fn new_cell(&mut self, ty: &TensorType) -> Cell {
        let name = self.temporary(&format!("memref.alloca() : {}", memory(&stored(ty))));
        Cell { name, ty: ty.clone() }
    }

    /// Writes a tensor into memory.
    pub fn write_cell(&mut self, cell: &Cell, value: &str) {
        let held = stored(&cell.ty);
        let name = self.name_temporary();
        let value = self.emitter.stored_as(value, &cell.ty, &held, &name);
        self.raw(&format!(
            "bufferization.materialize_in_destination {value} in writable {} : ({}, {}) -> ()",
            cell.name,
            held.mlir(),
            memory(&held)
        ));
    }

    /// Writes a reading of memory; the name of the tensor.
    pub fn read_cell(&mut self, cell: &Cell) -> String {
        let held = stored(&cell.ty);
        let (ty, memory) = (held.mlir(), memory(&held));
        let value =
            self.temporary(&format!("bufferization.to_tensor {} restrict : {memory} to {ty}", cell.name));
        let name = self.name_temporary();
        self.emitter.stored_as(&value, &held, &cell.ty, &name)
    }

    /// Writes a copy from memory to memory.
    pub fn copy_cell(&mut self, from: &Cell, to: &Cell) {
        let memory = memory(&stored(&from.ty));
        self.raw(&format!("memref.copy {}, {} : {memory} to {memory}", from.name, to.name));
    }

    /// Writes the reading of a row of type `ty` at a position on the host, of `length` rows.
    pub fn read_kernel_row(&mut self, rows: &Rows, ty: &TensorType, length: usize, position: &str) -> String {
        let (offsets, sizes) = row_bounds(ty, position);
        let held = stored(ty);
        match rows {
            Rows::Binding(name, all) => {
                let from = binding("readonly", &stored(all));
                let row = self.temporary(&format!(
                    "iree_tensor_ext.dispatch.tensor.load {name}, {} : {from} -> {}",
                    bounds(&offsets, &sizes),
                    held.mlir()
                ));
                let name = self.name_temporary();
                self.emitter.stored_as(&row, &held, ty, &name)
            }
            Rows::Value(name) => {
                let all = TensorType::new(ty.dtype, [&[length], &ty.shape[..]].concat().as_slice());
                let held_all = stored(&all);
                let converted = self.name_temporary();
                let all_name = self.emitter.stored_as(name, &all, &held_all, &converted);
                let row = self.temporary(&format!(
                    "tensor.extract_slice {all_name}[{}] {sizes:?} {:?} : {} to {}",
                    offsets.join(", "),
                    vec![1; sizes.len()],
                    held_all.mlir(),
                    held.mlir()
                ));
                let name = self.name_temporary();
                self.emitter.stored_as(&row, &held, ty, &name)
            }
            Rows::Cell(_) => unreachable!("loops read rows of values"),
        }
    }

    /// Writes a row of type `ty` at a position on the host, of `length` rows.
    pub fn write_kernel_row(
        &mut self,
        rows: &Rows,
        value: &str,
        ty: &TensorType,
        length: usize,
        position: &str,
    ) {
        let (offsets, sizes) = row_bounds(ty, position);
        let held = stored(ty);
        let converted = self.name_temporary();
        let value = self.emitter.stored_as(value, ty, &held, &converted);
        match rows {
            Rows::Binding(name, all) => self.raw(&format!(
                "iree_tensor_ext.dispatch.tensor.store {value}, {name}, {} : {} -> {}",
                bounds(&offsets, &sizes),
                held.mlir(),
                binding("writeonly", &stored(all))
            )),
            Rows::Cell(cell) => {
                let all = memory(&stored(&cell.ty));
                let layout = row_memory(&held);
                let row = self.temporary(&format!(
                    "memref.subview {}[{}] {sizes:?} {:?} : {all} to {layout}",
                    cell.name,
                    offsets.join(", "),
                    vec![1; sizes.len()],
                ));
                self.raw(&format!(
                    "bufferization.materialize_in_destination {value} in writable {row} : ({}, {layout}) -> ()",
                    held.mlir()
                ));
                debug_assert_eq!(cell.ty.shape[0], length, "rows of the stack");
            }
            Rows::Value(_) => unreachable!("loops write rows to memory"),
        }
    }
}

/// The type of a row of memory: contiguous, at a place that the program computes.
fn row_memory(row: &TensorType) -> String {
    let mut strides = vec![1; row.rank()];
    for axis in (1..row.rank()).rev() {
        strides[axis - 1] = strides[axis] * row.shape[axis];
    }
    let strides: Vec<String> = strides.iter().map(ToString::to_string).collect();
    memory(row).replace('>', &format!(", strided<[{}], offset: ?>>", strides.join(", ")))
}
