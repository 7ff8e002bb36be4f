//! `pad`: a margin of one value around a tensor.

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, elements_like, expect_arity,
    gather_offsets, zeros_for,
};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count, strides};

/// The first operand with `low` and `high` more elements at the ends of each axis, each the scalar second operand.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Pad {
    /// Number of elements before.
    pub low: Shape,
    /// Number of elements after.
    pub high: Shape,
}

impl Pad {
    fn padded(&self, shape: &[usize]) -> Shape {
        shape
            .iter()
            .zip(self.low.iter().zip(&self.high))
            .map(|(extent, (low, high))| low + extent + high)
            .collect()
    }

    fn inner(&self, b: &mut Builder, x: Var, of: Var) -> Var {
        let shape = b.shape(of);
        let limit: Shape = self.low.iter().zip(&shape).map(|(low, extent)| low + extent).collect();
        b.slice(x, &self.low, &limit)
    }
}

impl Primitive for Pad {
    fn name(&self) -> &'static str {
        "pad"
    }

    fn parameters(&self) -> String {
        format!("low={:?} high={:?}", self.low, self.high)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("pad", args, 2)?;
        let [x, value] = [args[0], args[1]];
        if value.rank() != 0
            || value.dtype != x.dtype
            || self.low.len() != x.rank()
            || self.high.len() != x.rank()
        {
            return Err(TypeFault::new(format!(
                "pad {x} with {value} by {:?} and {:?}",
                self.low.as_slice(),
                self.high.as_slice()
            )));
        }
        Ok(smallvec![x.with_shape(self.padded(&x.shape))])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = self.padded(args[0].shape());
        let data = map_elements!(args[0].data(), v => {
            let value = elements_like(v, args[1])[0];
            place(args[0].shape(), v, vec![value; element_count(&shape)], &shape, &self.low)
        });
        smallvec![HostTensor::new(shape, data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return zeros_for(args) };
        let inner = self.inner(b, ct, args[0]);
        let all: Vec<usize> = (0..self.low.len()).collect();
        let (sum, inner_sum) = (b.sum(ct, &all), b.sum(inner, &all));
        smallvec![Some(inner), Some(b.sub(sum, inner_sum))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let mut side = |i: usize| tangents[i].unwrap_or_else(|| b.full_like(args[i], 0.0));
        let parts = [side(0), side(1)];
        smallvec![Some(b.apply(self.clone(), &parts))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        let with_front = |list: &Shape| -> Shape { std::iter::once(0).chain(list.iter().copied()).collect() };
        let op = Pad { low: with_front(&self.low), high: with_front(&self.high) };
        if axes[1].is_none() {
            return smallvec![(b.apply(op, &[x, args[1]]), 0)];
        }
        // Each slice has its own value: the margin is marked and filled afterwards.
        let ty = b.ty(x).clone();
        let inside = b.full(&ty.with_dtype(DType::Bool), 1.0);
        let (outside, zero) = (b.scalar(DType::Bool, 0.0), b.scalar(ty.dtype, 0.0));
        let inside = b.apply(op.clone(), &[inside, outside]);
        let padded = b.apply(op, &[x, zero]);
        let shape = b.shape(padded);
        let values = b.broadcast_in_dim(args[1], &shape, &[0]);
        smallvec![(b.select(inside, padded, values), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if quirks::padding(to, &self.low) {
            return;
        }
        let interior = Shape::from_elem(0, self.low.len());
        to.typed(
            "stablehlo.pad",
            &format!(
                ", low = {}, high = {}, interior = {}",
                dims_list(&self.low),
                dims_list(&self.high),
                dims_list(&interior)
            ),
        );
    }
}

/// `into`, of shape `to`, with the elements of a tensor of shape `from` put into it from `start` on.
pub fn place<T: Copy>(
    from: &[usize],
    elements: &[T],
    mut into: Vec<T>,
    to: &[usize],
    start: &[usize],
) -> Vec<T> {
    let own = strides(to);
    let base: usize = start.iter().zip(&own).map(|(s, stride)| s * stride).sum();
    for (offset, element) in gather_offsets(from, &own).into_iter().zip(elements) {
        into[base + offset] = *element;
    }
    into
}
