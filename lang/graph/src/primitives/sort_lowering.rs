//! The `StableHLO` of sorts: the positions are found that sort the key, then every operand is gathered by them.
//!
//! `stablehlo.sort` is not used. IREE ignores its `is_stable` (Q13), and lowers it to a quadratic loop on one core (Q14): 10,000
//! pairs take 0.3 s, 40,000 take 4.4 s.

use super::{sort_merges, sort_radix, sort_ranks};
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, TensorType, element_count};

/// Maximum extent of an axis whose order is found by counting, on a processor: 1,000 rows of 32 take 0.5 ms, as they do by their
/// digits; of 64 they take 9.6 ms and 0.9.
const MAX_COUNTED: usize = 32;

/// The same on other devices.
const MAX_COUNTED_ELSEWHERE: usize = 64;

/// Writes the sort of all operands along `axis`.
pub(super) fn lower(to: &mut Lowering<'_>, axis: usize) {
    let layout = Layout::new(to.operand_type(0), axis);
    let flat: Vec<String> = (0..to.operand_count()).map(|i| layout.flatten(to, i)).collect();
    let positions = positions(to, &layout, &flat[0], to.operand_type(0).dtype);
    let index = layout.flat_index(to, &positions);
    for (i, result) in to.results().iter().enumerate() {
        let dtype = to.operand_type(i).dtype;
        let whole = quirks::to_be_indexed(to, &flat[i], &layout.flat(dtype));
        let taken = to.temporary(&gather(&whole, &index, &layout.flat(dtype), &layout.flat(DType::I32)));
        layout.restore(to, result, &taken, dtype);
    }
}

/// Writes the previous position in its row of each element of the rows sorted by `key`.
pub(super) fn positions(to: &mut Lowering<'_>, layout: &Layout, key: &str, dtype: DType) -> String {
    let positions = match to.is_for_processor() {
        true if layout.extent > MAX_COUNTED => sort_radix::positions,
        false if layout.extent > MAX_COUNTED_ELSEWHERE => sort_merges::positions,
        _ => sort_ranks::positions,
    };
    positions(to, layout, key, dtype)
}

/// The tensors as rows: the axis last, everything else before it.
pub(super) struct Layout {
    /// The operands' axes with the sorted one last.
    order: Vec<usize>,
    /// The operands' shape in that order.
    shape: Vec<usize>,
    pub rows: usize,
    pub extent: usize,
}

impl Layout {
    pub fn new(ty: &TensorType, axis: usize) -> Self {
        let mut order: Vec<usize> = (0..ty.rank()).filter(|i| *i != axis).collect();
        order.push(axis);
        let shape: Vec<usize> = order.iter().map(|i| ty.shape[*i]).collect();
        let extent = ty.shape[axis];
        let rows = element_count(&shape[..shape.len() - 1]);
        Layout { order, shape, rows, extent }
    }

    pub fn flat(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows * self.extent].as_slice())
    }

    pub fn matrix(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows, self.extent].as_slice())
    }

    /// Operand `i` as one row after the other.
    pub fn flatten(&self, to: &mut Lowering<'_>, i: usize) -> String {
        let ty = to.operand_type(i).clone();
        let turned = TensorType::new(ty.dtype, self.shape.as_slice());
        let text = format!(
            "stablehlo.transpose {}, dims = {:?} : ({}) -> {}",
            to.operand(i),
            self.order,
            ty.mlir(),
            turned.mlir()
        );
        let turned_name = to.temporary(&text);
        reshape(to, &turned_name, &turned, &self.flat(ty.dtype))
    }

    /// Defines `result` as the rows `flat` with the axis back in its place.
    fn restore(&self, to: &mut Lowering<'_>, result: &str, flat: &str, dtype: DType) {
        let turned = TensorType::new(dtype, self.shape.as_slice());
        let name = reshape(to, flat, &self.flat(dtype), &turned);
        let mut inverse = vec![0; self.order.len()];
        for (i, axis) in self.order.iter().enumerate() {
            inverse[*axis] = i;
        }
        let shape: Vec<usize> = inverse.iter().map(|i| self.shape[*i]).collect();
        let ty = TensorType::new(dtype, shape.as_slice());
        to.define(
            result,
            &format!("stablehlo.transpose {name}, dims = {inverse:?} : ({}) -> {}", turned.mlir(), ty.mlir()),
        );
    }

    /// Positions within rows as positions in all rows.
    fn flat_index(&self, to: &mut Lowering<'_>, positions: &str) -> String {
        let (matrix, flat) = (self.matrix(DType::I32), self.flat(DType::I32));
        let row = to.temporary(&format!("stablehlo.iota dim = 0 : {}", matrix.mlir()));
        let row = reshape(to, &row, &matrix, &flat);
        let extent = to.splat(&flat, &self.extent.to_string());
        let first = to.value("stablehlo.multiply", &[&row, &extent], &flat);
        to.value("stablehlo.add", &[&first, positions], &flat)
    }
}

/// Writes `x` in another shape.
pub(super) fn reshape(to: &mut Lowering<'_>, x: &str, from: &TensorType, into: &TensorType) -> String {
    to.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", from.mlir(), into.mlir()))
}

/// The text of `x[indices]`, all of one axis.
fn gather(x: &str, indices: &str, ty: &TensorType, indices_ty: &TensorType) -> String {
    format!(
        "\"stablehlo.gather\"({x}, {indices}) <{{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], \
         start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}}> : ({}, {}) -> {}",
        ty.mlir(),
        indices_ty.mlir(),
        ty.mlir(),
    )
}
