//! `checkpoint`: the call of a function whose inside the backward pass computes again, as `jax.checkpoint`.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::region::{are_floats, call_jvp, call_vjp, expect_operands, positions, real};
use super::{And, Binary, Cotangents, Direction, Primitive, TypeFault, Types, batch_size, batch_to_front};
use crate::graph::{Builder, Graph, Var, evaluate, inline_calls};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};
use crate::transform;

/// A function. Emission puts its equations in the place of the call; its VJP starts from its operands again once a
/// cotangent is there, so that nothing of the inside is kept until then.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Checkpoint {
    /// The function.
    pub body: Arc<Graph>,
}

/// `x`, which cannot be computed with before `cotangent` is there.
///
/// IREE moves `optimization_barrier` out of the way before it decides on an order, and then computes the inside right
/// where it was computed before, long before it is needed (Q40). Hence `x` depends on a number of `cotangent`: it is
/// reduced by zero, though only arithmetic shows that it is zero. That changes no float, NaN and negative zero
/// included.
fn after(b: &mut Builder, x: Var, cotangent: Var) -> Var {
    let ty = b.ty(x).clone();
    if !ty.dtype.is_float() || ty.shape.is_empty() {
        return x;
    }
    let first: Vec<usize> = vec![0; b.ty(cotangent).rank()];
    let end: Vec<usize> = vec![1; first.len()];
    let number = b.slice(cotangent, &first, &end);
    let number = b.reshape(number, &[]);
    let origin = b.full_like(number, 0.0);
    let (less, more) = (b.compare(Direction::Lt, number, origin), b.compare(Direction::Gt, number, origin));
    let never = b.apply(Binary(And), &[less, more]);
    let zero = b.convert(never, ty.dtype);
    let zeros = b.broadcast_scalar(zero, &ty.shape);
    b.sub(x, zeros)
}

impl Primitive for Checkpoint {
    fn name(&self) -> &'static str {
        "checkpoint"
    }

    fn parameters(&self) -> String {
        format!("{} equations", self.body.equations.len())
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_operands("checkpoint", &self.body, args)?;
        Ok(self.body.outputs.iter().map(|v| self.body.ty(*v).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let args: Vec<HostTensor> = args.iter().map(|x| (*x).clone()).collect();
        evaluate(&self.body, &args).into()
    }

    fn dependence(&self, varies: &[bool]) -> Option<Vec<bool>> {
        Some(transform::varying(&self.body, varies))
    }

    fn no_vjp(&self, varies: &[bool]) -> Option<&'static str> {
        transform::no_vjp(&self.body, &positions(varies)).map(|(_, reason)| reason)
    }

    fn no_jvp(&self, varies: &[bool]) -> Option<&'static str> {
        transform::no_jvp(&self.body, &positions(varies)).map(|(_, reason)| reason)
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        self.vjp_by(b, args, outs, cotangents, &are_floats(&self.body, &self.body.inputs))
    }

    fn vjp_by(
        &self,
        b: &mut Builder,
        args: &[Var],
        outs: &[Var],
        cotangents: &[Option<Var>],
        varies: &[bool],
    ) -> Cotangents {
        let cotangents = real(b, cotangents, outs);
        let args: Vec<Var> = match cotangents.iter().find(|ct| b.ty(**ct).count() > 0) {
            Some(cotangent) => args.iter().map(|x| after(b, *x, *cotangent)).collect(),
            None => args.to_vec(),
        };
        call_vjp(b, &self.body, &args, &cotangents, varies)
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        call_jvp(b, &self.body, args, tangents)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let front = |(x, axis): (&Var, &Option<usize>)| axis.map_or(*x, |_| batch_to_front(b, *x, *axis, size));
        let operands: Vec<Var> = args.iter().zip(axes).map(front).collect();
        let axes: Vec<Option<usize>> = axes.iter().map(|axis| axis.map(|_| 0)).collect();
        let body = Arc::new(transform::vmap(&self.body, &axes, size));
        b.apply_all(Checkpoint { body }, &operands).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, _: &mut Lowering<'_>) {
        unreachable!("emission inlines calls");
    }

    fn call(&self) -> Option<Graph> {
        Some(inline_calls(&self.body))
    }

    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        smallvec![&*self.body]
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.body.cost()
    }
}
