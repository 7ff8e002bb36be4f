//! `reduce_prod`: the product over some axes, which are removed. Integers wrap.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, Ring, accumulate, axes_except, fold, kept_shape, reduction_rules};
use crate::graph::{Builder, Graph, Var};
use crate::stablehlo::{Lowering, one};
use crate::tensor::{DType, HostTensor, Shape, TensorType};

/// Product over `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ReduceProd {
    /// The axes reduced, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceProd {
    reduction_rules!("reduce_prod", |dtype| dtype != DType::Bool);

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = accumulate!(args[0].data(); v => fold(shape, &self.axes, v, Ring::ONE, Ring::times));
        smallvec![HostTensor::new(kept_shape(shape, &self.axes), data)]
    }

    // The quotient `y / x` would fail at zeros, so the product is taken as a tree of products, which has
    // derivatives of every order everywhere.
    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return smallvec![None] };
        let tree = product_tree(b.ty(args[0]), &self.axes);
        let derivative = crate::transform::vjp(&tree, &[0]);
        smallvec![Some(b.inline(&derivative, &[args[0], ct])[1])]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let Some(t) = tangents[0] else { return smallvec![None] };
        let tree = product_tree(b.ty(args[0]), &self.axes);
        let derivative = crate::transform::jvp(&tree, &[0]);
        smallvec![Some(b.inline(&derivative, &[args[0], t])[1])]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.multiply", &one(to.result_type(0).dtype), &self.axes);
    }
}

/// The product over `axes` by halves: log n element-wise products of slices.
fn product_tree(ty: &TensorType, axes: &[usize]) -> Graph {
    let mut b = Builder::new();
    let x = b.input(ty.clone());
    let rest: Vec<usize> = axes_except(ty.rank(), axes).collect();
    let mut shape: Vec<usize> = rest.iter().map(|a| ty.shape[*a]).collect();
    let mut count: usize = axes.iter().map(|a| ty.shape[*a]).product();
    let order: Vec<usize> = axes.iter().chain(&rest).copied().collect();
    let front = b.transpose(x, &order);
    shape.insert(0, count);
    let mut product = b.reshape(front, &shape);
    if count == 0 {
        let empty = b.full(&TensorType::new(ty.dtype, &shape[1..]), 1.0);
        return b.finish(vec![empty]);
    }
    while count > 1 {
        let half = count / 2;
        let left = b.slice_axis(product, 0, 0, half);
        let right = b.slice_axis(product, 0, half, 2 * half);
        let halves = b.mul(left, right);
        product = if count % 2 == 1 {
            let last = b.slice_axis(product, 0, 2 * half, count);
            b.concatenate(&[halves, last], 0)
        } else {
            halves
        };
        count -= half;
    }
    let product = b.reshape(product, &shape[1..]);
    b.finish(vec![product])
}
