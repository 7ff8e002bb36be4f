//! Kernels written out as loops over elements and vectors, for what has no operation in `StableHLO` that a processor does quickly:
//! a sort by digits, elimination with pivots. Each is one `flow.dispatch.workgroups`, with the items of a batch shared among workgroups.
//!
//! Results are read and written in place, element by element: a load of one element or vector becomes an access to the binding,
//! while a load of a whole result would be copied to the stack. MLIR takes such loads for values that never change, and would have one
//! load for two, or move it out of a loop, in spite of a store in between (Q49). Their place therefore depends on a zero that is read
//! from memory, and must be read again behind each store; LLVM then sees that it is one.

use std::fmt::Display;

use super::Lowering;
use crate::tensor::{DType, TensorType};

/// Maximum workgroups of a kernel, each with its share of the items.
const MAX_WORKGROUPS: usize = 64;

/// Maximum bytes of arrays of a kernel, which are on the stack; IREE's limit is 32 KiB.
pub const MAX_ARRAYS: usize = 24 << 10;

/// The body of a kernel so far.
pub struct LoopNest {
    lines: Vec<String>,
    names: usize,
    /// Memory of a zero.
    zero: Option<Array>,
}

/// An operand or a result of a kernel.
pub struct Tensor {
    /// The binding of a result, the value of an operand.
    name: String,
    ty: TensorType,
    is_result: bool,
}

/// An array of a kernel, on the stack.
pub struct Array {
    name: String,
    dtype: DType,
    length: usize,
}

fn binding(access: &str, ty: &TensorType) -> String {
    format!("!iree_tensor_ext.dispatch.tensor<{access}:{}>", ty.mlir())
}

fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

impl Lowering<'_> {
    /// Writes a kernel of operands with these names and types, which gives results of these types. `body` writes what is done for one of
    /// `items`, given the operands, the results and the item's number; the names of the results.
    pub fn loop_nest(
        &mut self,
        operands: &[(String, TensorType)],
        results: &[TensorType],
        items: usize,
        body: impl FnOnce(&mut LoopNest, &[Tensor], &[Tensor], &str),
    ) -> Vec<String> {
        let mut nest = LoopNest { lines: Vec::new(), names: 0, zero: None };
        let operand = |(i, (_, ty)): (usize, &(String, TensorType))| Tensor {
            name: format!("%value{i}"),
            ty: ty.clone(),
            is_result: false,
        };
        let result = |(i, ty): (usize, &TensorType)| Tensor {
            name: format!("%result{i}"),
            ty: ty.clone(),
            is_result: true,
        };
        let read: Vec<Tensor> = operands.iter().enumerate().map(operand).collect();
        let written: Vec<Tensor> = results.iter().enumerate().map(result).collect();
        for (i, x) in read.iter().enumerate() {
            let whole = region(&vec!["0".to_owned(); x.ty.rank()], &x.ty.shape);
            nest.line(&format!(
                "{} = iree_tensor_ext.dispatch.tensor.load %operand{i}, {whole} : {} -> {}",
                x.name,
                binding("readonly", &x.ty),
                x.ty.mlir()
            ));
        }
        let zero = nest.number("0", DType::I32);
        nest.line("%zeroat = arith.constant 0 : index");
        let cell = nest.array(DType::I32, 1);
        cell.set(&mut nest, "%zeroat", &zero);
        nest.zero = Some(cell);
        let groups = items.clamp(1, MAX_WORKGROUPS);
        let group = nest.value("flow.dispatch.workgroup.id[0] : index");
        let share = nest.index(items.div_ceil(groups));
        let first = nest.binary("arith.muli", &group, &share, "index");
        let behind = nest.binary("arith.addi", &first, &share, "index");
        let all = nest.index(items);
        let end = nest.binary("arith.minui", &behind, &all, "index");
        nest.each(&first, &end, 1, |nest, item| body(nest, &read, &written, item));

        let names: Vec<String> = results.iter().map(|_| self.name_temporary()).collect();
        let bindings = operands
            .iter()
            .enumerate()
            .map(|(i, (_, ty))| format!("%operand{i}: {}", binding("readonly", ty)));
        let bindings =
            bindings.chain(written.iter().map(|x| format!("{}: {}", x.name, binding("readwrite", &x.ty))));
        self.raw(&format!(
            "{} = flow.dispatch.workgroups({}) : ({}) -> ({}) = ({}) {{",
            list(&names),
            list(operands.iter().map(|(name, _)| name)),
            list(operands.iter().map(|(_, ty)| ty.mlir())),
            list(results.iter().map(TensorType::mlir)),
            list(bindings),
        ));
        nest.lines.iter().for_each(|line| self.raw(line));
        self.raw("flow.return");
        self.raw("} count() -> (index, index, index) {");
        self.raw(&format!("%groups = arith.constant {groups} : index"));
        self.raw("%one = arith.constant 1 : index");
        self.raw("flow.return %groups, %one, %one : index, index, index");
        self.raw("}");
        names
    }
}

