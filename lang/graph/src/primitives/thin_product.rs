//! Products of a few vectors and a large matrix, as a kernel that reads the matrix once, from beginning to end.
//!
//! Such a product takes as long as the matrix takes to be read. IREE's kernel takes a few columns at a time through all rows: of each
//! row it reads a few cache lines, which a processor does not see coming (4096x4096 on a Zen 4: 11.6 ms on two cores, 2.4 so).
//!
//! Sums are added up in several chains, so that long ones need no blocks.

use super::{DotGeneral, Transpose};
use crate::graph::{DefUse, Equation, Var};
use crate::stablehlo::{Array, LoopNest, Lowering, Tensor, processor_lanes};
use crate::tensor::{DType, Shape, TensorType};

/// Minimum elements of the matrix: a smaller one is in a cache, and its product is joined with other operations.
const LARGE: usize = 1 << 16;

/// Minimum elements of the matrix for several vectors.
const LARGE_FOR_VECTORS: usize = 1 << 20;

/// Maximum vectors. For more, and for several where the terms of a sum lie side by side, IREE's kernel is as quick.
const VECTORS: usize = 4;

/// Maximum terms of a sum, which is one of 1,024 sums of 8 terms.
const TERMS: usize = 8192;

/// Rows of the matrix that are taken together.
const ROWS: usize = 8;

/// Rows of the matrix whose elements are the terms of sums, taken together.
const SUMS: usize = 4;

/// Maximum sums that a workgroup has in memory, of all vectors.
const TILE: usize = 2048;

/// Sums of a workgroup for which there is another one, up to [`GROUPS`].
const NARROW: usize = 192;

/// Workgroups that share the memory's bandwidth.
const GROUPS: usize = 8;

/// Such a product.
pub struct ThinProduct {
    /// The position of the vectors.
    vector: usize,
    /// The matrix, before a transposition.
    source: Var,
    vectors: usize,
    /// Terms of each sum.
    terms: usize,
    /// Sums for each vector.
    sums: usize,
    /// The terms of a sum lie side by side in the matrix; else the sums do.
    terms_inside: bool,
    dtype: DType,
}

impl ThinProduct {
    /// `eqn`, if it is such a product.
    pub fn of(uses: &DefUse<'_>, eqn: &Equation) -> Option<ThinProduct> {
        let op = eqn.op.downcast_ref::<DotGeneral>()?;
        let left = uses.graph.ty(eqn.inputs[0]);
        let alone = op.batch[0].iter().all(|axis| left.shape[*axis] == 1);
        if !alone || !matches!(left.dtype, DType::F32 | DType::F64) {
            return None;
        }
        [1, 0].into_iter().find_map(|matrix| ThinProduct::with_matrix(uses, eqn, op, matrix))
    }

    fn with_matrix(uses: &DefUse<'_>, eqn: &Equation, op: &DotGeneral, matrix: usize) -> Option<ThinProduct> {
        let shape = |side: usize| &uses.graph.ty(eqn.inputs[side]).shape;
        // Axes of one element are anywhere.
        let long = |side: usize, axes: &[usize]| -> Shape {
            axes.iter().copied().filter(|axis| shape(side)[*axis] != 1).collect()
        };
        let extent =
            |side: usize, axes: &[usize]| axes.iter().map(|axis| shape(side)[*axis]).product::<usize>();
        let free = |side: usize| long(side, &op.free(side, shape(side).len()));
        let vector = 1 - matrix;
        let (own, others) = (free(matrix), free(vector));
        let (terms, sums, vectors) =
            (extent(matrix, &op.contract[matrix]), extent(matrix, &own), extent(vector, &others));
        let (source, order) = before_transpose(uses, eqn.inputs[matrix]);
        let place = |axes: Shape| -> Shape {
            axes.iter().map(|axis| order.map_or(*axis, |order| order[*axis])).collect()
        };
        let (own, contracted) = (place(own), place(long(matrix, &op.contract[matrix])));
        let terms_inside = in_turn(&own, &contracted);
        let (width, most) = if terms_inside { (terms, 1) } else { (sums, VECTORS) };
        let dtype = uses.graph.ty(source).dtype;
        let fits = (terms_inside || in_turn(&contracted, &own))
            && in_turn(&others, &long(vector, &op.contract[vector]))
            // Of the result, the axes of the left operand come first.
            && (vectors == 1 || matrix == 1 && vectors <= most && terms * sums >= LARGE_FOR_VECTORS)
            && terms <= TERMS
            && terms * sums >= LARGE
            && width >= processor_lanes(dtype)
            && sums >= SUMS;
        fits.then_some(ThinProduct { vector, source, vectors, terms, sums, terms_inside, dtype })
    }

