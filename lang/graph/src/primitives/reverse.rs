//! `reverse`: the order of the elements turned round along some axes.

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, reduced_shape, shift_axes,
};
use crate::graph::{Builder, Var};
use crate::map_elements;
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{HostTensor, Shape, TensorType, strides};

/// The operand reversed along `axes`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reverse {
    /// The axes, ascending.
    pub axes: Shape,
}

impl Primitive for Reverse {
    fn name(&self) -> &'static str {
        "reverse"
    }

    fn parameters(&self) -> String {
        format!("axes={:?}", self.axes)
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("reverse", args, 1)?;
        reduced_shape("reverse", args[0], &self.axes)?;
        Ok(smallvec![args[0].clone()])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let shape = args[0].shape();
        let own = strides(shape);
        if args[0].is_splat() {
            return smallvec![args[0].clone()];
        }
        let mut index = vec![0];
        for (axis, extent) in shape.iter().enumerate() {
            let turned = self.axes.contains(&axis);
            let place = |i: usize| if turned { extent - 1 - i } else { i };
            let steps: Vec<usize> = (0..*extent).map(|i| place(i) * own[axis]).collect();
            index = index.iter().flat_map(|o| steps.iter().map(move |step| o + step)).collect();
        }
        smallvec![HostTensor::new(
            shape,
            map_elements!(args[0].data(), v => index.iter().map(|i| v[*i]).collect::<Vec<_>>())
        )]
    }

    fn vjp(&self, b: &mut Builder, _: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        smallvec![cotangents[0].map(|ct| b.apply(self.clone(), &[ct]))]
    }

    fn jvp(&self, b: &mut Builder, _: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        smallvec![tangents[0].map(|t| b.apply(self.clone(), &[t]))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let x = batch_all_to_front(b, args, axes)[0];
        smallvec![(b.apply(Reverse { axes: shift_axes(&self.axes) }, &[x]), 0)]
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        quirks::reverse(to, &self.axes);
    }
}
