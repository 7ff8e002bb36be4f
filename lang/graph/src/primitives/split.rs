//! `split`: a tensor cut into parts along an axis, as `jax.lax.split`.

use smallvec::{SmallVec, smallvec};

use super::slice::box_of;
use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType};

/// The parts of a tensor, one result each. One operation for all of them has one cotangent to give, their
/// concatenation, where a slice for each would pad every one to the full size and add them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Split {
    /// The axis that is cut.
    pub axis: usize,
    /// Extents of the parts; together the extent of the axis.
    pub sizes: Shape,
}

impl Split {
    /// Start and end of each part along the axis.
    fn ranges(&self) -> impl Iterator<Item = (usize, usize)> {
        self.sizes.iter().scan(0, |start, size| {
            let range = (*start, *start + size);
            *start = range.1;
            Some(range)
        })
    }
}

impl Primitive for Split {
    fn name(&self) -> &'static str {
        "split"
    }

    fn parameters(&self) -> String {
        format!("axis={}, sizes={:?}", self.axis, self.sizes.as_slice())
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let [x] = args else { return Err(TypeFault::new("split takes one tensor")) };
        if x.shape.get(self.axis) != Some(&self.sizes.iter().sum()) {
            return Err(TypeFault::new(format!("split {x} into {:?} along axis {}", self.sizes, self.axis)));
        }
        let part = |size: &usize| {
            let mut shape = x.shape.clone();
            shape[self.axis] = *size;
            x.with_shape(shape)
        };
        Ok(self.sizes.iter().map(part).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let x = args[0];
        let part = |(start, end): (usize, usize)| {
            let mut from = vec![0; x.shape().len()];
            let mut extents = x.shape().to_vec();
            from[self.axis] = start;
            extents[self.axis] = end - start;
            box_of(x, &from, &extents)
        };
        self.ranges().map(part).collect()
    }

    fn vjp(&self, b: &mut Builder, _: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        if cotangents.iter().all(Option::is_none) {
            return smallvec![None];
        }
        let mut parts = Vec::with_capacity(outs.len());
        for (out, cotangent) in outs.iter().zip(cotangents) {
            parts.push(cotangent.unwrap_or_else(|| b.full_like(*out, 0.0)));
        }
        smallvec![Some(b.concatenate(&parts, self.axis))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        match tangents[0] {
            Some(tangent) => b.apply_all(self.clone(), &[tangent]).into_iter().map(Some).collect(),
            None => outs.iter().map(|_| None).collect(),
        }
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        let split = Split { axis: self.axis + 1, sizes: self.sizes.clone() };
        b.apply_all(split, &args).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let from = to.operand_type(0).clone();
        for (i, (start, end)) in self.ranges().enumerate() {
            let whole = from.shape.iter().map(|extent| (0, *extent));
            let ranges: Vec<String> = whole
                .enumerate()
                .map(|(axis, all)| if axis == self.axis { (start, end) } else { all })
                .map(|(start, end)| format!("{start}:{end}"))
                .collect();
            let (name, into) = (to.results()[i].clone(), to.result_type(i).mlir());
            let text =
                format!("stablehlo.slice {} [{}] : ({}) -> {into}", to.operand(0), ranges.join(", "), from.mlir());
            to.define(&name, &text);
        }
    }
}
