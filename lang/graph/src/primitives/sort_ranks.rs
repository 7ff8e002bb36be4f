//! The order of short rows, by counting: an element's rank is the number of those before it. Each pair is compared, in
//! one sweep without a loop.

use super::sort::precedes;
use super::sort_lowering::{Layout, reshape};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, TensorType};

/// Writes the count: the previous position in its row of each element of the sorted rows.
pub(super) fn positions(to: &mut Lowering<'_>, layout: &Layout, key: &str, dtype: DType) -> String {
    let matrix = |dtype| layout.matrix(dtype);
    let pairs = |dtype| TensorType::new(dtype, [layout.rows, layout.extent, layout.extent].as_slice());
    let (key_pairs, index_pairs, truths) = (pairs(dtype), pairs(DType::I32), pairs(DType::Bool).mlir());
    let key = reshape(to, key, &layout.flat(dtype), &matrix(dtype));
    // Element [r, i, j] is row r's element i, and its element j.
    let spread = |to: &mut Lowering<'_>, x: &str, axis: usize, dtype: DType| {
        to.temporary(&format!(
            "stablehlo.broadcast_in_dim {x}, dims = [0, {axis}] : ({}) -> {}",
            matrix(dtype).mlir(),
            pairs(dtype).mlir()
        ))
    };
    let (this, other) = (spread(to, &key, 1, dtype), spread(to, &key, 2, dtype));
    let positions =
        [1, 2].map(|axis| to.temporary(&format!("stablehlo.iota dim = {axis} : {}", index_pairs.mlir())));
    let [at, other_at] = &positions;
    let [before, after] = [[&other, &this], [&this, &other]].map(|pair| {
        let name = to.name_temporary();
        let mut lines = Vec::new();
        precedes(to, &mut lines, &name, pair.map(String::as_str), &key_pairs);
        lines.iter().for_each(|line| to.raw(line));
        name
    });
    // Of equal elements the earlier comes before.
    let earlier = to.compare("LT", other_at, at, &index_pairs);
    let not_after = to.temporary(&format!("stablehlo.not {after} : {truths}"));
    let tie = to.temporary(&format!("stablehlo.and {not_after}, {earlier} : {truths}"));
    let counts = to.temporary(&format!("stablehlo.or {before}, {tie} : {truths}"));
    let (zeros, ones) = (to.splat(&index_pairs, "0"), to.splat(&index_pairs, "1"));
    let counts = to.select(&counts, &ones, &zeros, &index_pairs);
    let ranks = sum(to, &counts, 2, &index_pairs, &matrix(DType::I32));
    // The element of rank k, of all that are in the row, is the one that is not masked out.
    let ranks = spread(to, &ranks, 1, DType::I32);
    let here = to.compare("EQ", &ranks, other_at, &index_pairs);
    let masked = to.select(&here, at, &zeros, &index_pairs);
    let found = sum(to, &masked, 1, &index_pairs, &matrix(DType::I32));
    reshape(to, &found, &matrix(DType::I32), &layout.flat(DType::I32))
}

fn sum(to: &mut Lowering<'_>, x: &str, axis: usize, from: &TensorType, into: &TensorType) -> String {
    let scalar = TensorType::scalar(from.dtype);
    let zero = to.splat(&scalar, "0");
    to.temporary(&format!(
        "stablehlo.reduce({x} init: {zero}) applies stablehlo.add across dimensions = [{axis}] : ({}, {}) -> {}",
        from.mlir(),
        scalar.mlir(),
        into.mlir()
    ))
}
