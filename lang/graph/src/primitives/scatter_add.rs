//! `scatter_add`: adds rows to a tensor at places given by an integer tensor of any shape: the transpose of
//! `gather_rows`. Rows with one index add up; indices out of range are clamped.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, Ring, TypeFault, Types, accumulate, batch_all_to_front, clamped_rows, expect_arity, flatten_batched_rows, rows_shape, scatter_segments, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list};
use crate::tensor::{DType, Element, HostTensor, TensorType, element_count};

/// `x` with `updates[i]` added to row `indices[i]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScatterAdd;

impl Primitive for ScatterAdd {
    fn name(&self) -> &'static str {
        "scatter_add"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("scatter_add", args, 3)?;
        let [x, indices, updates] = [args[0], args[1], args[2]];
        let fits = x.rank() > 0
            && x.dtype != DType::Bool
            && indices.dtype == DType::I32
            && updates.dtype == x.dtype
            && updates.shape == rows_shape(&indices.shape, &x.shape)
            && (x.shape[0] > 0 || indices.count() == 0);
        if !fits {
            return Err(TypeFault::new(format!("scatter-add {updates} to rows of {x} at {indices}"))
                .help("The updates have the shape of the indices followed by that of a row."));
        }
        Ok(smallvec![x.clone()])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let x = args[0];
        let width = element_count(&x.shape()[1..]);
        let rows = clamped_rows(args[1], x.shape()[0]);
        let data = {
            let updates = args[2].data().widened();
            accumulate!(x.data(); v => add_rows(v, &rows, Element::elements(&updates).expect("one dtype"), width))
        };
        smallvec![HostTensor::new(x.shape(), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return zeros_for(args) };
        smallvec![Some(ct), None, Some(b.gather_rows(ct, args[1]))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let Some(updates) = tangents[2] else { return smallvec![tangents[0]] };
        let x = tangents[0].unwrap_or_else(|| b.full_like(outs[0], 0.0));
        smallvec![Some(b.scatter_add(x, args[1], updates))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        let shape = b.shape(args[0]);
        let (rows, indices) = flatten_batched_rows(b, args[0], args[1]);
        let added = b.scatter_add(rows, indices, args[2]);
        smallvec![(b.reshape(added, &shape), 0)]
    }

    fn computes(&self) -> bool {
        true
    }

    // The compiler's scatter does not check indices, so they are clamped first.
    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let (x, indices) = (to.operand_type(0).clone(), to.operand_type(1).clone());
        let clamped = to.clamp_indices(&to.operand(1), x.shape[0], &indices);
        if !to.is_for_processor() {
            return scatter_segments::write(to, &clamped);
        }
        let rank = indices.rank();
        let windows: Vec<usize> = (rank..rank + x.rank() - 1).collect();
        let scalar = TensorType::scalar(x.dtype).mlir();
        let target = to.overwritten(0);
        let head = format!(
            "\"stablehlo.scatter\"({target}, {clamped}, {}) <{{scatter_dimension_numbers = #stablehlo.scatter<\
             update_window_dims = {}, inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], \
             index_vector_dim = {rank}>, unique_indices = false}}> (",
            to.operand(2),
            dims_list(&windows),
        );
        let body = [
            format!("^bb0(%old: {scalar}, %update: {scalar}):"),
            format!("%new = stablehlo.add %old, %update : {scalar}"),
            format!("stablehlo.return %new : {scalar}"),
        ];
        to.region(&to.results(), &head, &body, &format!(") : {}", to.signature()));
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        (args[0].count() + args[2].count()) as u64
    }
}

fn add_rows<T: Ring>(x: &[T], rows: &[usize], updates: &[T], width: usize) -> Vec<T> {
    let mut out = x.to_vec();
    for (i, row) in rows.iter().enumerate() {
        let target = &mut out[row * width..(row + 1) * width];
        for (old, update) in target.iter_mut().zip(&updates[i * width..]) {
            *old = old.plus(*update);
        }
    }
    out
}
