//! Products of a workgroup's rows and of weights that are the same in all steps, made tile by tile in registers.

use super::plan::{Plan, Region};
use super::step::Step;
use crate::primitives::DotGeneral;
use crate::stablehlo::{LoopNest, Lowering};
use crate::tensor::{DType, TensorType};

/// Maximum terms of a product, beyond which sums are taken in blocks.
const TERMS: usize = 1024;

/// Elements of a vector.
pub(super) const LANES: usize = 16;

/// Maximum vectors of sums that are in registers, of the 32 of a processor.
const SUMS: usize = 16;

/// Weights of a product.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Weights {
    /// The position among the loop's operands.
    input: usize,
    /// The axis that is contracted.
    axis: usize,
    /// Terms of a sum.
    terms: usize,
    /// Columns of the product.
    columns: usize,
}

impl Weights {
    /// The weights of a product of these operands, the second of which is an operand of the loop; `None` if it is another product
    /// than that of rows.
    pub fn of(op: &DotGeneral, input: usize, [left, right]: [&TensorType; 2]) -> Option<Weights> {
        let [axis] = op.contract[1][..] else { return None };
        let rows = left.rank() == 2 && op.contract[0][..] == [1];
        let floats = left.dtype == DType::F32 && right.dtype == DType::F32;
        if !rows || !floats || right.rank() != 2 || !op.batch[0].is_empty() {
            return None;
        }
        let weights = Weights { input, axis, terms: right.shape[axis], columns: right.shape[1 - axis] };
        (weights.terms > 0 && weights.terms <= TERMS && weights.columns > 0).then_some(weights)
    }

    /// Number of weights.
    pub fn count(&self) -> usize {
        self.terms * self.columns.next_multiple_of(LANES)
    }

    /// Vectors of a tile's rows, for so many rows.
    fn vectors(&self, rows: usize) -> usize {
        let all = self.columns.div_ceil(LANES);
        let fits = |vectors: &usize| vectors * rows <= SUMS && all.is_multiple_of(*vectors);
        [4, 3, 2].into_iter().find(fits).unwrap_or(1)
    }

    /// Writes the weights in the order in which tiles of so many rows read them: `[tiles, terms, columns of a tile]`.
    pub fn packed(&self, rows: usize, to: &mut Lowering<'_>) -> (String, TensorType) {
        let width = self.vectors(rows) * LANES;
        let padded = self.columns.next_multiple_of(width);
        let tiles = padded / width;
        let (mut x, mut ty) = (to.operand(self.input), to.operand_type(self.input).clone());
        if padded != self.columns {
            let scalar = TensorType::scalar(DType::F32);
            let zero = to.splat(&scalar, "0.0");
            let mut high = [0, 0];
            high[1 - self.axis] = padded - self.columns;
            let mut wide = ty.clone();
            wide.shape[1 - self.axis] = padded;
            x = to.temporary(&format!(
                "stablehlo.pad {x}, {zero}, low = [0, 0], high = {high:?}, interior = [0, 0] : ({}, {}) -> {}",
                ty.mlir(),
                scalar.mlir(),
                wide.mlir()
            ));
            ty = wide;
        }
        let (shape, order) = match self.axis {
            0 => ([self.terms, tiles, width], [1, 0, 2]),
            _ => ([tiles, width, self.terms], [0, 2, 1]),
        };
        let cut = TensorType::new(DType::F32, shape.as_slice());
        let x = to.with_shape(&x, &ty, &cut);
        let packed = TensorType::new(DType::F32, [tiles, self.terms, width].as_slice());
        let x = to.temporary(&format!(
            "stablehlo.transpose {x}, dims = {order:?} : ({}) -> {}",
            cut.mlir(),
            packed.mlir()
        ));
        (x, packed)
    }
}

impl Step<'_> {
    /// Writes the product of a region of the scratch memory and of weights into another.
    pub fn product(&self, nest: &mut LoopNest, weights: usize, left: &Region, into: &Region) {
        let plan: &Plan = self.plan;
        let shape = &plan.weights[weights];
        let vectors = shape.vectors(plan.rows);
        let tiles = nest.index(shape.columns.div_ceil(vectors * LANES));
        let terms = nest.index(shape.terms);
        let width = nest.index(vectors * LANES);
        let places: Vec<String> = (0..vectors).map(|v| nest.index(v * LANES)).collect();
        nest.each(&self.zero, &tiles, 1, |nest, tile| {
            let sums = nest.accumulate(
                [&self.zero, &terms],
                1,
                DType::F32,
                LANES,
                plan.rows * vectors,
                |nest, k, sums| {
                    let tensor = &self.weights[weights];
                    let read = |place: &String| tensor.get_lanes(nest, &[tile, k, place], LANES);
                    let factors: Vec<String> = places.iter().map(read).collect();
                    let mut next = Vec::new();
                    for (r, sums) in sums.chunks(vectors).enumerate() {
                        let at = nest.offset(k, left.row(r));
                        let x = self.scratch.get(nest, &[self.group, &at]);
                        let x = nest.splat(&x, DType::F32, LANES);
                        for (sum, factor) in sums.iter().zip(&factors) {
                            next.push(nest.multiply_add("arith.addf", [sum, &x, factor], DType::F32, LANES));
                        }
                    }
                    next
                },
            );
            let column = nest.binary("arith.muli", tile, &width, "index");
            for (r, sums) in sums.chunks(vectors).enumerate() {
                for (v, sum) in sums.iter().enumerate() {
                    let at = nest.offset(&column, into.row(r) + v * LANES);
                    self.scratch.set_lanes(nest, &[self.group, &at], sum, LANES);
                }
            }
        });
    }
}
