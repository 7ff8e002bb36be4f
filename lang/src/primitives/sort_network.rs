//! The `StableHLO` of long sorts.
//!
//! IREE 3.13 lowers `stablehlo.sort` to a quadratic loop on one core, and not at all where the operands exceed a
//! small stack: 2,000 pairs take 40 ms, 10,000 do not compile. A bitonic network (K. E. Batcher, "Sorting networks
//! and their applications", 1968) written as a loop takes 1 ms and 4.5 ms. Positions are sorted along with the key
//! and decide between equal elements, which makes it stable; the other operands are gathered by them.

use super::sort::precedes;
use crate::stablehlo::{Lowering, highest};
use crate::tensor::{DType, TensorType, element_count};

/// The longest axis that is left to `stablehlo.sort`.
pub(super) const THRESHOLD: usize = 64;

/// Writes the sort of all operands along `axis`.
pub(super) fn lower(to: &mut Lowering<'_>, axis: usize) {
    let layout = Layout::new(to.operand_type(0), axis);
    let flat: Vec<String> = (0..to.operand_count()).map(|i| layout.flatten(to, i)).collect();
    let (key, positions) = network(to, &layout, &flat[0]);
    let results = to.results();
    layout.restore(to, &results[0], &key, to.operand_type(0).dtype);
    if flat.len() > 1 {
        let index = layout.flat_index(to, &positions);
        for i in 1..flat.len() {
            let dtype = to.operand_type(i).dtype;
            let (ty, indices) = (layout.flat(dtype), layout.flat(DType::I32));
            let taken = to.temporary(&gather(&flat[i], &index, &ty, &indices));
            layout.restore(to, &results[i], &taken, dtype);
        }
    }
}

/// How the tensors lie as rows: the axis last, everything else before it.
struct Layout {
    /// The operands' axes with the sorted one last.
    order: Vec<usize>,
    /// The operands' shape in that order.
    shape: Vec<usize>,
    rows: usize,
    extent: usize,
    /// The extent rounded up to a power of two.
    padded: usize,
}

impl Layout {
    fn new(ty: &TensorType, axis: usize) -> Self {
        let mut order: Vec<usize> = (0..ty.rank()).filter(|i| *i != axis).collect();
        order.push(axis);
        let shape: Vec<usize> = order.iter().map(|i| ty.shape[*i]).collect();
        let extent = ty.shape[axis];
        let rows = element_count(&shape[..shape.len() - 1]);
        Layout { order, shape, rows, extent, padded: extent.next_power_of_two() }
    }

