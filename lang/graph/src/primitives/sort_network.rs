//! The order of long rows on a device other than the processor, by a bitonic network (K. E. Batcher, "Sorting networks and
//! their applications", 1968) written as a loop. Positions are sorted along with the key and decide between equal elements,
//! which makes it stable.

use super::sort::precedes;
use super::sort_lowering::{Layout, gather, reshape};
use crate::stablehlo::{Lowering, float, highest};
use crate::tensor::{DType, TensorType};

/// Rows with a margin up to a power of two.
struct Padded<'l> {
    layout: &'l Layout,
    /// The rows' extent with the margin.
    padded: usize,
}

impl Padded<'_> {
    fn flat(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.layout.rows * self.padded].as_slice())
    }

    fn matrix(&self, dtype: DType) -> TensorType {
        TensorType::new(dtype, [self.layout.rows, self.padded].as_slice())
    }

    /// The rows `flat`, each with a margin of `value` up to the padded extent.
    fn pad(&self, to: &mut Lowering<'_>, flat: &str, dtype: DType, value: &str) -> String {
        let (from, into) = (self.layout.matrix(dtype), self.matrix(dtype));
        let matrix = reshape(to, flat, &self.layout.flat(dtype), &from);
        let scalar = TensorType::scalar(dtype);
        let value = to.splat(&scalar, value);
        let padded = to.temporary(&format!(
            "stablehlo.pad {matrix}, {value}, low = [0, 0], high = [0, {}], interior = [0, 0] : ({}, {}) -> {}",
            self.padded - self.layout.extent,
            from.mlir(),
            scalar.mlir(),
            into.mlir(),
        ));
        reshape(to, &padded, &into, &self.flat(dtype))
    }

    /// The padded rows without their margin.
    fn unpad(&self, to: &mut Lowering<'_>, padded: &str, dtype: DType) -> String {
        let (from, into) = (self.matrix(dtype), self.layout.matrix(dtype));
        let matrix = reshape(to, padded, &self.flat(dtype), &from);
        let cut = to.temporary(&format!(
            "stablehlo.slice {matrix} [0:{}, 0:{}] : ({}) -> {}",
            self.layout.rows,
            self.layout.extent,
            from.mlir(),
            into.mlir(),
        ));
        reshape(to, &cut, &into, &self.layout.flat(dtype))
    }
}

/// Writes the network: the previous position in its row of each element of the sorted rows.
pub(super) fn positions(to: &mut Lowering<'_>, layout: &Layout, key: &str) -> String {
    let layout = &Padded { layout, padded: layout.extent.next_power_of_two() };
    let dtype = to.operand_type(0).dtype;
    let (ty, index) = (layout.flat(dtype), layout.flat(DType::I32));
    let (key_ty, index_ty, truth) = (ty.mlir(), index.mlir(), ty.with_dtype(DType::Bool).mlir());
    // The margin comes last: nothing is greater, and its positions are.
    let padding = if dtype.is_float() { float(dtype, f64::NAN) } else { highest(dtype) };
    let key = layout.pad(to, key, dtype, &padding);
    let matrix = layout.matrix(DType::I32);
    let within = to.temporary(&format!("stablehlo.iota dim = 1 : {}", matrix.mlir()));
    let within = reshape(to, &within, &matrix, &index);
    let place = to.temporary(&format!("stablehlo.iota dim = 0 : {index_ty}"));
    let zeros = to.splat(&index, "0");
    let scalar = TensorType::scalar(DType::I32);
    let [zero, one, two] = ["0", "1", "2"].map(|n| to.splat(&scalar, n));
    let end = to.splat(&scalar, &layout.padded.to_string());
    let (i, p) = (scalar.mlir(), TensorType::scalar(DType::Bool).mlir());

    // %run is the length of the runs being merged, %gap the distance of the compared elements.
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
    layout.unpad(to, &names[3], DType::I32)
}
