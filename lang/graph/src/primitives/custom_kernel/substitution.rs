//! Lower triangular systems, row by row.

use super::Matrices;
use crate::stablehlo::Lowering;

/// Writes the solution.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    // Of the triangle single elements are read.
    let (l, (b, ty)) = (Matrices { lanes: 1, ..*matrices }.operand(to, 0), matrices.operand(to, 1));
    let &Matrices { dtype, lanes, batch } = matrices;
    let operands = [l, (b, ty.clone())];
    let results = to.loop_nest(&operands, std::slice::from_ref(&ty), batch, |nest, read, written, item| {
        let ([l, b], x) = (read, &written[0]) else { unreachable!("two operands") };
        let (first, n, columns) = (nest.index(0), nest.index(ty.shape[1]), nest.index(ty.shape[2]));
        nest.each(&first, &columns, lanes, |nest, c| {
            nest.each(&first, &n, 1, |nest, i| {
                let known = nest.accumulate([&first, i], 1, dtype, lanes, 1, |nest, j, sums| {
                    let factor = l.get(nest, &[item, i, j]);
                    let factors = nest.splat(&factor, dtype, lanes);
                    let row = x.get_lanes(nest, &[item, j, c], lanes);
                    vec![nest.multiply_add("arith.addf", [&sums[0], &factors, &row], dtype, lanes)]
                });
                let row = b.get_lanes(nest, &[item, i, c], lanes);
                let left = nest.lanes("arith.subf", &row, &known[0], dtype, lanes);
                let diagonal = l.get(nest, &[item, i, i]);
                let diagonal = nest.splat(&diagonal, dtype, lanes);
                let row = nest.lanes("arith.divf", &left, &diagonal, dtype, lanes);
                x.set_lanes(nest, &[item, i, c], &row, lanes);
            });
        });
    });
    vec![matrices.result(to, 0, &results[0], &ty)]
}