    fn flat(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows * self.extent].as_slice())
    }

    fn matrix(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows, self.extent].as_slice())
    }

    fn padded_flat(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows * self.padded].as_slice())
    }

    fn padded_matrix(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.rows, self.padded].as_slice())
    }

    /// Operand `i` as one row after the other.
    fn flatten(&self, to: &mut Lowering<'_>, i: usize) -> String {
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

    /// The rows `flat`, each with a margin of `value` up to the padded extent.
    fn pad(&self, to: &mut Lowering<'_>, flat: &str, dtype: DType, value: &str) -> String {
        let (from, into) = (self.matrix(dtype), self.padded_matrix(dtype));
        let matrix = reshape(to, flat, &self.flat(dtype), &from);
        let scalar = TensorType::scalar(dtype);
        let value = to.splat(&scalar, value);
        let padded = to.temporary(&format!(
            "stablehlo.pad {matrix}, {value}, low = [0, 0], high = [0, {}], interior = [0, 0] : ({}, {}) -> {}",
            self.padded - self.extent,
            from.mlir(),
            scalar.mlir(),
            into.mlir(),
        ));
        reshape(to, &padded, &into, &self.padded_flat(dtype))
    }

    /// The padded rows without their margin.
    fn unpad(&self, to: &mut Lowering<'_>, padded: &str, dtype: DType) -> String {
        let (from, into) = (self.padded_matrix(dtype), self.matrix(dtype));
        let matrix = reshape(to, padded, &self.padded_flat(dtype), &from);
        let cut = to.temporary(&format!(
            "stablehlo.slice {matrix} [0:{}, 0:{}] : ({}) -> {}",
            self.rows,
            self.extent,
            from.mlir(),
            into.mlir(),
        ));
        reshape(to, &cut, &into, &self.flat(dtype))
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

fn reshape(to: &mut Lowering<'_>, x: &str, from: &TensorType, into: &TensorType) -> String {
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

/// Writes the network; the sorted rows of the key, and where in its row each element was.
fn network(to: &mut Lowering<'_>, layout: &Layout, key: &str) -> (String, String) {
    let dtype = to.operand_type(0).dtype;
    let (ty, index) = (layout.padded_flat(dtype), layout.padded_flat(DType::I32));
    let (key_ty, index_ty, truth) = (ty.mlir(), index.mlir(), ty.with_dtype(DType::Bool).mlir());
    // The margin comes last: nothing is greater, and its positions are.
    let padding = if dtype.is_float() { "0x7FC00000" } else { highest(dtype) };
    let key = layout.pad(to, key, dtype, padding);
    let matrix = layout.padded_matrix(DType::I32);
    let within = to.temporary(&format!("stablehlo.iota dim = 1 : {}", matrix.mlir()));
    let within = reshape(to, &within, &matrix, &index);
    let place = to.temporary(&format!("stablehlo.iota dim = 0 : {index_ty}"));
    let zeros = to.splat(&index, "0");
    let scalar = TensorType::scalar(DType::I32);
    let [zero, one, two] = ["0", "1", "2"].map(|n| to.splat(&scalar, n));
    let end = to.splat(&scalar, &layout.padded.to_string());
    let (i, p) = (scalar.mlir(), TensorType::scalar(DType::Bool).mlir());

    // %run is the length of the runs being merged, %gap how far apart the compared elements are.
    let mut body = vec![
        format!("%more = {}", to.comparison("LE", "%run", &end, &scalar)),
        format!("stablehlo.return %more : {p}"),
        "} do {".to_string(),
        format!("%gaps = stablehlo.broadcast_in_dim %gap, dims = [] : ({i}) -> {index_ty}"),
        format!("%runs = stablehlo.broadcast_in_dim %run, dims = [] : ({i}) -> {index_ty}"),
        format!("%partner = stablehlo.xor {place}, %gaps : {index_ty}"),
        format!("%otherkey = {}", gather("%key", "%partner", &ty, &index)),
        format!("%otherat = {}", gather("%at", "%partner", &index, &index)),
    ];
    precedes(to, &mut body, "%before", ["%key", "%otherkey"], &ty);
    precedes(to, &mut body, "%after", ["%otherkey", "%key"], &ty);
    body.extend([
        format!("%equal = stablehlo.not %after : {truth}"),
        format!("%earlier = {}", to.comparison("LT", "%at", "%otherat", &index)),
        format!("%tie = stablehlo.and %equal, %earlier : {truth}"),
        format!("%less = stablehlo.or %before, %tie : {truth}"),
        format!("%phase = stablehlo.and {within}, %runs : {index_ty}"),
        format!("%ascends = {}", to.comparison("EQ", "%phase", &zeros, &index)),
        format!("%left = {}", to.comparison("LT", &place, "%partner", &index)),
        format!("%wantsless = {}", to.comparison("EQ", "%ascends", "%left", &ty.with_dtype(DType::Bool))),
        format!("%stays = {}", to.comparison("EQ", "%less", "%wantsless", &ty.with_dtype(DType::Bool))),
        format!("%newkey = stablehlo.select %stays, %key, %otherkey : {truth}, {key_ty}"),
        format!("%newat = stablehlo.select %stays, %at, %otherat : {truth}, {index_ty}"),
        format!("%half = stablehlo.shift_right_logical %gap, {one} : {i}"),
        format!("%merged = {}", to.comparison("EQ", "%half", &zero, &scalar)),
        format!("%double = stablehlo.shift_left %run, {one} : {i}"),
        format!("%newrun = stablehlo.select %merged, %double, %run : {p}, {i}"),
        format!("%newgap = stablehlo.select %merged, %run, %half : {p}, {i}"),
        format!("stablehlo.return %newrun, %newgap, %newkey, %newat : {i}, {i}, {key_ty}, {index_ty}"),
    ]);
    let names: Vec<String> = (0..4).map(|_| to.name_temporary()).collect();
    let head = format!(
        "stablehlo.while(%run = {two}, %gap = {one}, %key = {key}, %at = {within}) : {i}, {i}, {key_ty}, {index_ty} cond "
    );
    to.region(&names, &head, &body, "");
    (layout.unpad(to, &names[2], dtype), layout.unpad(to, &names[3], DType::I32))
}
