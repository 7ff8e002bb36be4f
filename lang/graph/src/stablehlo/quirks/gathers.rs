//! Gathers of rows, and of single numbers.

use crate::stablehlo::Lowering;
use crate::tensor::TensorType;

/// Writes the rows of operand 0 as a constant, if it is one number throughout (Q16): the compiler takes them for that number
/// alone, and the sum of nine ones is then not 9.
pub fn gather_of_one_number(to: &mut Lowering<'_>) -> bool {
    let Some(number) = to.repeated_number(0) else { return false };
    to.line(&format!("stablehlo.constant dense<{number}> : {}", to.result_type(0).mlir()));
    true
}

/// Writes operand 1, indices of `count` rows, limited to these: `StableHLO` clamps, but IREE reads out of bounds by a scalar index
/// (Q15).
pub fn indices_in_bounds(to: &mut Lowering<'_>, count: usize) -> String {
    let ty = to.operand_type(1).clone();
    let indices = to_be_indexed(to, &to.operand(1), &ty);
    to.clamp_indices(&indices, count, &ty)
}

/// Writes the result, which `text` gathers; a single number behind a barrier, which makes a kernel of its own (Q17): IREE fails
/// on one that takes a number so and computes with it.
pub fn gather(to: &mut Lowering<'_>, text: &str) {
    if to.result_type(0).count() > 1 {
        return to.line(text);
    }
    let held = to.results_to_hold();
    to.define(&held[0], text);
    to.hold(&held);
}

/// Writes a tensor whose elements are read by their indices in memory of its own, for CUDA (Q56): a slice that is read so becomes a part of
/// what it is cut from, and is read as if its rows were next to each other.
pub fn to_be_indexed(to: &mut Lowering<'_>, x: &str, ty: &TensorType) -> String {
    // The arguments of the program are no slices.
    if !to.is_for_cuda() || x.starts_with("%arg") {
        return x.to_owned();
    }
    to.value("stablehlo.optimization_barrier", &[x], ty)
}
