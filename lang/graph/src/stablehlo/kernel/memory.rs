//! Memory of a kernel: its operands and results, and allocations.

use super::super::{Emitter, Lowering};
use crate::tensor::{DType, Shape, TensorType};

/// The type in which memory holds a tensor: IREE has no memory of booleans, and MLIR's kernels no unsigned numbers (Q30).
pub(super) fn stored(ty: &TensorType) -> TensorType {
    if ty.dtype == DType::Bool { ty.with_dtype(DType::I8) } else { ty.signless() }
}

/// `!iree_tensor_ext.dispatch.tensor<readonly:tensor<4x2xf32>>`, of a type as it is stored.
pub(super) fn binding_type(access: &str, held: &TensorType) -> String {
    format!("!iree_tensor_ext.dispatch.tensor<{access}:{}>", held.mlir())
}

/// `memref<4x2xf32>`, of a type as it is stored.
fn memory_type(held: &TensorType) -> String {
    held.mlir().replacen("tensor", "memref", 1)
}

/// Type of a row in memory: contiguous, at a place that the program computes.
fn row_memory_type(held: &TensorType) -> String {
    let mut strides = vec![1; held.rank()];
    for axis in (1..held.rank()).rev() {
        strides[axis - 1] = strides[axis] * held.shape[axis];
    }
    let strides: Vec<String> = strides.iter().map(ToString::to_string).collect();
    memory_type(held).replace('>', &format!(", strided<[{}], offset: ?>>", strides.join(", ")))
}

/// A box of a tensor.
struct Region {
    offsets: Vec<String>,
    sizes: Vec<usize>,
}

impl Region {
    /// All of a tensor.
    fn whole(ty: &TensorType) -> Region {
        Region { offsets: vec!["0".to_owned(); ty.rank()], sizes: ty.shape.to_vec() }
    }

    /// The row at `position` of a tensor.
    fn row(rows: &TensorType, position: &str) -> Region {
        let mut region = Region::whole(rows);
        position.clone_into(&mut region.offsets[0]);
        region.sizes[0] = 1;
        region
    }

    /// As IREE writes it: `offsets = [%i, 0], sizes = [1, 4], strides = [1, 1]`.
    fn named(&self) -> String {
        let Region { offsets, sizes } = self;
        format!("offsets = [{}], sizes = {sizes:?}, strides = {:?}", offsets.join(", "), vec![1; sizes.len()])
    }

    /// As MLIR writes it: `[%i, 0] [1, 4] [1, 1]`.
    fn plain(&self) -> String {
        let Region { offsets, sizes } = self;
        format!("[{}] {sizes:?} {:?}", offsets.join(", "), vec![1; sizes.len()])
    }
}

/// Type of one row of a tensor.
fn row_type(rows: &TensorType) -> TensorType {
    TensorType::new(rows.dtype, Shape::from_slice(&rows.shape[1..]))
}

/// An operand or a result of a kernel.
#[derive(Clone)]
pub struct Binding {
    pub(super) name: String,
    pub(super) ty: TensorType,
}

/// Memory that a kernel allocates for a tensor.
#[derive(Clone)]
pub struct Cell {
    name: String,
    ty: TensorType,
}

/// A tensor from which a loop reads rows.
#[derive(Clone)]
pub enum RowSource {
    /// An operand of the kernel.
    Binding(Binding),
    /// A value in the kernel: its name and type.
    Value(String, TensorType),
}

/// A tensor to which a loop writes rows.
#[derive(Clone)]
pub enum RowTarget {
    /// A result of the kernel.
    Binding(Binding),
    /// Memory of the kernel.
    Cell(Cell),
}

