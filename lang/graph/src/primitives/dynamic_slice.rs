//! `dynamic_slice`: a box of fixed size, at a place computed by the program. The place is clamped so that the box
//! lies inside.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, box_of};
use crate::graph::{Builder, Var, Vars};
use crate::stablehlo::{Lowering, dims_list, quirks};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count, strides};

/// `sizes` elements of the first operand; the other operands are their start, a scalar `i32` for each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DynamicSlice {
    /// The extents of the result.
    pub sizes: Shape,
}

impl Primitive for DynamicSlice {
    fn name(&self) -> &'static str {
        "dynamic_slice"
    }

    fn parameters(&self) -> String {
        format!("sizes={:?}", self.sizes)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let Some((x, starts)) = args.split_first() else {
            return Err(TypeFault::new("dynamic_slice of nothing"));
        };
        expect_starts("dynamic_slice", x, &self.sizes, starts)?;
        Ok(smallvec![x.with_shape(self.sizes.clone())])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let start = clamped_starts(&args[1..], args[0].shape(), &self.sizes);
        smallvec![box_of(args[0], &start, &self.sizes)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let mut result = super::zeros_for(args);
        if let Some(ct) = cotangents[0] {
            let zeros = b.full_like(args[0], 0.0);
            result[0] = Some(b.dynamic_update_slice(zeros, ct, &args[1..]));
        }
        result
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.dynamic_slice(t, &args[1..], &self.sizes))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let x = batch_to_front(b, args[0], axes[0], size);
        if axes[1..].iter().all(Option::is_none) {
            let zero = b.scalar(DType::I32, 0.0);
            let starts: Vars = std::iter::once(zero).chain(args[1..].iter().copied()).collect();
            let sizes: Shape = std::iter::once(size).chain(self.sizes.iter().copied()).collect();
            return smallvec![(b.dynamic_slice(x, &starts, &sizes), 0)];
        }
        // Every slice has its own place: the elements are gathered one by one.
        let shape: Shape = b.shape(x)[1..].into();
        let result: Shape = std::iter::once(size).chain(self.sizes.iter().copied()).collect();
        let mut index = b.iota(DType::I32, &result, 0);
        index = b.scale(index, element_count(&shape) as f64);
        let steps = strides(&shape);
        for (axis, start) in args[1..].iter().enumerate() {
            let first = b.clamp_indices(*start, shape[axis] - self.sizes[axis] + 1);
            let dims: &[usize] = if axes[axis + 1].is_some() { &[0] } else { &[] };
            let first = b.broadcast_in_dim(first, &result, dims);
            let offset = b.iota(DType::I32, &result, axis + 1);
            let position = b.add(first, offset);
            let scaled = b.scale(position, steps[axis] as f64);
            index = b.add(index, scaled);
        }
        let flat = b.reshape(x, &[size * element_count(&shape)]);
        smallvec![(b.gather_rows(flat, index), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if quirks::slice_from(to) {
            return;
        }
        to.typed("stablehlo.dynamic_slice", &format!(", sizes = {}", dims_list(&self.sizes)));
    }
}

/// Fails unless a box of `sizes` fits into `x` and `starts` are scalars, one for each axis.
pub fn expect_starts(
    name: &str,
    x: &TensorType,
    sizes: &[usize],
    starts: &[&TensorType],
) -> Result<(), TypeFault> {
    if sizes.len() != x.rank() || sizes.iter().zip(&x.shape).any(|(size, extent)| size > extent) {
        return Err(TypeFault::new(format!("{name}: a box of shape {sizes:?} does not fit into {x}")));
    }
    if starts.len() != x.rank() || starts.iter().any(|ty| ty.rank() > 0 || ty.dtype != DType::I32) {
        return Err(TypeFault::new(format!(
            "{name}: {x} takes {} starts of type i32, got {starts:?}",
            x.rank()
        )));
    }
    Ok(())
}

/// The start of the box.
pub fn clamped_starts(starts: &[&HostTensor], shape: &[usize], sizes: &[usize]) -> Shape {
    let clamp = |(start, (extent, size)): (&&HostTensor, (&usize, &usize))| {
        start.element_i64(0).clamp(0, (extent - size) as i64) as usize
    };
    starts.iter().zip(shape.iter().zip(sizes)).map(clamp).collect()
}
