//! `transpose`: permutes axes.

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity, gather_offsets,
};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{HostTensor, Shape, TensorType, strides};

/// Result axis `i` is operand axis `permutation[i]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Transpose {
    /// The operand's axes in the order of the result.
    pub permutation: Shape,
}

impl Primitive for Transpose {
    fn name(&self) -> &'static str {
        "transpose"
    }

    fn parameters(&self) -> String {
        format!("permutation={:?}", self.permutation)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("transpose", args, 1)?;
        let x = args[0];
        let mut sorted = self.permutation.clone();
        sorted.sort_unstable();
        if !sorted.iter().copied().eq(0..x.rank()) {
            return Err(TypeFault::new(format!(
                "{:?} is not a permutation of the {} axes of {x}",
                self.permutation.as_slice(),
                x.rank()
            )));
        }
        let shape: Shape = self.permutation.iter().map(|axis| x.shape[*axis]).collect();
        Ok(smallvec![x.with_shape(shape)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let x = args[0];
        let own = strides(x.shape());
        let shape: Shape = self.permutation.iter().map(|axis| x.shape()[*axis]).collect();
        let steps: Shape = self.permutation.iter().map(|axis| own[*axis]).collect();
        smallvec![x.moved(shape.clone(), |data| {
            let index = gather_offsets(&shape, &steps);
            map_elements!(data, v => index.iter().map(|i| v[*i]).collect::<Vec<_>>())
        })]
    }

    fn vjp(&self, b: &mut Builder, _: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let mut inverse: Shape = SmallVec::from_elem(0, self.permutation.len());
        for (i, axis) in self.permutation.iter().enumerate() {
            inverse[*axis] = i;
        }
        smallvec![cotangents[0].map(|ct| b.transpose(ct, &inverse))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.transpose(t, &self.permutation))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        let permutation: Shape = std::iter::once(0).chain(self.permutation.iter().map(|a| a + 1)).collect();
        smallvec![(b.transpose(x, &permutation), 0)]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let x = quirks::apart_for_transpose(to);
        to.line(&format!("stablehlo.transpose {x}, dims = {} : {}", dims_list(&self.permutation), to.signature()));
    }
}