impl Emitter {
    /// Writes a conversion of `x` between a type and the one in which it is stored, if they differ; the name of the result.
    pub(super) fn stored_as(&mut self, x: &str, from: &TensorType, to: &TensorType, name: &str) -> String {
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

    /// Writes a value as memory holds it, and as it may be stored.
    fn storable(&mut self, x: &str, ty: &TensorType, name: &str) -> String {
        let held = stored(ty);
        let value = self.stored_as(x, ty, &held, name);
        if !self.accumulates(x) {
            return value;
        }
        let memory = memory_type(&held);
        self.put(&format!("{name}_cell = memref.alloca() : {memory}"));
        self.detach(&value, &held, &memory, &format!("{name}_cell"), &format!("{name}_to"));
        self.put(&format!(
            "{name}_own = bufferization.to_tensor {name}_cell restrict : {memory} to {}",
            held.mlir()
        ));
        format!("{name}_own")
    }

    /// Writes a copy of a value to memory of its own; the name of the tensor that is read from there.
    pub(in crate::stablehlo) fn in_own_memory(&mut self, x: &str, ty: &TensorType) -> String {
        let name = format!("%own{}", x.trim_start_matches('%'));
        self.part_in_own_memory(x, ty, &vec![0; ty.rank()], ty, &name)
    }

    /// Writes a copy of a part of a value to memory of its own; the name of the tensor that is read from there.
    pub(in crate::stablehlo) fn part_in_own_memory(
        &mut self,
        x: &str,
        ty: &TensorType,
        start: &[usize],
        part: &TensorType,
        name: &str,
    ) -> String {
        let (held, held_part) = (stored(ty), stored(part));
        let (memory, cell) = (memory_type(&held_part), format!("{name}_cell"));
        let value = self.stored_as(x, ty, &held, &format!("{name}_held"));
        self.put(&format!("{cell} = memref.alloca() : {memory}"));
        self.copy_elements(&value, &held.mlir(), start, &held_part, &memory, &cell, &format!("{name}_to"));
        let own = format!("{name}_own");
        self.put(&format!(
            "{own} = bufferization.to_tensor {cell} restrict : {memory} to {}",
            held_part.mlir()
        ));
        self.stored_as(&own, &held_part, part, &format!("{name}_value"))
    }

    /// Writes a padding of `x` with the number `around`, from `low` on, element by element to memory of its own; the name of the
    /// tensor that is read from there. `types` are those of both and of the result.
    pub(in crate::stablehlo) fn padded(
        &mut self,
        [x, around]: &[String; 2],
        types: &[TensorType; 3],
        low: &[usize],
        name: &str,
    ) -> String {
        let [from, number, to] = types;
        let [held_from, held_number, held] = types.each_ref().map(stored);
        let (memory, cell) = (memory_type(&held), format!("{name}_cell"));
        let x = self.stored_as(x, from, &held_from, &format!("{name}_x_held"));
        let around = self.stored_as(around, number, &held_number, &format!("{name}_around_held"));
        self.put(&format!("{cell} = memref.alloca() : {memory}"));
        self.fill(&around, &held_number.mlir(), &held, &memory, &cell, &format!("{name}_around"));
        self.place_elements(&x, &held_from, low, &memory, &cell, &format!("{name}_to"));
        let own = format!("{name}_own");
        self.put(&format!("{own} = bufferization.to_tensor {cell} restrict : {memory} to {}", held.mlir()));
        self.stored_as(&own, &held, to, &format!("{name}_value"))
    }

    fn accumulates(&self, x: &str) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.accumulates(x))
    }

    /// Writes a reading of a whole operand of the kernel; the name of the tensor.
    pub(super) fn load(&mut self, operand: &Binding) -> String {
        let Binding { name, ty } = operand;
        let value = format!("{name}_value");
        self.load_whole(&format!("{value}s"), name, ty);
        self.stored_as(&format!("{value}s"), &stored(ty), ty, &value)
    }

    /// Writes `result`: all that a binding for a tensor of type `ty` holds, in the type in which it is stored.
    pub(super) fn load_whole(&mut self, result: &str, binding: &str, ty: &TensorType) {
        let held = stored(ty);
        self.put(&format!(
            "{result} = iree_tensor_ext.dispatch.tensor.load {binding}, {} : {} -> {}",
            Region::whole(&held).named(),
            binding_type("readonly", &held),
            held.mlir()
        ));
    }

    /// Writes a whole result of the kernel.
    pub(super) fn store(&mut self, value: &str, result: &Binding) {
        let Binding { name, ty } = result;
        let held = stored(ty);
        let value = self.storable(value, ty, &format!("{name}_value"));
        self.put(&format!(
            "iree_tensor_ext.dispatch.tensor.store {value}, {name}, {} : {} -> {}",
            Region::whole(&held).named(),
            held.mlir(),
            binding_type("writeonly", &held)
        ));
    }
}

