//! `reduce_sum`: the sum over some axes, which are removed. Integers wrap.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, Ring, accumulate, broadcast_back, fold, kept_shape, reduction_rules};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, zero};
use crate::tensor::{DType, HostTensor, Shape};

/// Sum over `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceSum {
    /// The axes reduced, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceSum {
    reduction_rules!("reduce_sum", |dtype| dtype != DType::Bool);

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = accumulate!(args[0].data(); v => fold(shape, &self.axes, v, Ring::ZERO, Ring::plus));
        smallvec![HostTensor::new(kept_shape(shape, &self.axes), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let shape = b.shape(args[0]);
        smallvec![cotangents[0].map(|ct| broadcast_back(b, ct, &shape, &self.axes))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.sum(t, &self.axes))]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.add", &zero(to.result_type(0).dtype), &self.axes);
    }
}
