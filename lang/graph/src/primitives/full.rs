//! `full`: one number everywhere. Simplification makes it of repeated constants; it is a constant of the program,
//! however large the tensor, and takes no memory before the program runs.

use std::hash::{Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType};

/// A tensor of `shape` that has the element of `value`, a tensor of rank 0, everywhere.
#[derive(Clone, Debug)]
pub struct Full {
    /// The number.
    pub value: HostTensor,
    /// The shape of the result.
    pub shape: Shape,
}

impl PartialEq for Full {
    fn eq(&self, other: &Full) -> bool {
        self.shape == other.shape && self.value.is_identical(&other.value)
    }
}

impl Eq for Full {}

impl Hash for Full {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.shape.hash(state);
        self.value.hash_identity(state);
    }
}

impl Primitive for Full {
    fn name(&self) -> &'static str {
        "full"
    }

    fn parameters(&self) -> String {
        format!("{} shape={:?}", self.value.element_f64(0), self.shape)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("full", args, 0)?;
        if !self.value.shape().is_empty() {
            return Err(TypeFault::new(format!("full of {}, which is not one number", self.value.ty())));
        }
        Ok(smallvec![TensorType::new(self.value.dtype(), self.shape.clone())])
    }

    fn evaluate(&self, _: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![HostTensor::repeated(&self.value, self.shape.clone())]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, _: &mut Builder, _: &[Var], _: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        unreachable!("full has no operand to be batched")
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.repeated(&self.value);
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
