//! `iota`: 0, 1, 2, ... along one axis, repeated along the others.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, expect_arity, gather_offsets, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, FromNumber, HostTensor, Number, Shape, TensorType};
use crate::with_element_type;

/// Positions along an axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Iota {
    /// The dtype of the result.
    pub dtype: DType,
    /// The shape of the result.
    pub shape: Shape,
    /// The axis that is counted.
    pub dimension: usize,
}

impl Iota {
    /// True if the elements, signed integers along one axis, are their positions.
    pub fn counts_rows(&self) -> bool {
        self.shape.len() == 1 && self.dtype.is_signed_integer()
    }
}

impl Primitive for Iota {
    fn name(&self) -> &'static str {
        "iota"
    }

    fn parameters(&self) -> String {
        format!("{} shape={:?} dimension={}", self.dtype, self.shape, self.dimension)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("iota", args, 0)?;
        let ty = TensorType::new(self.dtype, self.shape.clone());
        if self.dimension >= self.shape.len() || self.dtype == DType::Bool {
            return Err(TypeFault::new(format!("iota along axis {} of {ty}", self.dimension)));
        }
        Ok(smallvec![ty])
    }

    fn evaluate(&self, _: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let mut steps: Shape = SmallVec::from_elem(0, self.shape.len());
        steps[self.dimension] = 1;
        let positions = gather_offsets(&self.shape, &steps).into_iter();
        let data = with_element_type!(self.dtype, T => {
            Data::from(positions.map(|i| T::from_number(Number::Int(i as i64))).collect::<Vec<T>>())
        });
        smallvec![HostTensor::new(self.shape.clone(), data)]
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], outs: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(outs)
    }

    fn batch(&self, _: &mut Builder, _: &[Var], _: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        unreachable!("iota has no operand to be batched")
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let ty = to.result_type(0).mlir();
        to.line(&format!("stablehlo.iota dim = {} : {ty}", self.dimension));
    }
}