/// `offsets = [%i, 0], sizes = [1, 4], strides = [1, 1]`.
fn region(offsets: &[String], sizes: &[usize]) -> String {
    format!("offsets = [{}], sizes = {sizes:?}, strides = {:?}", list(offsets), vec![1; sizes.len()])
}

/// The type of a vector of `lanes` numbers.
fn vector(dtype: DType, lanes: usize) -> String {
    format!("vector<{lanes}x{}>", dtype.mlir())
}

impl LoopNest {
    /// Writes a line.
    pub fn line(&mut self, text: &str) {
        self.lines.push(text.to_owned());
    }

    fn name(&mut self) -> String {
        self.names += 1;
        format!("%n{}", self.names)
    }

    /// Writes an operation with one result; its name.
    pub fn value(&mut self, text: &str) -> String {
        let name = self.name();
        self.line(&format!("{name} = {text}"));
        name
    }

    /// Writes an `index`.
    pub fn index(&mut self, x: usize) -> String {
        self.value(&format!("arith.constant {x} : index"))
    }

    /// Writes a number of a type, as MLIR writes it.
    pub fn number(&mut self, x: &str, dtype: DType) -> String {
        self.value(&format!("arith.constant {x} : {}", dtype.mlir()))
    }

    /// Writes an operation on two values of type `ty`.
    pub fn binary(&mut self, operation: &str, x: &str, y: &str, ty: &str) -> String {
        self.value(&format!("{operation} {x}, {y} : {ty}"))
    }

    /// Writes the sum of two indices.
    pub fn add(&mut self, x: &str, y: &str) -> String {
        self.binary("arith.addi", x, y, "index")
    }

    /// Writes an index greater by `more`.
    pub fn offset(&mut self, x: &str, more: usize) -> String {
        let more = self.index(more);
        self.add(x, &more)
    }

    /// Writes an index one greater.
    pub fn next(&mut self, x: &str) -> String {
        self.offset(x, 1)
    }

    /// Writes the greatest multiple of `step` that is not greater than an index.
    pub fn rounded_down(&mut self, x: &str, step: usize) -> String {
        let step = self.index(step);
        let times = self.binary("arith.divui", x, &step, "index");
        self.binary("arith.muli", &times, &step, "index")
    }

    /// Writes a vector of one number.
    pub fn splat(&mut self, x: &str, dtype: DType, lanes: usize) -> String {
        self.value(&format!("vector.broadcast {x} : {} to {}", dtype.mlir(), vector(dtype, lanes)))
    }

    /// Writes an operation on two vectors.
    pub fn lanes(&mut self, operation: &str, x: &str, y: &str, dtype: DType, lanes: usize) -> String {
        self.binary(operation, x, y, &vector(dtype, lanes))
    }

    /// Writes `x + y z` of vectors, or `x - y z`.
    pub fn multiply_add(
        &mut self,
        operation: &str,
        [x, y, z]: [&str; 3],
        dtype: DType,
        lanes: usize,
    ) -> String {
        let product = self.lanes("arith.mulf", y, z, dtype, lanes);
        self.lanes(operation, x, &product, dtype, lanes)
    }

    /// Writes the sum of a vector's numbers.
    pub fn total(&mut self, x: &str, dtype: DType, lanes: usize) -> String {
        self.value(&format!(
            "vector.reduction <add>, {x} fastmath<reassoc> : {} into {}",
            vector(dtype, lanes),
            dtype.mlir()
        ))
    }

    /// Writes the vector `x` with zeros in the lanes whose place, `first` and on, is less than `from`.
    pub fn from_lane(&mut self, x: &str, first: &str, from: &str, dtype: DType, lanes: usize) -> String {
        let steps = self.value(&format!("vector.step : vector<{lanes}xindex>"));
        let starts = self.value(&format!("vector.broadcast {first} : index to vector<{lanes}xindex>"));
        let places = self.binary("arith.addi", &steps, &starts, &format!("vector<{lanes}xindex>"));
        let bound = self.value(&format!("vector.broadcast {from} : index to vector<{lanes}xindex>"));
        let kept = self.value(&format!("arith.cmpi uge, {places}, {bound} : vector<{lanes}xindex>"));
        let zeros = self.zeros(dtype, lanes);
        self.value(&format!(
            "arith.select {kept}, {x}, {zeros} : vector<{lanes}xi1>, {}",
            vector(dtype, lanes)
        ))
    }

