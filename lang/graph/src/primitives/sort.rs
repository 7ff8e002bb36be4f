//! `sort`: tensors of one shape, sorted together along an axis by the first, ascending and stable; NaN comes last.

use std::cmp::Ordering;

use smallvec::SmallVec;

use super::{Cotangents, Groups, Primitive, TypeFault, Types, batch_all_to_front, zeros_for};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, HostTensor, TensorType, element_count, strides};
use crate::{map_elements, with_elements};

/// The operands in the order of the first along `axis`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sort {
    /// The axis.
    pub axis: usize,
}

impl Sort {
    /// Previous position along the axis of each element of the sorted tensors.
    fn permutation(self, b: &mut Builder, args: &[Var]) -> Var {
        let shape = b.shape(args[0]);
        let positions = b.iota(DType::I32, &shape, self.axis);
        b.apply_all(self, &[args[0], positions])[1]
    }
}

impl Primitive for Sort {
    fn name(&self) -> &'static str {
        "sort"
    }

    fn parameters(&self) -> String {
        format!("axis={}", self.axis)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let Some(key) = args.first() else { return Err(TypeFault::new("sort of no tensors")) };
        if self.axis >= key.rank() {
            return Err(TypeFault::new(format!("sort: {key} has no axis {}", self.axis)));
        }
        if let Some(other) = args.iter().find(|ty| ty.shape != key.shape) {
            return Err(TypeFault::new(format!("sort {other} by {key}: the shapes differ")));
        }
        Ok(args.iter().map(|ty| (*ty).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let groups = Groups::new(shape, self.axis);
        // source[i]: the offset of the element that comes to offset i.
        let mut source = vec![0; element_count(shape)];
        let orders = with_elements!(args[0].data(), v => groups.map(|base, inner| order(base, inner, v)));
        let targets = groups.map(|base, inner| inner.iter().map(|i| base + i).collect::<Vec<_>>());
        for (target, from) in targets.iter().flatten().zip(orders.iter().flatten()) {
            source[*target] = *from;
        }
        let take = |x: &&HostTensor| {
            HostTensor::new(
                shape,
                map_elements!(x.data(), v => source.iter().map(|i| v[*i]).collect::<Vec<_>>()),
            )
        };
        args.iter().map(take).collect()
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let permutation = self.permutation(b, args);
        // Sorting the permutation beside the positions inverts it.
        let inverse = self.permutation(b, &[permutation]);
        cotangents.iter().map(|ct| ct.map(|ct| take_along(b, ct, inverse, self.axis))).collect()
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        if tangents.iter().all(Option::is_none) {
            return zeros_for(args);
        }
        let permutation = self.permutation(b, args);
        tangents.iter().map(|t| t.map(|t| take_along(b, t, permutation, self.axis))).collect()
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        b.apply_all(Sort { axis: self.axis + 1 }, &args).into_iter().map(|v| (v, 0)).collect()
    }

    fn computes(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        // Nothing to put in order.
        if to.operand_type(0).shape[self.axis] <= 1 || to.operand_type(0).count() == 0 {
            to.alias();
        } else {
            super::sort_lowering::lower(to, self.axis);
        }
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        let comparisons = args[0].shape[self.axis].max(2).ilog2() as u64;
        args.iter().map(|ty| ty.count() as u64).sum::<u64>() * comparisons
    }
}

/// Writes `name = left comes before right`, two values of type `ty`: NaN comes last.
pub(super) fn precedes(
    to: &Lowering<'_>,
    body: &mut Vec<String>,
    name: &str,
    [left, right]: [&str; 2],
    ty: &TensorType,
) {
    if !ty.dtype.is_float() {
        return body.push(format!("{name} = {}", to.comparison("LT", left, right, ty)));
    }
    let truth = ty.with_dtype(DType::Bool).mlir();
    body.extend([
        format!("{name}_less = {}", to.comparison("LT", left, right, ty)),
        format!("{name}_number = {}", to.comparison("EQ", left, left, ty)),
        format!("{name}_nan = {}", to.comparison("NE", right, right, ty)),
        format!("{name}_last = stablehlo.and {name}_number, {name}_nan : {truth}"),
        format!("{name} = stablehlo.or {name}_less, {name}_last : {truth}"),
    ]);
}

/// The offsets of one group's elements in sorted order.
fn order<T: PartialOrd>(base: usize, inner: &[usize], elements: &[T]) -> Vec<usize> {
    let mut offsets: Vec<usize> = inner.iter().map(|i| base + i).collect();
    offsets.sort_by(|i, j| nan_last(&elements[*i], &elements[*j]));
    offsets
}

/// The order of two elements, where NaN counts as the largest.
pub(super) fn nan_last<T: PartialOrd>(a: &T, b: &T) -> Ordering {
    // Only NaN is not comparable.
    let is_nan = |x: &T| x.partial_cmp(x).is_none();
    a.partial_cmp(b).unwrap_or_else(|| is_nan(a).cmp(&is_nan(b)))
}

/// The elements of `x` at positions `indices` along `axis`; both have one shape.
pub fn take_along(b: &mut Builder, x: Var, indices: Var, axis: usize) -> Var {
    let shape = b.shape(x);
    let steps = strides(&shape);
    let mut index = b.scale(indices, steps[axis] as f64);
    for other in (0..shape.len()).filter(|other| *other != axis) {
        let position = b.iota(DType::I32, &shape, other);
        let offset = b.scale(position, steps[other] as f64);
        index = b.add(index, offset);
    }
    let flat = b.reshape(x, &[element_count(&shape)]);
    b.gather_rows(flat, index)
}
