//! `checkpoint`: the call of a function whose inside the backward pass computes again, as `jax.checkpoint`.

use std::sync::Arc;

use smallvec::SmallVec;

use super::region::{are_floats, expect_operands, picked, positions, real, strong};
use super::{Cotangents, OptimizationBarrier, Primitive, TypeFault, Types, batch_size, batch_to_front};
use crate::graph::{Builder, Graph, Var, evaluate, inline_calls};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};
use crate::transform;

/// A function. Emission puts its equations in the place of the call; its VJP starts from its operands again, behind a
/// barrier that waits for the cotangents, so that nothing of the inside is kept until then.
#[derive(Clone, Debug)]
pub struct Checkpoint {
    /// The function.
    pub body: Arc<Graph>,
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

    fn irreversible(&self) -> Option<&'static str> {
        let floats = positions(&are_floats(&self.body, &self.body.inputs));
        transform::irreversible(&self.body, &floats).map(|(_, reason)| reason)
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let body = &*self.body;
        let floats = are_floats(body, &body.inputs);
        let mut operands = args.to_vec();
        operands.extend(real(b, cotangents, outs));
        let operands = b.apply_all(OptimizationBarrier, &operands);
        let pulled = b.inline(&transform::vjp(body, &positions(&floats)), &operands);
        let pulled: Vec<Var> = pulled[body.outputs.len()..].iter().map(|v| strong(b, *v)).collect();
        let mut pulled = pulled.into_iter();
        floats.iter().map(|float| if *float { pulled.next() } else { None }).collect()
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let body = &*self.body;
        let moving = are_floats(body, &body.outputs);
        let mut operands = args.to_vec();
        operands.extend(real(b, tangents, args));
        let derivative = transform::jvp(body, &positions(&are_floats(body, &body.inputs)));
        let pushed = b.inline(&derivative, &operands).split_off(body.outputs.len());
        let pushed: Vec<Var> = picked(&pushed, &moving).into_iter().map(|v| strong(b, v)).collect();
        let mut pushed = pushed.into_iter();
        moving.iter().map(|float| if *float { pushed.next() } else { None }).collect()
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

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.body.cost()
    }
}
