//! The rules that all reductions share.

use super::{TypeFault, gather_offsets};
use crate::graph::{Builder, Var};
use crate::tensor::{Shape, TensorType, strides};

/// Expands, inside `impl Primitive` of a struct with the field `axes`, to the rules in which reductions do not
/// differ: name, parameters, type rule, batching rule and cost.
macro_rules! reduction_rules {
    ($name:literal, $accepts:expr) => {
        fn name(&self) -> &'static str {
            $name
        }

        fn parameters(&self) -> String {
            format!("axes={:?}", self.axes)
        }

        fn infer(
            &self,
            args: &[&$crate::tensor::TensorType],
        ) -> Result<$crate::primitives::Types, $crate::primitives::TypeFault> {
            $crate::primitives::expect_arity($name, args, 1)?;
            let accepts: fn($crate::tensor::DType) -> bool = $accepts;
            if !accepts(args[0].dtype) {
                return Err($crate::primitives::TypeFault::new(format!(
                    "{} is not defined on {}",
                    $name, args[0]
                )));
            }
            let shape = $crate::primitives::reduced_shape($name, args[0], &self.axes)?;
            Ok(smallvec::smallvec![args[0].with_shape(shape)])
        }

        fn batch(
            &self,
            b: &mut $crate::graph::Builder,
            args: &[$crate::graph::Var],
            axes: &[Option<usize>],
        ) -> smallvec::SmallVec<[($crate::graph::Var, usize); 2]> {
            let x = $crate::primitives::batch_all_to_front(b, args, axes)[0];
            let shifted = Self { axes: $crate::primitives::shift_axes(&self.axes) };
            smallvec::smallvec![(b.apply(shifted, &[x]), 0)]
        }

        fn computes(&self) -> bool {
            true
        }

        fn cost(&self, args: &[&$crate::tensor::TensorType], _: &[&$crate::tensor::TensorType]) -> u64 {
            args[0].count() as u64
        }
    };
}
pub(super) use reduction_rules;

/// The axes of a tensor of `rank` that are not in `axes`.
pub fn axes_except(rank: usize, axes: &[usize]) -> impl Iterator<Item = usize> {
    (0..rank).filter(|axis| !axes.contains(axis))
}

/// The shape without `axes`, or a fault that names the axis that is not there.
pub fn reduced_shape(name: &str, x: &TensorType, axes: &[usize]) -> Result<Shape, TypeFault> {
    if let Some(axis) = axes.iter().find(|a| **a >= x.rank()) {
        return Err(TypeFault::new(format!("{name}: {x} has no axis {axis}")));
    }
    if axes.windows(2).any(|w| w[0] >= w[1]) {
        return Err(TypeFault::new(format!("{name}: the axes {axes:?} are not distinct and ascending")));
    }
    Ok(kept_shape(&x.shape, axes))
}

/// The shape without `axes`.
pub fn kept_shape(shape: &[usize], axes: &[usize]) -> Shape {
    axes_except(shape.len(), axes).map(|axis| shape[axis]).collect()
}

/// The lines of elements along an axis: element `i` of the result comes from `bases[i] + inner[..]`, in row-major order.
pub struct Groups {
    /// The shape that remains.
    pub shape: Shape,
    bases: Vec<usize>,
    inner: Vec<usize>,
}

impl Groups {
    /// The groups of a tensor of `shape` along `axis`.
    pub fn new(shape: &[usize], axis: usize) -> Self {
        let own = strides(shape);
        let (remaining, steps) = (kept_shape(shape, &[axis]), kept_shape(&own, &[axis]));
        Groups {
            bases: gather_offsets(&remaining, &steps),
            inner: gather_offsets(&[shape[axis]], &[own[axis]]),
            shape: remaining,
        }
    }

    /// The result of `f(base, inner)` for each group.
    pub fn map<T>(&self, mut f: impl FnMut(usize, &[usize]) -> T) -> Vec<T> {
        self.bases.iter().map(|base| f(*base, &self.inner)).collect()
    }
}

/// Repeats a reduced tensor along the axes it was reduced over.
pub fn broadcast_back(b: &mut Builder, x: Var, shape: &[usize], axes: &[usize]) -> Var {
    let dims: Vec<usize> = axes_except(shape.len(), axes).collect();
    b.broadcast_in_dim(x, shape, &dims)
}

/// Axes of the batched operand whose batch axis is in front.
pub fn shift_axes(axes: &[usize]) -> Shape {
    axes.iter().map(|a| a + 1).collect()
}
