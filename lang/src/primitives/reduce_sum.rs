//! `reduce_sum`: the sum over some axes, which are removed. Integers wrap.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, HostTensor, Shape, TensorType, element_count, strides};

/// Sum over `axes`.
#[derive(Clone, Debug)]
pub struct ReduceSum {
    /// The axes summed over, ascending.
    pub axes: Shape,
}

impl Primitive for ReduceSum {
    fn name(&self) -> &'static str {
        "reduce_sum"
    }

    fn parameters(&self) -> String {
        format!("axes={:?}", self.axes)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("reduce_sum", args, 1)?;
        if args[0].dtype == DType::Bool {
            return Err(TypeFault::new(format!("reduce_sum is not defined on {}", args[0])));
        }
        Ok(smallvec![args[0].with_shape(reduced_shape("reduce_sum", args[0], &self.axes)?)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let x = args[0];
        let (shape, groups) = reduction_groups(x.shape(), &self.axes);
        let data = match x.data() {
            // Pairwise, as compiled code does: the rounding error grows with log n.
            Data::F32(v) => Data::from(groups.map(|g| pairwise_sum(&g, v)).collect::<Vec<f32>>()),
            Data::I32(v) => Data::from(groups.map(|g| fold(&g, v, 0, i32::wrapping_add)).collect::<Vec<i32>>()),
            Data::I64(v) => Data::from(groups.map(|g| fold(&g, v, 0, i64::wrapping_add)).collect::<Vec<i64>>()),
            Data::U32(v) => Data::from(groups.map(|g| fold(&g, v, 0, u32::wrapping_add)).collect::<Vec<u32>>()),
            Data::Bool(_) => unreachable!("the type rule refuses bool"),
        };
        smallvec![HostTensor::new(shape, data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let shape = b.shape(args[0]);
        smallvec![cotangents[0].map(|ct| broadcast_back(b, ct, &shape, &self.axes))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.sum(t, &self.axes))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        smallvec![(b.apply(ReduceSum { axes: shift_axes(&self.axes) }, &[x]), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.reduce("stablehlo.add", "0", &self.axes);
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        args[0].count() as u64
    }
}

/// The shape without `axes`, or a fault that names the axis that is not there.
pub fn reduced_shape(name: &str, x: &TensorType, axes: &[usize]) -> Result<Shape, TypeFault> {
    if let Some(axis) = axes.iter().find(|a| **a >= x.rank()) {
        return Err(TypeFault::new(format!("{name}: {x} has no axis {axis}")));
    }
    Ok((0..x.rank()).filter(|i| !axes.contains(i)).map(|i| x.shape[i]).collect())
}

/// The shape that remains, and for each remaining element the offsets of the elements that are reduced to it,
/// in row-major order.
pub fn reduction_groups<'a>(shape: &[usize], axes: &'a [usize]) -> (Shape, impl Iterator<Item = Vec<usize>> + use<'a>) {
    let own = strides(shape);
    let pick = |inside: bool, from: &[usize]| -> Shape {
        (0..shape.len()).filter(|i| axes.contains(i) == inside).map(|i| from[i]).collect()
    };
    let inner = super::gather_offsets(&pick(true, shape), &pick(true, &own));
    let outer = if element_count(&pick(false, shape)) == 0 {
        Vec::new()
    } else {
        super::gather_offsets(&pick(false, shape), &pick(false, &own))
    };
    let groups = outer.into_iter().map(move |base| inner.iter().map(|i| base + i).collect());
    (pick(false, shape), groups)
}

/// Folds the elements at `offsets`.
pub fn fold<T: Copy>(offsets: &[usize], elements: &[T], init: T, f: impl Fn(T, T) -> T) -> T {
    offsets.iter().fold(init, |acc, i| f(acc, elements[*i]))
}

fn pairwise_sum(offsets: &[usize], elements: &[f32]) -> f32 {
    if offsets.len() <= 8 {
        return offsets.iter().map(|i| elements[*i]).sum();
    }
    let (left, right) = offsets.split_at(offsets.len() / 2);
    pairwise_sum(left, elements) + pairwise_sum(right, elements)
}

/// Repeats a reduced tensor along the axes it was reduced over.
pub fn broadcast_back(b: &mut Builder, x: Var, shape: &[usize], axes: &[usize]) -> Var {
    let dims: Vec<usize> = (0..shape.len()).filter(|i| !axes.contains(i)).collect();
    b.broadcast_in_dim(x, shape, &dims)
}

/// Axes of the batched operand whose batch axis is in front.
pub fn shift_axes(axes: &[usize]) -> Shape {
    axes.iter().map(|a| a + 1).collect()
}
