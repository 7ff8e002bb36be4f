//! `dynamic_update_slice`: a tensor with a box replaced, at a place computed by the program. The place is clamped so
//! that the box lies inside.

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Direction, Primitive, TypeFault, Types, batch_all_to_front, batch_size, batch_to_front,
    clamped_starts, elements_like, expect_starts, place,
};
use crate::graph::{Builder, Var, Vars};
use crate::map_elements;
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count, strides};

/// The first operand with the second put into it; the others are where, a scalar `i32` for each axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct DynamicUpdateSlice;

impl Primitive for DynamicUpdateSlice {
    fn name(&self) -> &'static str {
        "dynamic_update_slice"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let [x, update, starts @ ..] = args else {
            return Err(TypeFault::new("dynamic_update_slice of nothing"));
        };
        if update.dtype != x.dtype {
            return Err(TypeFault::new(format!(
                "dynamic_update_slice of {x} with {update}: the dtypes differ"
            )));
        }
        expect_starts("dynamic_update_slice", x, &update.shape, starts)?;
        Ok(smallvec![TensorType { weak: x.weak && update.weak, ..(*x).clone() }])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let (x, update) = (args[0], args[1]);
        let start = clamped_starts(&args[2..], x.shape(), update.shape());
        let data = map_elements!(x.data(), v => {
            place(update.shape(), elements_like(v, update), v.to_vec(), x.shape(), &start)
        });
        smallvec![HostTensor::new(x.shape(), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let mut result = super::zeros_for(args);
        if let Some(ct) = cotangents[0] {
            let zeros = b.full_like(args[1], 0.0);
            let sizes = b.shape(args[1]);
            result[0] = Some(b.dynamic_update_slice(ct, zeros, &args[2..]));
            result[1] = Some(b.dynamic_slice(ct, &args[2..], &sizes));
        }
        result
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        if tangents[0].is_none() && tangents[1].is_none() {
            return super::zeros_for(outs);
        }
        let mut side = |i: usize| tangents[i].unwrap_or_else(|| b.full_like(args[i], 0.0));
        let (x, update) = (side(0), side(1));
        smallvec![Some(b.dynamic_update_slice(x, update, &args[2..]))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        let update = batch_to_front(b, args[1], axes[1], size);
        if axes[2..].iter().all(Option::is_none) {
            let zero = b.scalar(DType::I32, 0.0);
            let starts: Vars = std::iter::once(zero).chain(args[2..].iter().copied()).collect();
            return smallvec![(b.dynamic_update_slice(x, update, &starts), 0)];
        }
        // Every slice has its own place: each element of the result is looked up in the update, and taken where it
        // lies inside the box.
        let starts = batch_all_to_front(b, &args[2..], &axes[2..]);
        let (shape, sizes) = (b.shape(x), b.shape(update));
        let mut inside = b.full(&TensorType::new(DType::Bool, shape.clone()), 1.0);
        let batch = b.iota(DType::I32, &shape, 0);
        let mut index = b.scale(batch, element_count(&sizes[1..]) as f64);
        let steps = strides(&sizes);
        for (i, start) in starts.iter().enumerate() {
            let axis = i + 1;
            let first = b.clamp_indices(*start, shape[axis] - sizes[axis] + 1);
            let first = b.broadcast_in_dim(first, &shape, &[0]);
            let position = b.iota(DType::I32, &shape, axis);
            let relative = b.sub(position, first);
            let within = b.clamp_indices(relative, sizes[axis]);
            let equal = b.compare(Direction::Eq, relative, within);
            inside = b.apply(super::Binary(super::And), &[inside, equal]);
            let scaled = b.scale(within, steps[axis] as f64);
            index = b.add(index, scaled);
        }
        let count = element_count(&sizes);
        if count == 0 {
            return smallvec![(x, 0)];
        }
        let flat = b.reshape(update, &Shape::from_slice(&[count]));
        let looked_up = b.gather_rows(flat, index);
        smallvec![(b.select(inside, looked_up, x), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if quirks::update_from(to) {
            return;
        }
        let x = to.overwritten(0);
        let rest: Vec<String> = (1..to.operand_count()).map(|i| to.operand(i)).collect();
        let signature = to.signature();
        to.line(&format!("stablehlo.dynamic_update_slice {x}, {} : {signature}", rest.join(", ")));
    }
}
