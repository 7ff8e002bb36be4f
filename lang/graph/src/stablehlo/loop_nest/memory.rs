//! Memory of a kernel that is written out: its operands and results, and arrays on the stack.

use std::fmt::Display;

use super::LoopNest;
use crate::tensor::{DType, TensorType};

/// An operand or a result of a kernel.
pub struct Tensor {
    /// The binding of a result, the value of an operand.
    pub(super) name: String,
    pub(super) ty: TensorType,
    pub(super) is_result: bool,
}

/// An array of a kernel, on the stack.
pub struct Array {
    pub(super) name: String,
    pub(super) dtype: DType,
    pub(super) length: usize,
}

pub(super) fn binding(access: &str, ty: &TensorType) -> String {
    format!("!iree_tensor_ext.dispatch.tensor<{access}:{}>", ty.mlir())
}

/// The items, separated by commas.
pub fn list<T: Display>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

/// `offsets = [%i, 0], sizes = [1, 4], strides = [1, 1]`.
pub(super) fn region(offsets: &[String], sizes: &[usize]) -> String {
    format!("offsets = [{}], sizes = {sizes:?}, strides = {:?}", list(offsets), vec![1; sizes.len()])
}

/// The type of a vector of `lanes` numbers.
pub(super) fn vector(dtype: DType, lanes: usize) -> String {
    format!("vector<{lanes}x{}>", dtype.mlir())
}

impl Array {
    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

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
        nest.value(&format!(
            "vector.load {}[{i}] : {}, {}",
            self.name,
            self.memref(),
            vector(self.dtype, lanes)
        ))
    }

    /// Writes a vector.
    pub fn set_lanes(&self, nest: &mut LoopNest, i: &str, x: &str, lanes: usize) {
        nest.line(&format!(
            "vector.store {x}, {}[{i}] : {}, {}",
            self.name,
            self.memref(),
            vector(self.dtype, lanes)
        ));
    }
}

impl Tensor {
    /// A tensor that is read only.
    pub fn read_only(name: &str, ty: TensorType) -> Tensor {
        Tensor { name: name.to_owned(), ty, is_result: false }
    }

    /// The dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.ty.dtype
    }

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