    /// Writes the product.
    pub fn write(&self, to: &mut Lowering<'_>) {
        let shape = if self.terms_inside { [self.sums, self.terms] } else { [self.terms, self.sums] };
        let vectors = self.operand(to, to.operand_var(self.vector), [self.vectors, self.terms]);
        let matrix = self.operand(to, self.source, shape);
        let result = TensorType::new(self.dtype, [self.vectors, self.sums].as_slice());
        let step = if self.terms_inside { SUMS } else { processor_lanes(self.dtype) };
        let width = self.sums.div_ceil(self.groups()).next_multiple_of(step).min(self.sums / step * step);
        let groups = self.sums.div_ceil(width);
        let made = to.loop_nest(
            &[matrix, vectors],
            std::slice::from_ref(&result),
            groups,
            |nest, read, written, group| {
                // The last workgroups share sums, so that all have as many.
                let (width, last) = (nest.index(width), nest.index(self.sums - width));
                let first = nest.binary("arith.muli", group, &width, "index");
                let first = nest.binary("arith.minui", &first, &last, "index");
                let kernel = Kernel {
                    product: self,
                    m: &read[0],
                    x: &read[1],
                    sums: &written[0],
                    lanes: processor_lanes(self.dtype),
                    zero: nest.index(0),
                };
                if self.terms_inside {
                    kernel.by_sums(nest, &first, &width);
                } else {
                    kernel.by_terms(nest, &first, &width);
                }
            },
        );
        let into = to.result_type(0).clone();
        let name = to.with_shape(&made[0], &result, &into);
        to.name_results(&[name]);
    }

    fn operand(&self, to: &mut Lowering<'_>, var: Var, shape: [usize; 2]) -> (String, TensorType) {
        let (x, from) = (to.name(var).to_owned(), to.ty(var).clone());
        let ty = TensorType::new(self.dtype, shape.as_slice());
        (to.with_shape(&x, &from, &ty), ty)
    }

    fn groups(&self) -> usize {
        let narrow = 1 << (self.sums / NARROW).clamp(1, GROUPS).ilog2();
        let tiles = self.sums.div_ceil(self.tile());
        if tiles <= narrow { narrow } else { tiles.next_multiple_of(GROUPS) }
    }

    fn tile(&self) -> usize {
        let lanes = processor_lanes(self.dtype);
        if self.terms_inside { TILE } else { TILE / self.vectors / lanes * lanes }
    }
}

/// The operand of the transposition that gives a variable, with the places of the variable's axes in it; the variable itself, if it is none.
fn before_transpose<'a>(uses: &DefUse<'a>, var: Var) -> (Var, Option<&'a [usize]>) {
    let transposed = || {
        let eqn = uses.definition(var)?;
        let op = eqn.op.downcast_ref::<Transpose>()?;
        Some((eqn.inputs[0], Some(&*op.permutation)))
    };
    transposed().unwrap_or((var, None))
}

/// True if axes come in this order, all of the first before those of the second.
fn in_turn(first: &[usize], second: &[usize]) -> bool {
    first.iter().chain(second).is_sorted()
}

/// The body of the kernel.
struct Kernel<'a> {
    product: &'a ThinProduct,
    /// The matrix, the vectors and the result.
    m: &'a Tensor,
    x: &'a Tensor,
    sums: &'a Tensor,
    lanes: usize,
    zero: String,
}

