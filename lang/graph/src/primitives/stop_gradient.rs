//! `stop_gradient`: the operand, which derivatives take for a constant.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};

/// The identity without a derivative.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StopGradient;

impl Primitive for StopGradient {
    fn name(&self) -> &'static str {
        "stop_gradient"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("stop_gradient", args, 1)?;
        Ok(smallvec![args[0].clone()])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![args[0].clone()]
    }

    fn is_constant(&self) -> bool {
        true
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        smallvec![(b.apply(*self, args), axes[0].expect("batched"))]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.alias();
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
