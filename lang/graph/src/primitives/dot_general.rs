//! `dot_general`: sums products over contracted axes, element by element over batch axes (`jax.lax.dot_general`).
//! The result has the batch axes, then the free axes of the left operand, then those of the right.

use smallvec::{SmallVec, smallvec};

use super::host_product::{HostProduct, Rows, offsets};
use super::tiled_product::TiledProduct;
use super::{Cotangents, Primitive, TypeFault, Types, Zeros, batch_size, batch_to_front, expect_arity, sums_of_products};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count};

/// Pairs of axes: `contract[0][i]` of the left operand goes with `contract[1][i]` of the right; `batch` alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DotGeneral {
    /// Contracted axes of the left and of the right operand.
    pub contract: [Shape; 2],
    /// Batch axes of the left and of the right operand.
    pub batch: [Shape; 2],
}

impl DotGeneral {
    /// The axes of one operand (`side` 0 or 1) that are neither contracted nor batched.
    pub fn free(&self, side: usize, rank: usize) -> Shape {
        (0..rank).filter(|a| !self.contract[side].contains(a) && !self.batch[side].contains(a)).collect()
    }

    /// With only one operand batched, its batch axis is one more free axis: the other need not be repeated, and a
    /// batch of products by one matrix stays one product.
    fn batch_one_side(&self, b: &mut Builder, args: &[Var], side: usize, axis: usize) -> (Var, usize) {
        let shift = |list: &Shape| -> Shape { list.iter().map(|a| a + usize::from(*a >= axis)).collect() };
        let mut op = self.clone();
        op.contract[side] = shift(&self.contract[side]);
        op.batch[side] = shift(&self.batch[side]);
        let rank = |s: usize| b.ty(args[s]).rank();
        let before = if side == 1 { op.free(0, rank(0)).len() } else { 0 };
        let place = op.free(side, rank(side)).iter().position(|a| *a == axis).expect("a batch axis is free");
        (b.apply(op, args), self.batch[0].len() + before + place)
    }

    /// The cotangent of one operand: the other operand contracted with `ct` over the other's free axes.
    fn operand_cotangent(&self, b: &mut Builder, side: usize, args: &[Var], ct: Var) -> Var {
        let other = 1 - side;
        let rank = |s: usize| b.ty(args[s]).rank();
        let (own_free, other_free) = (self.free(side, rank(side)), self.free(other, rank(other)));
        let n_batch = self.batch[0].len();
        // Axes of ct: batch, left free, right free.
        let other_start = if side == 0 { n_batch + own_free.len() } else { n_batch };
        let ct_other: Shape = (other_start..other_start + other_free.len()).collect();
        let product = b.apply(
            DotGeneral {
                contract: [ct_other, other_free],
                batch: [(0..n_batch).collect(), self.batch[other].clone()],
            },
            &[ct, args[other]],
        );
        // Axes of the product: batch, own free, then the other's contracted axes in ascending order.
        let mut order: Vec<usize> = (0..self.contract[side].len()).collect();
        order.sort_by_key(|i| self.contract[other][*i]);
        let axes_now = self.batch[side]
            .iter()
            .copied()
            .chain(own_free)
            .chain(order.iter().map(|i| self.contract[side][*i]));
        let axes_now: Vec<usize> = axes_now.collect();
        let mut permutation = vec![0; axes_now.len()];
        for (position, axis) in axes_now.iter().enumerate() {
            permutation[*axis] = position;
        }
        b.transpose(product, &permutation)
    }
}

