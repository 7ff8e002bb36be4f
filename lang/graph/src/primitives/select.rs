//! `select`: one of two tensors, element by element.

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, Zeros};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, Data, HostTensor, TensorType};
use crate::zip_data;

/// `on_true` where the predicate holds, else `on_false`; the three have one shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Select;

impl Primitive for Select {
    fn name(&self) -> &'static str {
        "select"
    }

    fn parameters(&self) -> String {
        String::new()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("select", args, 3)?;
        let [p, x, y] = [args[0], args[1], args[2]];
        if p.dtype != DType::Bool || p.shape != x.shape || x.shape != y.shape || x.dtype != y.dtype {
            return Err(TypeFault::new(format!("select by {p} between {x} and {y}: the types do not match")));
        }
        Ok(smallvec![TensorType { weak: x.weak && y.weak, ..x.clone() }])
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let Data::Bool(predicate) = args[0].stored() else { unreachable!("the type rule wants bool") };
        if args[0].is_splat() {
            return smallvec![args[if predicate[0] { 1 } else { 2 }].clone()];
        }
        let mut p = predicate.iter();
        let mut choose = || *p.next().expect("one shape");
        // Two numbers alone would give one element.
        let on_true = if args[2].is_splat() { args[1].data() } else { args[1].stored() };
        let data = zip_data!(on_true, args[2].stored(); any(a, b) => if choose() { a } else { b });
        smallvec![HostTensor::new(args[1].shape(), data)]
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], _: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let Some(ct) = cotangents[0] else { return super::zeros_for(args) };
        let zero = b.full_like(ct, 0.0);
        smallvec![None, Some(b.select(args[0], ct, zero)), Some(b.select(args[0], zero, ct))]
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        if tangents[1].is_none() && tangents[2].is_none() {
            return super::zeros_for(outs);
        }
        let mut side = |t: Option<Var>, x: Var| t.unwrap_or_else(|| b.full_like(x, 0.0));
        let (on_true, on_false) = (side(tangents[1], args[1]), side(tangents[2], args[2]));
        smallvec![Some(b.select(args[0], on_true, on_false))]
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let args = batch_all_to_front(b, args, axes);
        smallvec![(b.apply(*self, &args), 0)]
    }

    fn zeros(&self, _: &[bool]) -> Zeros {
        Zeros::Made
    }

    fn is_elementwise(&self) -> bool {
        true
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        to.typed("stablehlo.select", "");
    }
}
