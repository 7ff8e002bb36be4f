//! Reflections column by column (A. S. Householder, 1958), with the signs of LAPACK.

use super::Matrices;
use crate::stablehlo::{Array, LoopNest, Lowering, Tensor};

/// Writes q and r. Below its diagonal r has what the reflections are made of.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    let steps = to.operand_type(0).shape.last().copied().unwrap_or(0);
    let (a, ty) = matrices.operand(to, 0);
    let &Matrices { dtype, batch, .. } = matrices;
    let float = dtype.mlir();
    let types = [ty.clone(), ty.clone()];
    let results = to.loop_nest(&[(a, ty.clone())], &types, batch, |nest, read, written, item| {
        let (a, [q, r]) = (&read[0], written) else { unreachable!("two results") };
        let (first, n, columns) = (nest.index(0), nest.index(ty.shape[1]), nest.index(ty.shape[2]));
        let steps = nest.index(steps);
        let (zero, one) = (nest.number("0.0", dtype), nest.number("1.0", dtype));
        let (vector, taus) = (nest.array(dtype, ty.shape[1]), nest.array(dtype, ty.shape[2]));
        matrices.copy(nest, [item, &n], a, r);
        matrices.clear(nest, [item, &n], q);
        nest.each(&first, &steps, 1, |nest, i| q.set(nest, &[item, i, i], &one));
        let reflection = Reflection { matrices, item, rows: &n, columns: &columns, vector: &vector };
        nest.each(&first, &steps, 1, |nest, k| {
            let next = nest.next(k);
            let rest = nest.carry(&next, &n, 1, &[(&zero, float)], |nest, i, sum| {
                let x = r.get(nest, &[item, i, k]);
                vector.set(nest, i, &x);
                let square = nest.binary("arith.mulf", &x, &x, float);
                vec![nest.binary("arith.addf", &sum[0], &square, float)]
            });
            let head = r.get(nest, &[item, k, k]);
            let square = nest.binary("arith.mulf", &head, &head, float);
            let sum = nest.binary("arith.addf", &square, &rest[0], float);
            let length = nest.value(&format!("math.sqrt {sum} : {float}"));
            let minus = nest.value(&format!("arith.negf {length} : {float}"));
            let rises = nest.compare("ge", &head, &zero, dtype);
            let onto = nest.select(&rises, &minus, &length, dtype);
            let done = nest.compare("eq", &rest[0], &zero, dtype);
            let difference = nest.binary("arith.subf", &head, &onto, float);
            let divisor = nest.select(&done, &one, &difference, dtype);
            nest.each(&next, &n, 1, |nest, i| {
                let x = vector.get(nest, i);
                let x = nest.binary("arith.divf", &x, &divisor, float);
                vector.set(nest, i, &x);
            });
            vector.set(nest, k, &one);
            let back = nest.binary("arith.subf", &onto, &head, float);
            let onto = nest.select(&done, &one, &onto, dtype);
            let tau = nest.binary("arith.divf", &back, &onto, float);
            let tau = nest.select(&done, &zero, &tau, dtype);
            taus.set(nest, k, &tau);
            reflection.write(nest, r, k, &tau);
            nest.each(&next, &n, 1, |nest, i| {
                let x = vector.get(nest, i);
                r.set(nest, &[item, i, k], &x);
            });
        });
        nest.each(&first, &steps, 1, |nest, step| {
            let left = nest.binary("arith.subi", &steps, step, "index");
            let one_index = nest.index(1);
            let k = nest.binary("arith.subi", &left, &one_index, "index");
            vector.set(nest, &k, &one);
            nest.each(&left, &n, 1, |nest, i| {
                let x = r.get(nest, &[item, i, &k]);
                vector.set(nest, i, &x);
            });
            let tau = taus.get(nest, &k);
            reflection.write(nest, q, &k, &tau);
        });
    });
    (0..to.results().len()).map(|i| matrices.result(to, i, &results[i], &ty)).collect()
}

/// 1 - tau v v', of which v begins with a 1.
struct Reflection<'a> {
    matrices: &'a Matrices,
    item: &'a str,
    rows: &'a str,
    columns: &'a str,
    vector: &'a Array,
}

impl Reflection<'_> {
    /// Reflects the columns of `x` from column `k` on, whose rows the reflection leaves alone before row `k`.
    fn write(&self, nest: &mut LoopNest, x: &Tensor, k: &str, tau: &str) {
        let &Matrices { dtype, lanes, .. } = self.matrices;
        let (item, vector) = (self.item, self.vector);
        let start = nest.rounded_down(k, lanes);
        nest.each(&start, self.columns, lanes, |nest, c| {
            let sums = nest.accumulate([k, self.rows], 1, dtype, lanes, 1, |nest, i, sums| {
                let (row, element) = (x.get_lanes(nest, &[item, i, c], lanes), vector.get(nest, i));
                let elements = nest.splat(&element, dtype, lanes);
                vec![nest.multiply_add("arith.addf", [&sums[0], &elements, &row], dtype, lanes)]
            });
            let taus = nest.splat(tau, dtype, lanes);
            let along = nest.lanes("arith.mulf", &sums[0], &taus, dtype, lanes);
            let along = nest.from_lane(&along, c, k, dtype, lanes);
            nest.each(k, self.rows, 1, |nest, i| {
                let (row, element) = (x.get_lanes(nest, &[item, i, c], lanes), vector.get(nest, i));
                let elements = nest.splat(&element, dtype, lanes);
                let row = nest.multiply_add("arith.subf", [&row, &elements, &along], dtype, lanes);
                x.set_lanes(nest, &[item, i, c], &row, lanes);
            });
        });
    }
}