    /// Writes a vector of zeros.
    pub fn zeros(&mut self, dtype: DType, lanes: usize) -> String {
        let zero = if dtype.is_float() { "0.0" } else { "0" };
        self.value(&format!("arith.constant dense<{zero}> : {}", vector(dtype, lanes)))
    }

    /// Writes a choice between two scalars.
    pub fn select(&mut self, condition: &str, x: &str, y: &str, dtype: DType) -> String {
        self.value(&format!("arith.select {condition}, {x}, {y} : {}", dtype.mlir()))
    }

    /// Writes a comparison of two floats, false where one is NaN.
    pub fn compare(&mut self, relation: &str, x: &str, y: &str, dtype: DType) -> String {
        self.value(&format!("arith.cmpf o{relation}, {x}, {y} : {}", dtype.mlir()))
    }

    /// Writes a loop from one index to another.
    pub fn each(&mut self, from: &str, to: &str, step: usize, body: impl FnOnce(&mut LoopNest, &str)) {
        self.carry(from, to, step, &[], |nest, i, _| {
            body(nest, i);
            Vec::new()
        });
    }

    /// Writes a loop that carries values, each given as its start and its type; their last values.
    pub fn carry(
        &mut self,
        from: &str,
        to: &str,
        step: usize,
        carried: &[(&str, &str)],
        body: impl FnOnce(&mut LoopNest, &str, &[String]) -> Vec<String>,
    ) -> Vec<String> {
        let (step, counter) = (self.index(step), self.name());
        let inside: Vec<String> = carried.iter().map(|_| self.name()).collect();
        let results: Vec<String> = carried.iter().map(|_| self.name()).collect();
        let types = list(carried.iter().map(|(_, ty)| ty));
        let mut head = format!("scf.for {counter} = {from} to {to} step {step} ");
        if !carried.is_empty() {
            let starts = inside.iter().zip(carried).map(|(name, (start, _))| format!("{name} = {start}"));
            head = format!("{} = {head}iter_args({}) -> ({types}) ", list(&results), list(starts));
        }
        self.line(&format!("{head}{{"));
        let next = body(self, &counter, &inside);
        if !carried.is_empty() {
            self.line(&format!("scf.yield {} : {types}", list(next)));
        }
        self.line("}");
        results
    }

    /// Writes `count` vectors that a loop accumulates from zeros.
    pub fn accumulate(
        &mut self,
        [from, to]: [&str; 2],
        step: usize,
        dtype: DType,
        lanes: usize,
        count: usize,
        body: impl FnOnce(&mut LoopNest, &str, &[String]) -> Vec<String>,
    ) -> Vec<String> {
        let zeros = self.zeros(dtype, lanes);
        let ty = vector(dtype, lanes);
        self.carry(from, to, step, &vec![(zeros.as_str(), ty.as_str()); count], body)
    }

    /// Writes what happens if a condition holds.
    pub fn when(&mut self, condition: &str, body: impl FnOnce(&mut LoopNest)) {
        self.line(&format!("scf.if {condition} {{"));
        body(self);
        self.line("}");
    }

    /// Writes an index that is the same, as is seen only from what memory holds.
    fn moved(&mut self, x: &str) -> String {
        let Some(Array { name, .. }) = &self.zero else { return x.to_owned() };
        let load = format!("memref.load {name}[%zeroat] : memref<1xi32>");
        let zero = self.value(&load);
        let zero = self.value(&format!("arith.index_castui {zero} : i32 to index"));
        self.add(x, &zero)
    }

    /// Writes an array of numbers, which have no values yet.
    pub fn array(&mut self, dtype: DType, length: usize) -> Array {
        let name = self.value(&format!("memref.alloca() : memref<{length}x{}>", dtype.mlir()));
        Array { name, dtype, length }
    }
}

impl Array {
    fn memref(&self) -> String {
        format!("memref<{}x{}>", self.length, self.dtype.mlir())
    }

    /// Writes a reading of an element.
    pub fn get(&self, nest: &mut LoopNest, i: &str) -> String {
        nest.value(&format!("memref.load {}[{i}] : {}", self.name, self.memref()))
    }

