//! `reduce_max`: the largest element over some axes, which are removed; NaN if one is NaN. Over no elements it is
//! the dtype's least value.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Direction, Extremes, Primitive, broadcast_back, fold, kept_shape, maximum, reduction_rules, with_numbers};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, lowest};
use crate::tensor::{DType, HostTensor, Shape};

/// Maximum over `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceMax {
    /// The axes reduced, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceMax {
    reduction_rules!("reduce_max", |dtype| dtype != DType::Bool);

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = with_numbers!(args[0].data(), v => fold(shape, &self.axes, v, Extremes::LOWEST, maximum));
        smallvec![HostTensor::new(kept_shape(shape, &self.axes), data)]
    }

    // Elements that tie share the cotangent equally.
    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return smallvec![None] };
        let ties = Ties::new(b, args[0], outs[0], &self.axes);
        smallvec![Some(ties.spread(b, ct, &self.axes))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let Some(t) = tangents[0] else { return smallvec![None] };
        let ties = Ties::new(b, args[0], outs[0], &self.axes);
        smallvec![Some(ties.mean(b, t, &self.axes))]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.maximum", &lowest(to.result_type(0).dtype), &self.axes);
    }
}

/// Positions and number of occurrences of each group's extreme.
pub struct Ties {
    /// 1 where an element equals its group's extreme, else 0.
    mask: Var,
    /// The number of such elements in each group.
    count: Var,
}

impl Ties {
    /// The places where `x` equals `extreme`, its reduction over `axes`.
    pub fn new(b: &mut Builder, x: Var, extreme: Var, axes: &[usize]) -> Self {
        let ty = b.ty(x).clone();
        let repeated = broadcast_back(b, extreme, &ty.shape, axes);
        let equal = b.compare(Direction::Eq, x, repeated);
        let mask = b.convert(equal, ty.dtype);
        Ties { mask, count: b.sum(mask, axes) }
    }

    /// `ct` divided among the ties of each group.
    pub fn spread(&self, b: &mut Builder, ct: Var, axes: &[usize]) -> Var {
        let shape = b.shape(self.mask);
        let share = b.div(ct, self.count);
        let shares = broadcast_back(b, share, &shape, axes);
        b.mul(shares, self.mask)
    }

    /// The mean of `t` over the ties of each group.
    pub fn mean(&self, b: &mut Builder, t: Var, axes: &[usize]) -> Var {
        let picked = b.mul(t, self.mask);
        let sum = b.sum(picked, axes);
        b.div(sum, self.count)
    }
}
