//! Rotations of pairs of rows until all are orthogonal (M. R. Hestenes, 1958), as many as it takes.

use super::Matrices;
use crate::stablehlo::{LoopNest, Lowering, Tensor};
use crate::tensor::DType;

/// Maximum sweeps over all pairs; ten are many.
const MAX_SWEEPS: usize = 30;

/// Number of rows that meet others at a time: their pairs have no row in common, so none waits for the sums, roots and quotients of
/// another.
const ROWS: usize = 4;

/// Writes the rows turned, and the turn if there is a second result.
pub(super) fn write(to: &mut Lowering<'_>, matrices: &Matrices) -> Vec<String> {
    let (a, ty) = matrices.operand(to, 0);
    let &Matrices { dtype, lanes, batch } = matrices;
    let float = dtype.mlir();
    let turn_ty = matrices.ty(ty.shape[1], ty.shape[1]);
    let types = &[ty.clone(), turn_ty.clone()][..to.results().len()];
    let results = to.loop_nest(&[(a, ty.clone())], types, batch, |nest, read, written, item| {
        let (a, u) = (&read[0], &written[0]);
        let (first, n, columns) = (nest.index(0), nest.index(ty.shape[1]), nest.index(ty.shape[2]));
        let (one, two) = (nest.number("1.0", dtype), nest.number("2.0", dtype));
        matrices.copy(nest, [item, &n], a, u);
        for v in &written[1..] {
            matrices.clear(nest, [item, &n], v);
            nest.each(&first, &n, 1, |nest, i| v.set(nest, &[item, i, i], &one));
        }
        // A sweep that turns something is followed by another.
        let again = nest.array(DType::I32, 1);
        let (yes, no) = (nest.number("1", DType::I32), nest.number("0", DType::I32));
        again.set(nest, &first, &yes);
        // Rounding of a product of two rows.
        let epsilon = if dtype == DType::F32 { f64::from(f32::EPSILON) } else { f64::EPSILON };
        let least = nest.number(&format!("{:?}", epsilon * (ty.shape[2] as f64).sqrt()), dtype);
        // Squares of the lengths of the rows, which a turn changes by what it is known to.
        let squares = nest.array(dtype, ty.shape[1]);
        let product = |nest: &mut LoopNest, p: &str, q: &str| {
            let sums = nest.accumulate([&first, &columns], lanes, dtype, lanes, 1, |nest, c, sums| {
                let x = u.get_lanes(nest, &[item, p, c], lanes);
                let y = u.get_lanes(nest, &[item, q, c], lanes);
                vec![nest.multiply_add("arith.addf", [&sums[0], &x, &y], dtype, lanes)]
            });
            nest.total(&sums[0], dtype, lanes)
        };
        // Of the rotations of pairs that are met together; a sine of zero turns nothing.
        let [sines, ratios] = [(); 2].map(|()| nest.array(dtype, ROWS));
        let zero = nest.number("0.0", dtype);
        let rotate = |nest: &mut LoopNest, [i, p, q]: [&str; 3]| {
            sines.set(nest, i, &zero);
            let off = product(nest, p, q);
            let lengths = [squares.get(nest, p), squares.get(nest, q)];
            let roots = [&lengths[0], &lengths[1]].map(|x| nest.value(&format!("math.sqrt {x} : {float}")));
            let size = nest.binary("arith.mulf", &roots[0], &roots[1], float);
            let bound = nest.binary("arith.mulf", &size, &least, float);
            let distance = nest.value(&format!("math.absf {off} : {float}"));
            let turns = nest.compare("gt", &distance, &bound, dtype);
            nest.when(&turns, |nest| {
                again.set(nest, &first, &yes);
                let apart = nest.binary("arith.subf", &lengths[1], &lengths[0], float);
                let twice = nest.binary("arith.mulf", &two, &off, float);
                let z = nest.binary("arith.divf", &apart, &twice, float);
                let (tangent, [sine, ratio]) = rotation(nest, &z, [&one, float]);
                let change = nest.binary("arith.mulf", &tangent, &off, float);
                let shorter = nest.binary("arith.subf", &lengths[0], &change, float);
                let longer = nest.binary("arith.addf", &lengths[1], &change, float);
                squares.set(nest, p, &shorter);
                squares.set(nest, q, &longer);
                sines.set(nest, i, &sine);
                ratios.set(nest, i, &ratio);
            });
        };
        let turn_rows = |nest: &mut LoopNest, [i, p, q]: [&str; 3]| {
            let sine = sines.get(nest, i);
            let turns = nest.compare("ne", &sine, &zero, dtype);
            nest.when(&turns, |nest| {
                let rotation = [sine.clone(), ratios.get(nest, i)];
                written.iter().for_each(|x| turn(nest, x, [item, p, q], &rotation, matrices));
            });
        };
        let sweeps = nest.index(MAX_SWEEPS);
        nest.each(&first, &sweeps, 1, |nest, _| {
            let wanted = again.get(nest, &first);
            let wanted = nest.value(&format!("arith.cmpi ne, {wanted}, {no} : i32"));
            nest.when(&wanted, |nest| {
                again.set(nest, &first, &no);
                nest.each(&first, &n, 1, |nest, p| {
                    let square = product(nest, p, p);
                    squares.set(nest, p, &square);
                });
                nest.each(&first, &n, ROWS, |nest, row| {
                    let (next, end) = (nest.next(row), nest.offset(&n, ROWS - 1));
                    nest.each(&next, &end, 1, |nest, column| {
                        each_pair(nest, [row, column, &n], rotate);
                        each_pair(nest, [row, column, &n], turn_rows);
                    });
                });
            });
        });
    });
    results.iter().zip(types).enumerate().map(|(i, (x, ty))| matrices.result(to, i, x, ty)).collect()
}

