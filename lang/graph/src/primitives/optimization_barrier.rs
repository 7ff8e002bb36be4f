//! `optimization_barrier`: its operands, none of which the compiler may move or fuse across it.

use smallvec::SmallVec;

use super::{Cotangents, Primitive, TypeFault, Types};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};

/// The identity on any number of tensors, computed together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct OptimizationBarrier;

impl Primitive for OptimizationBarrier {
    fn name(&self) -> &'static str {
        "optimization_barrier"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        if args.is_empty() {
            return Err(TypeFault::new("optimization_barrier of no tensors"));
        }
        Ok(args.iter().map(|ty| (*ty).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        args.iter().map(|x| (*x).clone()).collect()
    }

    fn vjp(&self, _: &mut Builder, _: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        cotangents.iter().copied().collect()
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        tangents.iter().copied().collect()
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = super::batch_all_to_front(b, args, axes);
        b.apply_all(*self, &args).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.barrier();
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
