//! `reduce_or`: true if any element over some axes holds; the axes are removed.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, fold, kept_shape, reduction_rules, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, HostTensor, Shape};

/// Disjunction over `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceOr {
    /// The axes reduced, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceOr {
    reduction_rules!("reduce_or", |dtype| dtype == DType::Bool);

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = match args[0].data() {
            Data::Bool(v) => Data::from(fold(shape, &self.axes, v, false, |a, b| a | b)),
            other => unreachable!("the type rule refuses {}", other.dtype()),
        };
        smallvec![HostTensor::new(kept_shape(shape, &self.axes), data)]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.or", "false", &self.axes);
    }
}