impl Lowering<'_> {
    /// Writes a reading of a whole operand of the kernel; the name of the tensor.
    pub fn load(&mut self, operand: &Binding) -> String {
        self.emitter.load(operand)
    }

    /// Writes a whole result of the kernel.
    pub fn store(&mut self, value: &str, result: &Binding) {
        self.emitter.store(value, result);
    }

    /// Writes a part of operand 0, if it is computed in a kernel, as a copy of its own (Q43): the compiler may have no end with a
    /// slice of a padding or of a comparison, which booleans in memory are.
    pub fn part_of_computed(&mut self, start: &[usize]) -> bool {
        let computed = self.is_computed(0) || self.operand_type(0).dtype == DType::Bool;
        if !self.in_kernel() || !computed {
            return false;
        }
        let (x, name) = (self.operand(0), self.name_temporary());
        let (ty, part) = (self.operand_type(0).clone(), self.result_type(0).clone());
        let copy = self.emitter.part_in_own_memory(&x, &ty, start, &part, &name);
        self.name_results(&[copy]);
        true
    }

    /// Writes an allocation of memory of the kernel for a tensor.
    pub fn new_cell(&mut self, ty: &TensorType) -> Cell {
        let name = self.temporary(&format!("memref.alloca() : {}", memory_type(&stored(ty))));
        Cell { name, ty: ty.clone() }
    }

    /// Writes a tensor into memory.
    pub fn write_cell(&mut self, cell: &Cell, value: &str) {
        let held = stored(&cell.ty);
        let (held_value, memory) = (self.converted(value, &cell.ty, &held), memory_type(&held));
        if self.emitter.accumulates(value) {
            let name = self.name_temporary();
            return self.emitter.detach(&held_value, &held, &memory, &cell.name, &name);
        }
        self.raw(&format!(
            "bufferization.materialize_in_destination {held_value} in writable {} : ({}, {memory}) -> ()",
            cell.name,
            held.mlir(),
        ));
    }

    /// Writes a reading of memory; the name of the tensor.
    pub fn read_cell(&mut self, cell: &Cell) -> String {
        let held = stored(&cell.ty);
        let (ty, memory) = (held.mlir(), memory_type(&held));
        let value =
            self.temporary(&format!("bufferization.to_tensor {} restrict : {memory} to {ty}", cell.name));
        self.converted(&value, &held, &cell.ty)
    }

    /// Writes a copy from memory to memory.
    pub fn copy_cell(&mut self, from: &Cell, to: &Cell) {
        let memory = memory_type(&stored(&from.ty));
        self.raw(&format!("memref.copy {}, {} : {memory} to {memory}", from.name, to.name));
    }

    /// Writes a reading of the row at `position`, an `index`; the name of the row, without its first axis.
    pub fn read_kernel_row(&mut self, rows: &RowSource, position: &str) -> String {
        let (RowSource::Binding(Binding { ty, .. }) | RowSource::Value(_, ty)) = rows;
        let (one, region) = (row_type(ty), Region::row(ty, position));
        let (held, held_one) = (stored(ty), stored(&one));
        let row = match rows {
            RowSource::Binding(binding) => self.temporary(&format!(
                "iree_tensor_ext.dispatch.tensor.load {}, {} : {} -> {}",
                binding.name,
                region.named(),
                binding_type("readonly", &held),
                held_one.mlir()
            )),
            RowSource::Value(name, _) => {
                let all = self.converted(name, ty, &held);
                self.temporary(&format!(
                    "tensor.extract_slice {all}{} : {} to {}",
                    region.plain(),
                    held.mlir(),
                    held_one.mlir()
                ))
            }
        };
        self.converted(&row, &held_one, &one)
    }

    /// Writes the row at `position`, an `index`.
    pub fn write_kernel_row(&mut self, rows: &RowTarget, value: &str, position: &str) {
        let (RowTarget::Binding(Binding { ty, .. }) | RowTarget::Cell(Cell { ty, .. })) = rows;
        let (one, region) = (row_type(ty), Region::row(ty, position));
        let (held, held_one) = (stored(ty), stored(&one));
        let name = self.name_temporary();
        let value = self.emitter.storable(value, &one, &name);
        match rows {
            RowTarget::Binding(binding) => self.raw(&format!(
                "iree_tensor_ext.dispatch.tensor.store {value}, {}, {} : {} -> {}",
                binding.name,
                region.named(),
                held_one.mlir(),
                binding_type("writeonly", &held)
            )),
            RowTarget::Cell(cell) => {
                let layout = row_memory_type(&held_one);
                let row = self.temporary(&format!(
                    "memref.subview {}{} : {} to {layout}",
                    cell.name,
                    region.plain(),
                    memory_type(&held)
                ));
                self.raw(&format!(
                    "bufferization.materialize_in_destination {value} in writable {row} : ({}, {layout}) -> ()",
                    held_one.mlir()
                ));
            }
        }
    }

    fn converted(&mut self, x: &str, from: &TensorType, to: &TensorType) -> String {
        let name = self.name_temporary();
        self.emitter.stored_as(x, from, to, &name)
    }
}