impl Kernel<'_> {
    /// Writes `width` sums from the first, side by side in each row of the matrix: some rows at a time are added to all of them.
    fn by_terms(&self, nest: &mut LoopNest, first: &str, width: &str) {
        let &ThinProduct { vectors, terms, dtype, .. } = self.product;
        let totals: Vec<Array> = (0..vectors).map(|_| nest.array(dtype, self.product.tile())).collect();
        nest.each(&self.zero, width, self.lanes, |nest, i| {
            let zeros = nest.zeros(dtype, self.lanes);
            totals.iter().for_each(|total| total.set_lanes(nest, i, &zeros, self.lanes));
        });
        let (rest, end) = (nest.index(terms / ROWS * ROWS), nest.index(terms));
        for (from, to, rows) in [(&self.zero, &rest, ROWS), (&rest, &end, 1)] {
            nest.each(from, to, rows, |nest, k| self.rows(nest, &totals, k, rows, first, width));
        }
        nest.each(&self.zero, width, self.lanes, |nest, i| {
            let at = nest.add(first, i);
            for (v, total) in totals.iter().enumerate() {
                let (v, total) = (nest.index(v), total.get_lanes(nest, i, self.lanes));
                self.sums.set_lanes(nest, &[&v, &at], &total, self.lanes);
            }
        });
    }

    /// Writes the addition of `rows` rows from row `k` on, each times a number of each vector.
    fn rows(&self, nest: &mut LoopNest, totals: &[Array], k: &str, rows: usize, first: &str, width: &str) {
        let (dtype, lanes) = (self.product.dtype, self.lanes);
        let places: Vec<String> = (0..rows).map(|row| nest.offset(k, row)).collect();
        let mut factors = Vec::new();
        for v in 0..totals.len() {
            let v = nest.index(v);
            let factor = |place: &String| {
                let x = self.x.get(nest, &[&v, place]);
                nest.splat(&x, dtype, lanes)
            };
            factors.push(places.iter().map(factor).collect::<Vec<String>>());
        }
        nest.each(&self.zero, width, lanes, |nest, i| {
            let at = nest.add(first, i);
            let row = |place: &String| self.m.get_lanes(nest, &[place, &at], lanes);
            let read: Vec<String> = places.iter().map(row).collect();
            for (factors, total) in factors.iter().zip(totals) {
                let product = |(x, y): (&String, &String)| nest.lanes("arith.mulf", x, y, dtype, lanes);
                let mut terms: Vec<String> = read.iter().zip(factors).map(product).collect();
                while terms.len() > 1 {
                    let pair = |pair: &[String]| nest.lanes("arith.addf", &pair[0], &pair[1], dtype, lanes);
                    terms = terms.chunks(2).map(pair).collect();
                }
                let sum = total.get_lanes(nest, i, lanes);
                let sum = nest.lanes("arith.addf", &sum, &terms[0], dtype, lanes);
                total.set_lanes(nest, i, &sum, lanes);
            }
        });
    }

    /// Writes `width` sums from the first, whose terms lie side by side: some sums at a time.
    fn by_sums(&self, nest: &mut LoopNest, first: &str, width: &str) {
        nest.each(&self.zero, width, SUMS, |nest, i| {
            let first = nest.add(first, i);
            let rows: Vec<String> = (0..SUMS).map(|row| nest.offset(&first, row)).collect();
            for v in 0..self.product.vectors {
                let v = nest.index(v);
                for (row, total) in rows.iter().zip(self.totals(nest, &v, &rows)) {
                    self.sums.set(nest, &[&v, row], &total);
                }
            }
        });
    }

    /// Writes the products of a vector and some rows of the matrix.
    fn totals(&self, nest: &mut LoopNest, v: &str, rows: &[String]) -> Vec<String> {
        let &ThinProduct { terms, dtype, .. } = self.product;
        let lanes = self.lanes;
        let whole = terms / lanes * lanes;
        let rest = nest.index(whole);
        let mut sums =
            nest.accumulate([&self.zero, &rest], lanes, dtype, lanes, rows.len(), |nest, k, sums| {
                let factors = self.x.get_lanes(nest, &[v, k], lanes);
                let add = |(row, sum): (&String, &String)| {
                    let y = self.m.get_lanes(nest, &[row, k], lanes);
                    nest.multiply_add("arith.addf", [sum, &factors, &y], dtype, lanes)
                };
                rows.iter().zip(sums).map(add).collect()
            });
        if whole < terms {
            // The last vector has terms again that are counted already.
            let k = nest.index(terms - lanes);
            let factors = self.x.get_lanes(nest, &[v, &k], lanes);
            for (row, sum) in rows.iter().zip(&mut sums) {
                let y = self.m.get_lanes(nest, &[row, &k], lanes);
                let product = nest.lanes("arith.mulf", &factors, &y, dtype, lanes);
                let product = nest.from_lane(&product, &k, &rest, dtype, lanes);
                *sum = nest.lanes("arith.addf", sum, &product, dtype, lanes);
            }
        }
        sums.iter().map(|sum| nest.total(sum, dtype, lanes)).collect()
    }
}