impl Primitive for DotGeneral {
    fn name(&self) -> &'static str {
        "dot_general"
    }

    fn parameters(&self) -> String {
        format!(
            "contract={:?}x{:?} batch={:?}x{:?}",
            self.contract[0], self.contract[1], self.batch[0], self.batch[1]
        )
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("dot_general", args, 2)?;
        let [x, y] = [args[0], args[1]];
        if x.dtype != y.dtype || x.dtype == DType::Bool {
            return Err(TypeFault::new(format!("dot_general of {x} and {y}")));
        }
        for side in 0..2 {
            let axes: Vec<usize> = self.contract[side].iter().chain(&self.batch[side]).copied().collect();
            let repeated = axes.iter().enumerate().any(|(i, axis)| axes[..i].contains(axis));
            let unpaired = self.contract[0].len() != self.contract[1].len()
                || self.batch[0].len() != self.batch[1].len();
            if repeated || unpaired {
                return Err(TypeFault::new(format!(
                    "dot_general[{}]: axes are repeated or unpaired",
                    self.parameters()
                )));
            }
        }
        for (left, right) in
            self.contract[0].iter().zip(&self.contract[1]).chain(self.batch[0].iter().zip(&self.batch[1]))
        {
            match (x.shape.get(*left), y.shape.get(*right)) {
                (Some(m), Some(n)) if m == n => {}
                _ => {
                    return Err(TypeFault::new(format!(
                        "dot_general of {x} and {y}: axis {left} of the left and axis {right} of the right differ"
                    )));
                }
            }
        }
        let mut shape: Shape = self.batch[0].iter().map(|a| x.shape[*a]).collect();
        shape.extend(self.free(0, x.rank()).iter().map(|a| x.shape[*a]));
        shape.extend(self.free(1, y.rank()).iter().map(|a| y.shape[*a]));
        Ok(smallvec![TensorType::new(x.dtype, shape)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let [x, y] = [args[0], args[1]];
        let free = [self.free(0, x.shape().len()), self.free(1, y.shape().len())];
        let plan = HostProduct {
            batch: offsets(x, &self.batch[0]).into_iter().zip(offsets(y, &self.batch[1])).collect(),
            left: offsets(x, &free[0]),
            left_rows: Rows::new(x, &self.contract[0], &[]),
            right_rows: Rows::new(y, &self.contract[1], &free[1]),
        };
        let mut shape: Shape = self.batch[0].iter().map(|a| x.shape()[*a]).collect();
        shape.extend(free[0].iter().map(|a| x.shape()[*a]));
        shape.extend(free[1].iter().map(|a| y.shape()[*a]));
        let data = sums_of_products!(plan, x, y);
        smallvec![HostTensor::new(shape, data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        (0..2).map(|side| cotangents[0].map(|ct| self.operand_cotangent(b, side, args, ct))).collect()
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let left = tangents[0].map(|t| b.apply(self.clone(), &[t, args[1]]));
        let right = tangents[1].map(|t| b.apply(self.clone(), &[args[0], t]));
        smallvec![match (left, right) {
            (Some(l), Some(r)) => Some(b.add(l, r)),
            (l, r) => l.or(r),
        }]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        if let (Some(axis), None) | (None, Some(axis)) = (axes[0], axes[1]) {
            return smallvec![self.batch_one_side(b, args, usize::from(axes[0].is_none()), axis)];
        }
        let size = batch_size(b, args, axes);
        let args: Vec<Var> = args.iter().zip(axes).map(|(x, a)| batch_to_front(b, *x, *a, size)).collect();
        let shift = |list: &Shape| -> Shape { list.iter().map(|a| a + 1).collect() };
        let with_batch = |list: &Shape| -> Shape { std::iter::once(0).chain(shift(list)).collect() };
        let op = DotGeneral {
            contract: [shift(&self.contract[0]), shift(&self.contract[1])],
            batch: [with_batch(&self.batch[0]), with_batch(&self.batch[1])],
        };
        smallvec![(b.apply(op, &args), 0)]
    }

    fn zeros(&self, _: &[bool]) -> Zeros {
        Zeros::Lost
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if let Some(product) = to.thin_product() {
            return product.write(to);
        }
        if let Some(product) = TiledProduct::of(self, to) {
            return product.write_dot(self, to);
        }
        let pairs = |name: &str, axes: &[Shape; 2]| {
            format!(", {name}_dims = {} x {}", dims_list(&axes[0]), dims_list(&axes[1]))
        };
        let mut attributes = pairs("contracting", &self.contract);
        if !self.batch[0].is_empty() {
            attributes.insert_str(0, &pairs("batching", &self.batch));
        }
        let [x, y] = quirks::apart_for_packing(to, self);
        to.line(&format!("stablehlo.dot_general {x}, {y}{attributes} : {}", to.signature()));
    }

    fn cost(&self, args: &[&TensorType], outs: &[&TensorType]) -> u64 {
        let contracted: Shape = self.contract[0].iter().map(|a| args[0].shape[*a]).collect();
        2 * outs[0].count() as u64 * element_count(&contracted) as u64
    }
}
