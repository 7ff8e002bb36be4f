//! `reduce_min`: the smallest element over some axes, which are removed; NaN if one is NaN. Over no elements it is
//! the dtype's greatest value.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Extremes, Primitive, Ties, fold, kept_shape, minimum, reduction_rules, with_numbers};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, highest};
use crate::tensor::{DType, HostTensor, Shape};

/// Minimum over `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceMin {
    /// The axes reduced, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceMin {
    reduction_rules!("reduce_min", |dtype| dtype != DType::Bool);

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = with_numbers!(args[0].data(), v => fold(shape, &self.axes, v, Extremes::HIGHEST, minimum));
        smallvec![HostTensor::new(kept_shape(shape, &self.axes), data)]
    }

    // Elements that tie share the cotangent equally.
    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return smallvec![None] };
        let ties = Ties::new(b, args[0], outs[0], &self.axes);
        smallvec![Some(ties.spread(b, ct, &self.axes))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let Some(t) = tangents[0] else { return smallvec![None] };
        let ties = Ties::new(b, args[0], outs[0], &self.axes);
        smallvec![Some(ties.mean(b, t, &self.axes))]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.minimum", &highest(to.result_type(0).dtype), &self.axes);
    }
}
