//! `broadcast_in_dim`: places the axes of the operand among the axes of a larger shape and repeats it along the rest.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{HostTensor, Shape, TensorType, element_count, strides};

/// Operand axis `i` becomes result axis `dims[i]`; its extent is that axis' extent, or 1.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct BroadcastInDim {
    /// Shape of the result.
    pub shape: Shape,
    /// The result's axis for each of the operand's, ascending.
    pub dims: Shape,
}

impl Primitive for BroadcastInDim {
    fn name(&self) -> &'static str {
        "broadcast_in_dim"
    }

    fn parameters(&self) -> String {
        format!("shape={:?} dims={:?}", self.shape, self.dims)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("broadcast_in_dim", args, 1)?;
        let x = args[0];
        let placed = x.rank() == self.dims.len()
            && self.dims.windows(2).all(|w| w[0] < w[1])
            && x.shape
                .iter()
                .zip(&self.dims)
                .all(|(extent, dim)| self.shape.get(*dim).is_some_and(|to| extent == to || *extent == 1));
        if !placed {
            return Err(TypeFault::new(format!(
                "{x} does not broadcast to shape {:?}",
                self.shape.as_slice()
            )));
        }
        Ok(smallvec![x.with_shape(self.shape.clone())])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let x = args[0];
        if x.count() == 1 || x.is_splat() {
            return smallvec![HostTensor::repeated(x, self.shape.clone())];
        }
        let own = strides(x.shape());
        // The stride in the operand of each result axis: zero if it is repeated.
        let mut steps: Shape = SmallVec::from_elem(0, self.shape.len());
        for (i, dim) in self.dims.iter().enumerate() {
            if x.shape()[i] != 1 {
                steps[*dim] = own[i];
            }
        }
        let index = gather_offsets(&self.shape, &steps);
        smallvec![HostTensor::new(
            self.shape.clone(),
            map_elements!(x.data(), v => index.iter().map(|i| v[*i]).collect::<Vec<_>>())
        )]
    }

    // Sums over the repeated axes.
    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let shape = b.shape(args[0]);
        let repeated: Vec<usize> = (0..self.shape.len())
            .filter(|axis| match self.dims.iter().position(|d| d == axis) {
                Some(i) => shape[i] != self.shape[*axis],
                None => true,
            })
            .collect();
        smallvec![cotangents[0].map(|ct| {
            let summed = b.sum(ct, &repeated);
            b.reshape(summed, &shape)
        })]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.apply(self.clone(), &[t]))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        let mut shape = self.shape.clone();
        shape.insert(0, size);
        let dims: Shape = std::iter::once(0).chain(self.dims.iter().map(|d| d + 1)).collect();
        smallvec![(b.apply(BroadcastInDim { shape, dims }, &[x]), 0)]
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if !quirks::number_to_element(to) {
            let x = quirks::apart_from_reduction(to, &self.dims);
            to.line(&format!("stablehlo.broadcast_in_dim {x}, dims = {} : {}", dims_list(&self.dims), to.signature()));
        }
    }
}

/// For each element of a tensor of `shape`, in row-major order, the offset `sum(index[i] * steps[i])`.
pub fn gather_offsets(shape: &[usize], steps: &[usize]) -> Vec<usize> {
    if element_count(shape) == 0 {
        return Vec::new();
    }
    let mut offsets = vec![0];
    for (extent, step) in shape.iter().zip(steps) {
        let mut further = Vec::with_capacity(offsets.len() * extent);
        for offset in &offsets {
            further.extend((0..*extent).map(|i| offset + i * step));
        }
        offsets = further;
    }
    offsets
}
