//! Elimination with the greatest of a column as pivot, some columns at a time: a row is read and written once for all of them.

use super::Matrices;
use crate::stablehlo::{LoopNest, Lowering, Tensor};
use crate::tensor::TensorType;

/// Columns at a time.
const COLUMNS: usize = 4;

/// Writes the packed factors, and the order of the rows as floats if there is a second result.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    let steps = to.operand_type(0).shape.iter().rev().take(2).min().copied().unwrap_or(0);
    let (a, ty) = matrices.operand(to, 0);
    let &Matrices { dtype, batch, .. } = matrices;
    let order_ty = TensorType::new(dtype, [batch, ty.shape[1]].as_slice());
    // The last one is memory for pivots, which are too many for the stack.
    let types = [ty.clone(), order_ty.clone(), matrices.ty(COLUMNS, ty.shape[2])];
    let results = to.loop_nest(&[(a, ty.clone())], &types, batch, |nest, read, written, item| {
        let (a, [x, order, pivots]) = (&read[0], written) else { unreachable!("three results") };
        let (first, n, columns) = (nest.index(0), nest.index(ty.shape[1]), nest.index(ty.shape[2]));
        matrices.copy(nest, [item, &n], a, x);
        nest.each(&first, &n, 1, |nest, i| {
            let number = nest.value(&format!("arith.index_cast {i} : index to i32"));
            let number = nest.value(&format!("arith.sitofp {number} : i32 to {}", dtype.mlir()));
            order.set(nest, &[item, i], &number);
        });
        let elimination =
            Elimination { matrices, x, order, pivots, item, first: &first, rows: &n, columns: &columns };
        let (rest, steps) = (nest.index(steps / COLUMNS * COLUMNS), nest.index(steps));
        nest.each(&first, &rest, COLUMNS, |nest, k| elimination.step(nest, k, COLUMNS));
        nest.each(&rest, &steps, 1, |nest, k| elimination.step(nest, k, 1));
    });
    let results = results.iter().zip([&ty, &order_ty]).take(to.results().len());
    results.enumerate().map(|(i, (x, ty))| matrices.result(to, i, x, ty)).collect()
}

struct Elimination<'a> {
    matrices: &'a Matrices,
    x: &'a Tensor,
    order: &'a Tensor,
    pivots: &'a Tensor,
    item: &'a str,
    first: &'a str,
    rows: &'a str,
    columns: &'a str,
}

impl Elimination<'_> {
    /// Eliminates `count` columns from column `k` on.
    fn step(&self, nest: &mut LoopNest, k: &str, count: usize) {
        let (&Matrices { dtype, lanes, .. }, item) = (self.matrices, self.item);
        let own: Vec<String> = (0..count).map(|c| nest.offset(k, c)).collect();
        let pivots: Vec<String> = (0..count).map(|r| nest.index(r)).collect();
        let behind = nest.offset(k, count);
        for (c, column) in own.iter().enumerate() {
            self.column(nest, column, &own[c + 1..]);
        }
        // The pivots' rows behind these columns, each less the ones above, with zeros before.
        let start = nest.rounded_down(&behind, lanes);
        for (r, row) in own.iter().enumerate() {
            self.less(nest, row, [&own[..r], &pivots[..r]], &start, |nest, c, values| {
                let values = nest.from_lane(values, c, &behind, dtype, lanes);
                self.pivots.set_lanes(nest, &[item, &pivots[r], c], &values, lanes);
            });
        }
        nest.each(&behind, self.rows, 1, |nest, i| {
            self.less(nest, i, [&own, &pivots], &start, |_, _, _| ());
        });
    }

    /// Takes some pivots' rows off a row, each times the row's multiplier for its column. `also` is done with the result.
    fn less(
        &self,
        nest: &mut LoopNest,
        row: &str,
        [columns, pivots]: [&[String]; 2],
        start: &str,
        also: impl FnOnce(&mut LoopNest, &str, &str),
    ) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let (x, item) = (self.x, self.item);
        let factors: Vec<String> = columns.iter().map(|c| x.get(nest, &[item, row, c])).collect();
        let factors: Vec<String> = factors.iter().map(|f| nest.splat(f, dtype, lanes)).collect();
        nest.each(start, self.columns, lanes, |nest, c| {
            let mut values = x.get_lanes(nest, &[item, row, c], lanes);
            for (factor, above) in factors.iter().zip(pivots) {
                let above = self.pivots.get_lanes(nest, &[item, above, c], lanes);
                values = nest.multiply_add("arith.subf", [&values, factor, &above], dtype, lanes);
            }
            x.set_lanes(nest, &[item, row, c], &values, lanes);
            also(nest, c, &values);
        });
    }

    /// Brings the pivot of a column up, and writes the multipliers of the rows below; takes the row off in the columns `others`.
    fn column(&self, nest: &mut LoopNest, k: &str, others: &[String]) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let (x, item, float) = (self.x, self.item, dtype.mlir());
        let none = nest.number("-1.0", dtype);
        let found = nest.carry(k, self.rows, 1, &[(&none, float), (k, "index")], |nest, i, best| {
            let value = x.get(nest, &[item, i, k]);
            let size = nest.value(&format!("math.absf {value} : {float}"));
            let greater = nest.compare("gt", &size, &best[0], dtype);
            let size = nest.select(&greater, &size, &best[0], dtype);
            let place = nest.value(&format!("arith.select {greater}, {i}, {} : index", best[1]));
            vec![size, place]
        });
        let other = &found[1];
        let differs = nest.value(&format!("arith.cmpi ne, {other}, {k} : index"));
        nest.when(&differs, |nest| {
            nest.each(self.first, self.columns, lanes, |nest, c| {
                let upper = x.get_lanes(nest, &[item, k, c], lanes);
                let lower = x.get_lanes(nest, &[item, other, c], lanes);
                x.set_lanes(nest, &[item, k, c], &lower, lanes);
                x.set_lanes(nest, &[item, other, c], &upper, lanes);
            });
            let upper = self.order.get(nest, &[item, k]);
            let lower = self.order.get(nest, &[item, other]);
            self.order.set(nest, &[item, k], &lower);
            self.order.set(nest, &[item, other], &upper);
        });
        let pivot = x.get(nest, &[item, k, k]);
        let (zero, one) = (nest.number("0.0", dtype), nest.number("1.0", dtype));
        let singular = nest.compare("eq", &pivot, &zero, dtype);
        let pivot = nest.select(&singular, &one, &pivot, dtype);
        let row: Vec<String> = others.iter().map(|c| x.get(nest, &[item, k, c])).collect();
        let next = nest.next(k);
        nest.each(&next, self.rows, 1, |nest, i| {
            let value = x.get(nest, &[item, i, k]);
            let factor = nest.binary("arith.divf", &value, &pivot, float);
            x.set(nest, &[item, i, k], &factor);
            for (column, above) in others.iter().zip(&row) {
                let value = x.get(nest, &[item, i, column]);
                let off = nest.binary("arith.mulf", &factor, above, float);
                let value = nest.binary("arith.subf", &value, &off, float);
                x.set(nest, &[item, i, column], &value);
            }
        });
    }
}
