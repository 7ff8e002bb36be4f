//! `gather_rows`: rows of a tensor (its slices along axis 0) by an integer tensor of any shape. Indices out of range
//! are clamped.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{DType, Data, HostTensor, Shape, TensorType, element_count};

/// `x[indices]`: the shape of the indices, then that of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GatherRows;

impl Primitive for GatherRows {
    fn name(&self) -> &'static str {
        "gather_rows"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("gather_rows", args, 2)?;
        let [x, indices] = [args[0], args[1]];
        if x.rank() == 0 || indices.dtype != DType::I32 || (x.shape[0] == 0 && indices.count() > 0) {
            return Err(TypeFault::new(format!("gather rows of {x} by {indices}")));
        }
        Ok(smallvec![TensorType::new(x.dtype, rows_shape(&indices.shape, &x.shape))])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let (x, indices) = (args[0], args[1]);
        let width = element_count(&x.shape()[1..]);
        let rows = clamped_rows(indices, x.shape()[0]);
        let data = map_elements!(x.data(), v => {
            let mut out = Vec::with_capacity(rows.len() * width);
            for row in &rows {
                out.extend_from_slice(&v[row * width..(row + 1) * width]);
            }
            out
        });
        smallvec![HostTensor::new(rows_shape(indices.shape(), x.shape()), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return zeros_for(args) };
        let zeros = b.full_like(args[0], 0.0);
        smallvec![Some(b.scatter_add(zeros, args[1], ct)), None]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.gather_rows(t, args[1]))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let [mut x, mut indices] = [args[0], args[1]];
        match axes[0] {
            None => {
                indices = batch_to_front(b, indices, axes[1], size);
                smallvec![(b.gather_rows(x, indices), 0)]
            }
            Some(axis) if axes[1].is_none() => {
                // The batch axis becomes part of the rows.
                if axis == 0 {
                    let mut order: Vec<usize> = (0..b.ty(x).rank()).collect();
                    order.swap(0, 1);
                    x = b.transpose(x, &order);
                }
                let rank = b.ty(indices).rank();
                smallvec![(b.gather_rows(x, indices), rank + axis.max(1) - 1)]
            }
            axis => {
                x = batch_to_front(b, x, axis, size);
                indices = batch_to_front(b, indices, axes[1], size);
                let (rows, indices) = flatten_batched_rows(b, x, indices);
                smallvec![(b.gather_rows(rows, indices), 0)]
            }
        }
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if quirks::gather_of_one_number(to) {
            return;
        }
        let (x, indices) = (to.operand_type(0).shape.clone(), to.operand_type(1).clone());
        let clamped = quirks::indices_in_bounds(to, x[0]);
        let rank = indices.rank();
        let offsets: Vec<usize> = (rank..rank + x.len() - 1).collect();
        let mut sizes = x;
        sizes[0] = 1;
        let sizes: Vec<String> = sizes.iter().map(ToString::to_string).collect();
        let source = quirks::to_be_indexed(to, &to.operand(0), &to.operand_type(0).clone());
        let gather = format!(
            "\"stablehlo.gather\"({source}, {clamped}) <{{dimension_numbers = #stablehlo.gather<offset_dims = {}, \
             collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = {rank}>, \
             slice_sizes = array<i64: {}>}}> : {}",
            dims_list(&offsets),
            sizes.join(", "),
            to.signature(),
        );
        quirks::gather(to, &gather);
    }
}

/// The shape of the rows of a tensor of shape `x` at indices of shape `indices`.
pub fn rows_shape(indices: &[usize], x: &[usize]) -> Shape {
    indices.iter().chain(&x[1..]).copied().collect()
}

/// The rows that indices mean in a tensor of `count` rows.
pub fn clamped_rows(indices: &HostTensor, count: usize) -> Vec<usize> {
    let Data::I32(indices) = indices.data() else { unreachable!("the type rule wants i32") };
    indices.iter().map(|i| (*i).clamp(0, count.saturating_sub(1) as i32) as usize).collect()
}

/// For batches of rows and of indices, both with the batch axis in front: all rows one after the other, and indices
/// into them.
pub fn flatten_batched_rows(b: &mut Builder, x: Var, indices: Var) -> (Var, Var) {
    let shape = b.shape(x);
    let (size, count) = (shape[0], shape[1]);
    let flat: Vec<usize> = std::iter::once(size * count).chain(shape[2..].iter().copied()).collect();
    let rows = b.reshape(x, &flat);
    let index_shape = b.shape(indices);
    let inside = b.clamp_indices(indices, count);
    let batch = b.iota(DType::I32, &index_shape, 0);
    let first = b.scale(batch, count as f64);
    (rows, b.add(first, inside))
}
