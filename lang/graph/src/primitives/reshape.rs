//! `reshape`: the same elements, in row-major order, under another shape.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType, element_count};

/// The operand under a new shape of the same size.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reshape {
    /// Shape of the result.
    pub shape: Shape,
}

impl Primitive for Reshape {
    fn name(&self) -> &'static str {
        "reshape"
    }

    fn parameters(&self) -> String {
        format!("shape={:?}", self.shape)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("reshape", args, 1)?;
        let x = args[0];
        let wanted = element_count(&self.shape);
        if x.count() != wanted {
            return Err(TypeFault::new(format!(
                "{x} has {} elements, shape {:?} needs {wanted}",
                x.count(),
                self.shape.as_slice()
            )));
        }
        Ok(smallvec![x.with_shape(self.shape.clone())])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![args[0].reshaped(self.shape.clone())]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let shape = b.shape(args[0]);
        smallvec![cotangents[0].map(|ct| b.reshape(ct, &shape))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.reshape(t, &self.shape))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        let mut shape = self.shape.clone();
        shape.insert(0, size);
        smallvec![(b.reshape(x, &shape), 0)]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reshape();
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        0
    }
}
