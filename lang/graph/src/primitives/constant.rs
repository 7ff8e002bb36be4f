//! `constant`: a tensor known while tracing.

use std::hash::{Hash, Hasher};

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};

/// A fixed tensor.
#[derive(Clone, Debug)]
pub struct Constant {
    /// Its elements.
    pub value: HostTensor,
    /// True for a weak number.
    pub weak: bool,
}

impl PartialEq for Constant {
    fn eq(&self, other: &Constant) -> bool {
        self.weak == other.weak && self.value.is_identical(&other.value)
    }
}

impl Eq for Constant {}

impl Hash for Constant {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.weak.hash(state);
        self.value.hash_identity(state);
    }
}

impl Primitive for Constant {
    fn name(&self) -> &'static str {
        "constant"
    }

    fn parameters(&self) -> String {
        if self.value.count() == 1 { format!("{}", self.value.element_f64(0)) } else { "...".into() }
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("constant", args, 0)?;
        Ok(smallvec![TensorType { weak: self.weak, ..self.value.ty() }])
    }

    fn evaluate(&self, _: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![self.value.clone()]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, _: &mut Builder, _: &[Var], _: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        unreachable!("a constant has no operand to be batched")
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.constant(&self.value);
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
