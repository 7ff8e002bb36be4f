//! `select`: one of two tensors, element by element.

use std::hint::select_unpredictable;

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_all_to_front, expect_arity, stored_like, Zeros};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::map_elements;
use crate::tensor::{DType, Data, HostTensor, TensorType, pairs};

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
        let data = map_elements!(args[1].stored(), v => chosen(predicate, v, stored_like(v, args[2])));
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

/// `on_true[i]` where the predicate holds, else `on_false[i]`; the one element of a splat for all. Without branches: those that numbers
/// of both signs mispredict take ten times as long.
fn chosen<T: Copy>(predicate: &[bool], on_true: &[T], on_false: &[T]) -> Vec<T> {
    match (on_true, on_false) {
        (&[a], &[b]) => predicate.iter().map(|p| select_unpredictable(*p, a, b)).collect(),
        (&[a], _) => pairs(predicate, on_false, |p, b| select_unpredictable(p, a, b)),
        (_, &[b]) => pairs(predicate, on_true, |p, a| select_unpredictable(p, a, b)),
        _ => {
            let pairs = on_true.iter().zip(on_false);
            predicate.iter().zip(pairs).map(|(p, (a, b))| select_unpredictable(*p, *a, *b)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::chosen;

    #[test]
    fn numbers_go_with_each_element() {
        let predicate = [true, false, true];
        assert_eq!(chosen(&predicate, &[1, 2, 3], &[4, 5, 6]), [1, 5, 3]);
        assert_eq!(chosen(&predicate, &[1], &[4, 5, 6]), [1, 5, 1]);
        assert_eq!(chosen(&predicate, &[1, 2, 3], &[4]), [1, 4, 3]);
        assert_eq!(chosen(&predicate, &[1], &[4]), [1, 4, 1]);
        assert_eq!(chosen::<i32>(&[], &[], &[]), [0; 0]);
    }
}
