//! Batches of matrices as kernels take and give them.

use super::Kernel;
use crate::stablehlo::{LoopNest, Lowering, MAX_ARRAYS, Tensor, processor_lanes};
use crate::tensor::{DType, TensorType};

/// Bytes from one row to the next at which a column has few places in a processor's cache.
const CACHE_STRIDE: usize = 2048;

/// Maximum elements of a vector.
const WIDEST: usize = 64;

/// The operands of a kernel as batches of matrices, and what its vectors are like.
pub(super) struct Matrices {
    pub dtype: DType,
    pub batch: usize,
    /// Elements of a vector; rows have a margin of zeros up to whole ones.
    pub lanes: usize,
}

impl Matrices {
    /// None if the kernel is not for the device, or the matrices are too large for it.
    pub fn of(to: &Lowering<'_>, kernel: Kernel) -> Option<Matrices> {
        let types: Vec<&TensorType> = (0..to.operand_count()).map(|i| to.operand_type(i)).collect();
        let (dtype, rank) = (types[0].dtype, types[0].rank());
        let columns = types[types.len() - 1].shape[rank - 1];
        let fits = types.iter().all(|ty| {
            let extents = &ty.shape[rank - 2..];
            let longest = extents.iter().max().map_or(0, |extent| extent + WIDEST);
            ty.count() > 0
                && extents.iter().product::<usize>() <= kernel.max_elements()
                && kernel.arrays() * longest * dtype.byte_width() <= MAX_ARRAYS
        });
        let taken = matches!(dtype, DType::F32 | DType::F64) && fits;
        if !taken || !to.is_for_processor() || to.in_kernel() {
            return None;
        }
        let batch = types[0].shape[..rank - 2].iter().product();
        let matrices = Matrices { dtype, batch, lanes: 1 };
        // Sums of several vectors do not wait for each other; an eighth of the columns may be margin.
        let wide = [4, 2].map(|vectors| vectors * processor_lanes(matrices.dtype));
        let fits = |lanes: &usize| columns.next_multiple_of(*lanes) <= columns + columns / 8;
        let lanes = wide.into_iter().find(fits).unwrap_or_else(|| processor_lanes(matrices.dtype));
        Some(Matrices { lanes, ..matrices })
    }

    /// The type of `rows` with whole vectors of columns, and one more where rows would share their places in a cache.
    pub fn ty(&self, rows: usize, columns: usize) -> TensorType {
        let mut columns = columns.next_multiple_of(self.lanes);
        if self.lanes > 1 && (columns * self.dtype.byte_width()).is_multiple_of(CACHE_STRIDE) {
            columns += self.lanes;
        }
        TensorType::new(self.dtype, [self.batch, rows, columns].as_slice())
    }

    /// Operand `i` in that form.
    pub fn operand(&self, to: &mut Lowering<'_>, i: usize) -> (String, TensorType) {
        let from = to.operand_type(i).clone();
        let [.., rows, columns] = from.shape[..] else { unreachable!("matrices have two axes") };
        let (plain, whole) =
            (from.with_shape([self.batch, rows, columns].as_slice()), self.ty(rows, columns));
        let x = to.operand(i);
        let x = to.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", from.mlir(), plain.mlir()));
        if plain == whole {
            return (x, whole);
        }
        let scalar = TensorType::scalar(self.dtype);
        let zero = to.splat(&scalar, "0.0");
        let padded = to.temporary(&format!(
            "stablehlo.pad {x}, {zero}, low = [0, 0, 0], high = [0, 0, {}], interior = [0, 0, 0] : ({}, {}) -> {}",
            whole.shape[2] - columns,
            plain.mlir(),
            scalar.mlir(),
            whole.mlir()
        ));
        (padded, whole)
    }

    /// Tensor `x` of type `ty`, which a kernel gave, in the shape of result `i`: without its margin and surplus rows.
    pub fn result(&self, to: &mut Lowering<'_>, i: usize, x: &str, ty: &TensorType) -> String {
        let into = to.result_type(i).clone();
        let axes = ty.rank() - 1;
        let mut shape = vec![self.batch];
        shape.extend(&into.shape[into.rank() - axes..]);
        let plain = ty.with_shape(shape.as_slice());
        let mut x = x.to_owned();
        if plain != *ty {
            let bounds: Vec<String> = plain.shape.iter().map(|extent| format!("0:{extent}")).collect();
            x = to.temporary(&format!(
                "stablehlo.slice {x} [{}] : ({}) -> {}",
                bounds.join(", "),
                ty.mlir(),
                plain.mlir()
            ));
        }
        to.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", plain.mlir(), into.mlir()))
    }

    /// Writes a vector in each place of `rows` rows of a result, given its row and column.
    pub fn fill(
        &self,
        nest: &mut LoopNest,
        [item, rows]: [&str; 2],
        result: &Tensor,
        vector: impl FnOnce(&mut LoopNest, &str, &str) -> String,
    ) {
        let (first, columns) = (nest.index(0), nest.index(result.extent()));
        nest.each(&first, rows, 1, |nest, i| {
            nest.each(&first, &columns, self.lanes, |nest, c| {
                let x = vector(nest, i, c);
                result.set_lanes(nest, &[item, i, c], &x, self.lanes);
            });
        });
    }

    /// Writes the rows of an operand to a result.
    pub fn copy(&self, nest: &mut LoopNest, at: [&str; 2], operand: &Tensor, result: &Tensor) {
        self.fill(nest, at, result, |nest, i, c| operand.get_lanes(nest, &[at[0], i, c], self.lanes));
    }

    /// Writes zeros to a result.
    pub fn clear(&self, nest: &mut LoopNest, at: [&str; 2], result: &Tensor) {
        self.fill(nest, at, result, |nest, _, _| nest.zeros(self.dtype, self.lanes));
    }
}
