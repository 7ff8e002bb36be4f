//! Lower triangular systems, some rows at a time: a known row is read once for all of them.

use super::Matrices;
use crate::stablehlo::{LoopNest, Lowering, Tensor};

/// Rows at a time.
const ROWS: usize = 4;

/// Writes the solution.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    // Of the triangle single elements are read.
    let (l, (b, ty)) = (Matrices { lanes: 1, ..*matrices }.operand(to, 0), matrices.operand(to, 1));
    let &Matrices { lanes, batch, .. } = matrices;
    let operands = [l, (b, ty.clone())];
    let results = to.loop_nest(&operands, std::slice::from_ref(&ty), batch, |nest, read, written, item| {
        let ([l, b], x) = (read, &written[0]) else { unreachable!("two operands") };
        let (first, rest, n) =
            (nest.index(0), nest.index(ty.shape[1] / ROWS * ROWS), nest.index(ty.shape[1]));
        let columns = nest.index(ty.shape[2]);
        let system = System { matrices, l, b, x, item, first: &first };
        nest.each(&first, &columns, lanes, |nest, c| {
            nest.each(&first, &rest, ROWS, |nest, i| system.rows(nest, i, c, ROWS));
            nest.each(&rest, &n, 1, |nest, i| system.rows(nest, i, c, 1));
        });
    });
    vec![matrices.result(to, 0, &results[0], &ty)]
}

struct System<'a> {
    matrices: &'a Matrices,
    l: &'a Tensor,
    b: &'a Tensor,
    x: &'a Tensor,
    item: &'a str,
    first: &'a str,
}

impl System<'_> {
    /// Writes `count` rows of the solution from row `i` on, in the columns from `c` on, once those before are there.
    fn rows(&self, nest: &mut LoopNest, i: &str, c: &str, count: usize) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let rows: Vec<String> = (0..count).map(|r| nest.offset(i, r)).collect();
        let known = nest.accumulate([self.first, i], 1, dtype, lanes, count, |nest, j, sums| {
            let other = self.x.get_lanes(nest, &[self.item, j, c], lanes);
            let product = |(row, sum): (&String, &String)| {
                let factors = self.factors(nest, row, j);
                nest.multiply_add("arith.addf", [sum, &factors, &other], dtype, lanes)
            };
            rows.iter().zip(sums).map(product).collect()
        });
        let mut solved: Vec<String> = Vec::new();
        for (row, known) in rows.iter().zip(&known) {
            let right = self.b.get_lanes(nest, &[self.item, row, c], lanes);
            let mut left = nest.lanes("arith.subf", &right, known, dtype, lanes);
            for (j, other) in rows.iter().zip(&solved) {
                let factors = self.factors(nest, row, j);
                left = nest.multiply_add("arith.subf", [&left, &factors, other], dtype, lanes);
            }
            let diagonal = self.factors(nest, row, row);
            let x = nest.lanes("arith.divf", &left, &diagonal, dtype, lanes);
            self.x.set_lanes(nest, &[self.item, row, c], &x, lanes);
            solved.push(x);
        }
    }

    /// An element of the triangle in all lanes.
    fn factors(&self, nest: &mut LoopNest, row: &str, column: &str) -> String {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let factor = self.l.get(nest, &[self.item, row, column]);
        nest.splat(&factor, dtype, lanes)
    }
}
