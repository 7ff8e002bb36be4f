//! The Cholesky factor row by row (T. Banachiewicz, 1938): each element from the product of two rows as far as they are known.

use super::Matrices;
use crate::stablehlo::{LoopNest, Lowering, Tensor, processor_lanes};

/// Rows at a time, whose products with another row do not wait for each other.
const ROWS: usize = 4;

/// Writes the lower factor.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    let matrices = &Matrices { lanes: processor_lanes(matrices.dtype), ..*matrices };
    let (a, ty) = matrices.operand(to, 0);
    let results = to.loop_nest(&[(a, ty.clone())], std::slice::from_ref(&ty), matrices.batch, |nest, read, written, item| {
        let (first, rest, n) =
            (nest.index(0), nest.index(ty.shape[1] / ROWS * ROWS), nest.index(ty.shape[1]));
        let columns = nest.index(ty.shape[2]);
        let factor = Factor { matrices, a: &read[0], l: &written[0], item, first: &first, columns: &columns };
        nest.each(&first, &rest, ROWS, |nest, i| factor.rows(nest, i, ROWS));
        nest.each(&rest, &n, 1, |nest, i| factor.rows(nest, i, 1));
    });
    vec![matrices.result(to, 0, &results[0], &ty)]
}

struct Factor<'a> {
    matrices: &'a Matrices,
    a: &'a Tensor,
    l: &'a Tensor,
    item: &'a str,
    first: &'a str,
    columns: &'a str,
}

impl Factor<'_> {
    /// Writes `count` rows from row `i` on, once those before are there.
    fn rows(&self, nest: &mut LoopNest, i: &str, count: usize) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let rows: Vec<String> = (0..count).map(|r| nest.offset(i, r)).collect();
        nest.each(self.first, self.columns, lanes, |nest, c| {
            let zeros = nest.zeros(dtype, lanes);
            rows.iter().for_each(|row| self.l.set_lanes(nest, &[self.item, row, c], &zeros, lanes));
        });
        nest.each(self.first, i, 1, |nest, j| self.elements(nest, &rows, j));
        for (r, row) in rows.iter().enumerate() {
            rows[..r].iter().for_each(|j| self.elements(nest, std::slice::from_ref(row), j));
            let left = self.left(nest, std::slice::from_ref(row), row).remove(0);
            let root = nest.value(&format!("math.sqrt {left} : {}", dtype.mlir()));
            self.l.set(nest, &[self.item, row, row], &root);
        }
    }

    /// Writes the elements of column `j` in some rows below row `j`.
    fn elements(&self, nest: &mut LoopNest, rows: &[String], j: &str) {
        let float = self.matrices.dtype.mlir();
        let left = self.left(nest, rows, j);
        let diagonal = self.l.get(nest, &[self.item, j, j]);
        for (row, left) in rows.iter().zip(left) {
            let x = nest.binary("arith.divf", &left, &diagonal, float);
            self.l.set(nest, &[self.item, row, j], &x);
        }
    }

    /// Elements of column `j` of a, less the products of these rows of l with row `j`: from column `j` on the rows are 0 so far.
    fn left(&self, nest: &mut LoopNest, rows: &[String], j: &str) -> Vec<String> {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let sums = nest.accumulate([self.first, j], lanes, dtype, lanes, rows.len(), |nest, c, sums| {
            let other = self.l.get_lanes(nest, &[self.item, j, c], lanes);
            let product = |(row, sum): (&String, &String)| {
                let x = self.l.get_lanes(nest, &[self.item, row, c], lanes);
                nest.multiply_add("arith.addf", [sum, &x, &other], dtype, lanes)
            };
            rows.iter().zip(sums).map(product).collect()
        });
        let left = |(row, sum): (&String, &String)| {
            let total = nest.total(sum, dtype, lanes);
            let x = self.a.get(nest, &[self.item, row, j]);
            nest.binary("arith.subf", &x, &total, dtype.mlir())
        };
        rows.iter().zip(&sums).map(left).collect()
    }
}