/// Writes what happens, for i below `ROWS`, to the pair p = row + i and q = column - i: with column after column, in effect, to all
/// pairs of these rows and those after them in the order of p and then q, since pairs without a row in common may change places.
fn each_pair(nest: &mut LoopNest, [row, column, n]: [&str; 3], body: impl Fn(&mut LoopNest, [&str; 3])) {
    let (first, rows) = (nest.index(0), nest.index(ROWS));
    nest.each(&first, &rows, 1, |nest, i| {
        let p = nest.add(row, i);
        let q = nest.binary("arith.subi", column, i, "index");
        let later = nest.binary("arith.cmpi slt,", &p, &q, "index");
        let inside = nest.binary("arith.cmpi slt,", &q, n, "index");
        let pair = nest.binary("arith.andi", &later, &inside, "i1");
        nest.when(&pair, |nest| body(nest, [i, &p, &q]));
    });
}

/// The tangent of the angle; its sine s, and r = s / (1 + cosine): 1 - s r is the cosine, with more digits (H. Rutishauser, 1966).
fn rotation(nest: &mut LoopNest, z: &str, [one, float]: [&str; 2]) -> (String, [String; 2]) {
    let hypotenuse = |nest: &mut LoopNest, x: &str| {
        let square = nest.binary("arith.mulf", x, x, float);
        let sum = nest.binary("arith.addf", &square, one, float);
        nest.value(&format!("math.sqrt {sum} : {float}"))
    };
    let size = nest.value(&format!("math.absf {z} : {float}"));
    let root = hypotenuse(nest, z);
    let sum = nest.binary("arith.addf", &size, &root, float);
    let tangent = nest.binary("arith.divf", one, &sum, float);
    let tangent = nest.binary("math.copysign", &tangent, z, float);
    let root = hypotenuse(nest, &tangent);
    let cosine = nest.binary("arith.divf", one, &root, float);
    let sine = nest.binary("arith.mulf", &tangent, &cosine, float);
    let more = nest.binary("arith.addf", one, &cosine, float);
    let ratio = nest.binary("arith.divf", &sine, &more, float);
    (tangent, [sine, ratio])
}

/// Turns rows p and q.
fn turn(nest: &mut LoopNest, x: &Tensor, [item, p, q]: [&str; 3], rotation: &[String; 2], matrices: &Matrices) {
    let &Matrices { dtype, lanes, .. } = matrices;
    let [s, r] = [&rotation[0], &rotation[1]].map(|x| nest.splat(x, dtype, lanes));
    let (first, columns) = (nest.index(0), nest.index(x.extent()));
    nest.each(&first, &columns, lanes, |nest, c| {
        let upper = x.get_lanes(nest, &[item, p, c], lanes);
        let lower = x.get_lanes(nest, &[item, q, c], lanes);
        let onto = nest.multiply_add("arith.addf", [&lower, &r, &upper], dtype, lanes);
        let turned = nest.multiply_add("arith.subf", [&upper, &s, &onto], dtype, lanes);
        let back = nest.multiply_add("arith.subf", [&upper, &r, &lower], dtype, lanes);
        let other = nest.multiply_add("arith.addf", [&lower, &s, &back], dtype, lanes);
        x.set_lanes(nest, &[item, p, c], &turned, lanes);
        x.set_lanes(nest, &[item, q, c], &other, lanes);
    });
}
