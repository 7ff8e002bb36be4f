//! `cumsum`: running sums along an axis. Integers wrap.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, Ring, TypeFault, Types, accumulate, batch_all_to_front, expect_arity, reduced_shape, running_sums};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, dims_list, zero};
use crate::tensor::{DType, HostTensor, Shape, TensorType, element_count};

/// Element `i` of the result is the sum of elements `0..=i` along `axis`, or of `i..` if reversed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cumsum {
    /// The axis.
    pub axis: usize,
    /// True for sums from the end.
    pub reverse: bool,
}

impl Cumsum {
    fn run<T: Ring>(self, shape: &[usize], elements: &[T]) -> Vec<T> {
        let mut out = elements.to_vec();
        let (count, inner) = (shape[self.axis], element_count(&shape[self.axis + 1..]));
        if out.is_empty() {
            return out;
        }
        let mut line = vec![T::ZERO; count];
        for group in out.chunks_exact_mut(count * inner) {
            for at in 0..inner {
                let place = |i: usize| at + inner * if self.reverse { count - 1 - i } else { i };
                (0..count).for_each(|i| line[i] = group[place(i)]);
                running_sums(&mut line);
                (0..count).for_each(|i| group[place(i)] = line[i]);
            }
        }
        out
    }
}

impl Primitive for Cumsum {
    fn name(&self) -> &'static str {
        "cumsum"
    }

    fn parameters(&self) -> String {
        format!("axis={} reverse={}", self.axis, self.reverse)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("cumsum", args, 1)?;
        reduced_shape("cumsum", args[0], &[self.axis])?;
        if args[0].dtype == DType::Bool {
            return Err(TypeFault::new(format!("cumsum is not defined on {}", args[0])));
        }
        Ok(smallvec![args[0].clone()])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let data = accumulate!(args[0].data(); v => self.run(shape, v));
        smallvec![HostTensor::new(shape, data)]
    }

    fn vjp(&self, b: &mut Builder, _: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let back = Cumsum { reverse: !self.reverse, ..*self };
        smallvec![cotangents[0].map(|ct| b.apply(back, &[ct]))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.apply(*self, &[t]))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let x = batch_all_to_front(b, args, axes)[0];
        smallvec![(b.apply(Cumsum { axis: self.axis + 1, ..*self }, &[x]), 0)]
    }

    fn computes(&self) -> bool {
        true
    }

    // Hillis and Steele, "Data parallel algorithms", 1986: after step k every element holds the sum of 2^k, so log n
    // element-wise sums do, where a window over all elements would cost n for each.
    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let ty = to.result_type(0).clone();
        let extent = ty.shape[self.axis];
        if extent < 2 {
            return to.alias();
        }
        let scalar = TensorType::scalar(ty.dtype);
        let none = to.splat(&scalar, &zero(ty.dtype));
        let mut sum = to.operand(0);
        let mut distance = 1;
        while distance < extent {
            let mut kept = ty.clone();
            kept.shape[self.axis] -= distance;
            let (from, to_end) = if self.reverse { (distance, extent) } else { (0, extent - distance) };
            let ranges: Vec<String> =
                (0..ty.rank())
                    .map(|i| {
                        if i == self.axis { format!("{from}:{to_end}") } else { format!("0:{}", ty.shape[i]) }
                    })
                    .collect();
            let part = to.temporary(&format!(
                "stablehlo.slice {sum} [{}] : ({}) -> {}",
                ranges.join(", "),
                ty.mlir(),
                kept.mlir()
            ));
            let blank = Shape::from_elem(0, ty.rank());
            let mut margin = blank.clone();
            margin[self.axis] = distance;
            let (low, high) = if self.reverse { (&blank, &margin) } else { (&margin, &blank) };
            let shifted = to.temporary(&format!(
                "stablehlo.pad {part}, {none}, low = {}, high = {}, interior = {} : ({}, {}) -> {}",
                dims_list(low),
                dims_list(high),
                dims_list(&blank),
                kept.mlir(),
                scalar.mlir(),
                ty.mlir()
            ));
            distance *= 2;
            if distance < extent {
                sum = to.value("stablehlo.add", &[&sum, &shifted], &ty);
            } else {
                to.line(&format!("stablehlo.add {sum}, {shifted} : {}", ty.mlir()));
            }
        }
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        args[0].count() as u64
    }
}
