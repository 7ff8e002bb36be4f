//! `concatenate`: tensors one after the other along an axis.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, elements_like};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::Lowering;
use crate::tensor::{Element, HostTensor, Shape, TensorType, element_count};

/// All operands joined along `axis`; they agree in the other axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Concatenate {
    /// The axis along which they follow each other.
    pub axis: usize,
}

impl Primitive for Concatenate {
    fn name(&self) -> &'static str {
        "concatenate"
    }

    fn parameters(&self) -> String {
        format!("axis={}", self.axis)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let Some(first) = args.first() else { return Err(TypeFault::new("concatenate of no tensors")) };
        if self.axis >= first.rank() {
            return Err(TypeFault::new(format!("concatenate: {first} has no axis {}", self.axis)));
        }
        let mut shape = first.shape.clone();
        for other in &args[1..] {
            shape[self.axis] = other.shape.get(self.axis).copied().unwrap_or(0);
            if other.dtype != first.dtype || other.shape != shape {
                return Err(TypeFault::new(format!(
                    "concatenate {first} and {other} along axis {}",
                    self.axis
                ))
                .help("The tensors must have one dtype, and agree in all axes but that one."));
            }
        }
        shape[self.axis] = args.iter().map(|ty| ty.shape[self.axis]).sum();
        Ok(smallvec![TensorType::new(first.dtype, shape)])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let mut shape = Shape::from_slice(args[0].shape());
        shape[self.axis] = args.iter().map(|x| x.shape()[self.axis]).sum();
        let outer = element_count(&shape[..self.axis]);
        let data = map_elements!(args[0].data(), v => self.join(v, args, outer));
        smallvec![HostTensor::new(shape, data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let mut start = 0;
        let mut parts = Cotangents::new();
        for x in args {
            let limit = start + b.shape(*x)[self.axis];
            parts.push(cotangents[0].map(|ct| b.slice_axis(ct, self.axis, start, limit)));
            start = limit;
        }
        parts
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let parts: Vec<Var> =
            args.iter().zip(tangents).map(|(x, t)| t.unwrap_or_else(|| b.full_like(*x, 0.0))).collect();
        smallvec![Some(b.apply(*self, &parts))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        smallvec![(b.apply(Concatenate { axis: self.axis + 1 }, &args), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let (operands, signature) = (to.joined(), to.signature());
        to.line(&format!("stablehlo.concatenate {operands}, dim = {} : {signature}", self.axis));
    }
}

impl Concatenate {
    /// The rows of all operands in turn, `outer` times.
    fn join<T: Element>(self, like: &[T], args: &[&HostTensor], outer: usize) -> Vec<T> {
        let parts: Vec<(&[T], usize)> =
            args.iter().map(|x| (elements_like(like, x), element_count(&x.shape()[self.axis..]))).collect();
        let mut joined = Vec::with_capacity(parts.iter().map(|(part, _)| part.len()).sum());
        for row in 0..outer {
            for (part, width) in &parts {
                joined.extend_from_slice(&part[row * width..(row + 1) * width]);
            }
        }
        joined
    }
}
