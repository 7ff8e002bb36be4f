//! Lower triangular systems and their transposes, some rows at a time: a known row is read once for all of them.

use super::Matrices;
use crate::stablehlo::{LoopNest, Lowering, Tensor};

/// Rows at a time.
const ROWS: usize = 4;

/// Writes the solution of l x = b.
pub(super) fn forward(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    write(to, matrices, false)
}

/// Writes the solution of l' x = b, from the last row on.
pub(super) fn backward(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    write(to, matrices, true)
}

fn write(to: &mut Lowering<'_>, matrices: &Matrices, is_transposed: bool) -> Vec<String> {
    // Of the triangle single elements are read.
    let (l, (b, ty)) = (Matrices { lanes: 1, ..*matrices }.operand(to, 0), matrices.operand(to, 1));
    let &Matrices { lanes, batch, .. } = matrices;
    let operands = [l, (b, ty.clone())];
    let results = to.loop_nest(&operands, std::slice::from_ref(&ty), batch, |nest, read, written, item| {
        let ([l, b], x) = (read, &written[0]) else { unreachable!("two operands") };
        let n = ty.shape[1];
        let whole = n / ROWS * ROWS;
        let [first, last_rows, rest, last, end] =
            [0, whole.saturating_sub(ROWS), whole, n - 1, n].map(|i| nest.index(i));
        let system = System { matrices, l, b, x, item, first: &first, end: &end, is_transposed };
        let columns = nest.index(ty.shape[2]);
        nest.each(&first, &columns, lanes, |nest, c| {
            if is_transposed {
                let single = nest.index(n - whole);
                nest.each(&first, &single, 1, |nest, k| {
                    let i = nest.binary("arith.subi", &last, k, "index");
                    system.rows(nest, &i, c, 1);
                });
                nest.each(&first, &rest, ROWS, |nest, k| {
                    let i = nest.binary("arith.subi", &last_rows, k, "index");
                    system.rows(nest, &i, c, ROWS);
                });
            } else {
                nest.each(&first, &rest, ROWS, |nest, i| system.rows(nest, i, c, ROWS));
                nest.each(&rest, &end, 1, |nest, i| system.rows(nest, i, c, 1));
            }
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
    end: &'a str,
    is_transposed: bool,
}

impl System<'_> {
    /// Writes `count` rows of the solution from row `i` on, in the columns from `c` on, once those that they depend on are there.
    fn rows(&self, nest: &mut LoopNest, i: &str, c: &str, count: usize) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let rows: Vec<String> = (0..count).map(|r| nest.offset(i, r)).collect();
        let behind = nest.offset(i, count);
        let known = if self.is_transposed { [behind.as_str(), self.end] } else { [self.first, i] };
        let known = nest.accumulate(known, 1, dtype, lanes, count, |nest, j, sums| {
            let other = self.x.get_lanes(nest, &[self.item, j, c], lanes);
            let product = |(row, sum): (&String, &String)| {
                let factors = self.factors(nest, row, j);
                nest.multiply_add("arith.addf", [sum, &factors, &other], dtype, lanes)
            };
            rows.iter().zip(sums).map(product).collect()
        });
        let mut order: Vec<(&String, &String)> = rows.iter().zip(&known).collect();
        if self.is_transposed {
            order.reverse();
        }
        let mut solved: Vec<(&String, String)> = Vec::new();
        for (row, known) in order {
            let right = self.b.get_lanes(nest, &[self.item, row, c], lanes);
            let mut left = nest.lanes("arith.subf", &right, known, dtype, lanes);
            for (j, other) in &solved {
                let factors = self.factors(nest, row, j);
                left = nest.multiply_add("arith.subf", [&left, &factors, other], dtype, lanes);
            }
            let diagonal = self.factors(nest, row, row);
            let x = nest.lanes("arith.divf", &left, &diagonal, dtype, lanes);
            self.x.set_lanes(nest, &[self.item, row, c], &x, lanes);
            solved.push((row, x));
        }
    }

    /// An element of the system's matrix in all lanes.
    fn factors(&self, nest: &mut LoopNest, row: &str, column: &str) -> String {
        let [row, column] = if self.is_transposed { [column, row] } else { [row, column] };
        let factor = self.l.get(nest, &[self.item, row, column]);
        nest.splat(&factor, self.matrices.dtype, self.matrices.lanes)
    }
}