    /// Writes an element.
    pub fn set(&self, nest: &mut LoopNest, i: &str, x: &str) {
        nest.line(&format!("memref.store {x}, {}[{i}] : {}", self.name, self.memref()));
    }

    /// Writes a reading of a vector.
    pub fn get_lanes(&self, nest: &mut LoopNest, i: &str, lanes: usize) -> String {
        let ty = vector(self.dtype, lanes);
        nest.value(&format!("vector.load {}[{i}] : {}, {ty}", self.name, self.memref()))
    }

    /// Writes a vector.
    pub fn set_lanes(&self, nest: &mut LoopNest, i: &str, x: &str, lanes: usize) {
        let ty = vector(self.dtype, lanes);
        nest.line(&format!("vector.store {x}, {}[{i}] : {}, {ty}", self.name, self.memref()));
    }
}

impl Tensor {
    /// The extent of the last axis.
    pub fn extent(&self) -> usize {
        self.ty.shape.last().copied().unwrap_or(1)
    }

    /// The part of `lanes` elements of the last axis, at a place.
    fn part(&self, at: &[&str], lanes: usize) -> (String, TensorType) {
        let mut sizes = vec![1; self.ty.rank()];
        sizes[self.ty.rank() - 1] = lanes;
        let offsets: Vec<String> = at.iter().map(|x| (*x).to_owned()).collect();
        (region(&offsets, &sizes), TensorType::new(self.ty.dtype, sizes.as_slice()))
    }

    fn read(&self, nest: &mut LoopNest, at: &[&str], lanes: usize) -> (String, TensorType, String) {
        if !self.is_result {
            return (self.name.clone(), self.ty.clone(), list(at));
        }
        let last = nest.moved(at[at.len() - 1]);
        let at: Vec<&str> = at[..at.len() - 1].iter().copied().chain([last.as_str()]).collect();
        let (region, part) = self.part(&at, lanes);
        let load = nest.value(&format!(
            "iree_tensor_ext.dispatch.tensor.load {}, {region} : {} -> {}",
            self.name,
            binding("readwrite", &self.ty),
            part.mlir()
        ));
        let zero = nest.index(0);
        (load, part, list(vec![zero; at.len()]))
    }

    fn write(&self, nest: &mut LoopNest, at: &[&str], part: &str, lanes: usize) {
        let (region, ty) = self.part(at, lanes);
        nest.line(&format!(
            "iree_tensor_ext.dispatch.tensor.store {part}, {}, {region} : {} -> {}",
            self.name,
            ty.mlir(),
            binding("readwrite", &self.ty)
        ));
    }

    /// Writes a reading of an element.
    pub fn get(&self, nest: &mut LoopNest, at: &[&str]) -> String {
        let (value, ty, at) = self.read(nest, at, 1);
        nest.value(&format!("tensor.extract {value}[{at}] : {}", ty.mlir()))
    }

    /// Writes an element of a result.
    pub fn set(&self, nest: &mut LoopNest, at: &[&str], x: &str) {
        let (_, part) = self.part(at, 1);
        let element = nest.value(&format!("tensor.from_elements {x} : {}", part.mlir()));
        self.write(nest, at, &element, 1);
    }

    /// Writes a reading of a vector along the last axis.
    pub fn get_lanes(&self, nest: &mut LoopNest, at: &[&str], lanes: usize) -> String {
        let (value, ty, at) = self.read(nest, at, lanes);
        let zero = nest.number(if self.ty.dtype.is_float() { "0.0" } else { "0" }, self.ty.dtype);
        nest.value(&format!(
            "vector.transfer_read {value}[{at}], {zero} {{in_bounds = [true]}} : {}, {}",
            ty.mlir(),
            vector(self.ty.dtype, lanes)
        ))
    }

    /// Writes a vector along the last axis of a result.
    pub fn set_lanes(&self, nest: &mut LoopNest, at: &[&str], x: &str, lanes: usize) {
        let (_, part) = self.part(at, lanes);
        let zero = nest.index(0);
        let empty = nest.value(&format!("tensor.empty() : {}", part.mlir()));
        let ty = vector(self.ty.dtype, lanes);
        let whole = nest.value(&format!(
            "vector.transfer_write {x}, {empty}[{}] {{in_bounds = [true]}} : {ty}, {}",
            list(vec![zero; at.len()]),
            part.mlir()
        ));
        self.write(nest, at, &whole, lanes);
    }
}
