//! Kernels written out as loops over elements and vectors, for what has no operation in `StableHLO` that a processor does quickly:
//! a sort by digits, elimination with pivots. Each is one `flow.dispatch.workgroups`, with the items of a batch shared among workgroups.
//!
//! Results are read and written in place, element by element: a load of one element or vector becomes an access to the binding,
//! while a load of a whole result would be copied to the stack. MLIR takes such loads for values that never change, and would have one
//! load for two, or move it out of a loop, in spite of a store in between (Q49). Their place therefore depends on a zero that is read
//! from memory, and must be read again behind each store; LLVM then sees that it is one.

mod memory;

pub use memory::{Array, Tensor, list};
use memory::{binding, region, vector};

use super::Lowering;
use crate::tensor::{DType, TensorType};

/// Maximum workgroups of a kernel, each with its share of the items.
const MAX_WORKGROUPS: usize = 64;

/// Maximum bytes of arrays of a kernel, which are on the stack; IREE's limit is 32 KiB.
pub const MAX_ARRAYS: usize = 24 << 10;

/// Elements of a processor's vector.
pub fn processor_lanes(dtype: DType) -> usize {
    if dtype == DType::F32 { 16 } else { 8 }
}

/// The body of a kernel so far.
#[derive(Default)]
pub struct LoopNest {
    lines: Vec<String>,
    names: usize,
    /// Memory of a zero.
    zero: Option<Array>,
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
        let mut nest = LoopNest::default();
        let operand = |(i, (_, ty)): (usize, &(String, TensorType))| {
            Tensor::read_only(&format!("%value{i}"), ty.clone())
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

impl LoopNest {
    /// The lines so far.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

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
        self.repeated(zero, dtype, lanes)
    }

    /// Writes a vector of one constant, as MLIR writes it.
    pub fn repeated(&mut self, x: &str, dtype: DType, lanes: usize) -> String {
        self.value(&format!("arith.constant dense<{x}> : {}", vector(dtype, lanes)))
    }

    /// Writes a choice between two scalars.
    pub fn select(&mut self, condition: &str, x: &str, y: &str, dtype: DType) -> String {
        self.value(&format!("arith.select {condition}, {x}, {y} : {}", dtype.mlir()))
    }

    /// Writes the opposite of a truth value.
    pub fn negated(&mut self, x: &str) -> String {
        let truth = self.value("arith.constant true");
        self.binary("arith.xori", x, &truth, "i1")
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

    /// Writes a binary search: the least index from `from` to before `to` for which `is_before` does not hold, or `to`.
    /// `is_before` holds up to some index, and not from there on.
    pub fn partition_point(
        &mut self,
        [from, to]: [&str; 2],
        is_before: impl FnOnce(&mut LoopNest, &str) -> String,
    ) -> String {
        let [low, high, found, rest] = [(); 4].map(|()| self.name());
        let types = "(index, index) -> (index, index)";
        self.line(&format!("{found}, {rest} = scf.while ({low} = {from}, {high} = {to}) : {types} {{"));
        let open = self.value(&format!("arith.cmpi ult, {low}, {high} : index"));
        self.line(&format!("scf.condition({open}) {low}, {high} : index, index"));
        self.line("} do {");
        let [low, high] = [(); 2].map(|()| self.name());
        self.line(&format!("^bb0({low}: index, {high}: index):"));
        let one = self.index(1);
        let sum = self.add(&low, &high);
        let middle = self.binary("arith.shrui", &sum, &one, "index");
        let before = is_before(self, &middle);
        let after = self.add(&middle, &one);
        let low = self.value(&format!("arith.select {before}, {after}, {low} : index"));
        let high = self.value(&format!("arith.select {before}, {high}, {middle} : index"));
        self.line(&format!("scf.yield {low}, {high} : index, index"));
        self.line("}");
        found
    }

    /// Writes a choice between two computations of a value of type `ty`.
    pub fn choose(
        &mut self,
        condition: &str,
        ty: &str,
        then: impl FnOnce(&mut LoopNest) -> String,
        otherwise: impl FnOnce(&mut LoopNest) -> String,
    ) -> String {
        let chosen = self.name();
        self.line(&format!("{chosen} = scf.if {condition} -> {ty} {{"));
        let value = then(self);
        self.line(&format!("scf.yield {value} : {ty}"));
        self.line("} else {");
        let value = otherwise(self);
        self.line(&format!("scf.yield {value} : {ty}"));
        self.line("}");
        chosen
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
