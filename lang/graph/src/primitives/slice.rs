//! `slice`: a box of a tensor, at a place known while tracing.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, gather_offsets};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType, strides};

/// Elements `start..limit` along each axis.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Slice {
    /// The first index along each axis.
    pub start: Shape,
    /// The index after the last along each axis.
    pub limit: Shape,
}

impl Slice {
    fn extents(&self) -> Shape {
        self.start.iter().zip(&self.limit).map(|(start, limit)| limit - start).collect()
    }
}

impl Primitive for Slice {
    fn name(&self) -> &'static str {
        "slice"
    }

    fn parameters(&self) -> String {
        format!("start={:?} limit={:?}", self.start, self.limit)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("slice", args, 1)?;
        let x = args[0];
        let inside = self.start.len() == x.rank()
            && self.limit.len() == x.rank()
            && (0..x.rank()).all(|i| self.start[i] <= self.limit[i] && self.limit[i] <= x.shape[i]);
        if !inside {
            return Err(TypeFault::new(format!(
                "slice from {:?} to {:?} is not within {x}",
                self.start.as_slice(),
                self.limit.as_slice()
            )));
        }
        Ok(smallvec![x.with_shape(self.extents())])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        smallvec![box_of(args[0], &self.start, &self.extents())]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let high: Vec<usize> =
            b.shape(args[0]).iter().zip(&self.limit).map(|(extent, limit)| extent - limit).collect();
        smallvec![cotangents[0].map(|ct| b.pad(ct, 0.0, &self.start, &high))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.slice(t, &self.start, &self.limit))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let x = batch_all_to_front(b, args, axes)[0];
        let with_front = |list: &Shape, first: usize| -> Shape {
            std::iter::once(first).chain(list.iter().copied()).collect()
        };
        let (start, limit) = (with_front(&self.start, 0), with_front(&self.limit, b.shape(x)[0]));
        smallvec![(b.slice(x, &start, &limit), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        if to.part_of_computed(&self.start) {
            return;
        }
        let ranges: Vec<String> =
            self.start.iter().zip(&self.limit).map(|(s, l)| format!("{s}:{l}")).collect();
        to.typed("stablehlo.slice", &format!(" [{}]", ranges.join(", ")));
    }
}

/// The elements of `x` from `start` on, `extents` of them.
pub fn box_of(x: &HostTensor, start: &[usize], extents: &[usize]) -> HostTensor {
    if !extents.is_empty() && x.shape()[1..] == extents[1..] {
        return x.rows(start[0]..start[0] + extents[0]);
    }
    x.moved(extents, |data| {
        let own = strides(x.shape());
        let base: usize = start.iter().zip(&own).map(|(s, stride)| s * stride).sum();
        let index = gather_offsets(extents, &own);
        map_elements!(data, v => index.iter().map(|i| v[base + i]).collect::<Vec<_>>())
    })
}
