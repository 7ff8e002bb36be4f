//! `custom_vjp`: the call of a function whose derivative the program gives, as `jax.custom_vjp` does.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front, expect_arity};
use crate::graph::{Builder, Graph, Var, evaluate, inline_calls};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, TensorType};
use crate::transform;

/// A function and its vector-Jacobian product. Emission puts the function's equations in the place of the call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomVjp {
    /// The function's name.
    pub name: String,
    /// The function.
    pub forward: Arc<Graph>,
    /// Its operands, its results and a cotangent for each float result to a cotangent for each float operand.
    pub backward: Arc<Graph>,
}

fn is_float(b: &Builder, var: Var) -> bool {
    b.ty(var).dtype.is_float()
}

impl CustomVjp {
    /// The parameters of `backward`; a missing cotangent is zero.
    fn operands(b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Vec<Var> {
        let mut all = [args, outs].concat();
        for (out, cotangent) in outs.iter().zip(cotangents) {
            if is_float(b, *out) {
                all.push(transform::or_zeros(b, *cotangent, *out));
            }
        }
        all
    }
}

impl Primitive for CustomVjp {
    fn name(&self) -> &'static str {
        "custom_vjp"
    }

    fn parameters(&self) -> String {
        self.name.clone()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_arity("custom_vjp", args, self.forward.inputs.len())?;
        for (arg, var) in args.iter().zip(&self.forward.inputs) {
            let wanted = self.forward.ty(*var);
            if (arg.dtype, &arg.shape) != (wanted.dtype, &wanted.shape) {
                return Err(TypeFault::new(format!("{} was traced for {wanted}, not for {arg}", self.name)));
            }
        }
        Ok(self.forward.outputs.iter().map(|v| self.forward.ty(*v).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        let args: Vec<HostTensor> = args.iter().map(|x| (*x).clone()).collect();
        evaluate(&self.forward, &args).into()
    }

    fn no_jvp(&self, _: &[bool]) -> Option<&'static str> {
        let results = self.forward.outputs.len();
        let cotangents: Vec<usize> = (self.forward.inputs.len() + results..self.backward.inputs.len()).collect();
        transform::no_vjp(&self.backward, &cotangents).map(|_| {
            "the gradient that defgrad gives would run the other way, and the number of iterations of a loop in it is \
             not known"
        })
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let operands = CustomVjp::operands(b, args, outs, cotangents);
        let mut results = b.inline(&self.backward, &operands).into_iter();
        args.iter().map(|arg| if is_float(b, *arg) { results.next() } else { None }).collect()
    }

    /// The transpose of the program's VJP, which is taken to be linear in the cotangents.
    fn jvp(&self, b: &mut Builder, args: &[Var], outs: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let first = args.len() + outs.len();
        let cotangents: Vec<usize> = (first..self.backward.inputs.len()).collect();
        let transposed = transform::vjp(&self.backward, &cotangents);
        let mut operands = CustomVjp::operands(b, args, outs, &vec![None; outs.len()]);
        for (arg, tangent) in args.iter().zip(tangents) {
            if is_float(b, *arg) {
                operands.push(transform::or_zeros(b, *tangent, *arg));
            }
        }
        let mut results = b.inline(&transposed, &operands).into_iter().skip(self.backward.outputs.len());
        outs.iter().map(|out| if is_float(b, *out) { results.next() } else { None }).collect()
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let front = |(x, axis): (&Var, &Option<usize>)| axis.map_or(*x, |_| batch_to_front(b, *x, *axis, size));
        let operands: Vec<Var> = args.iter().zip(axes).map(front).collect();
        let axes: Vec<Option<usize>> = axes.iter().map(|axis| axis.map(|_| 0)).collect();
        let forward = transform::vmap(&self.forward, &axes, size);
        let mut backward_axes = vec![Some(0); self.backward.inputs.len()];
        backward_axes[..axes.len()].copy_from_slice(&axes);
        let rows = transform::vmap(&self.backward, &backward_axes, size);
        // An operand that all rows share gets the sum of their cotangents.
        let mut sums = Builder::new();
        let inputs = sums.inputs_of(&rows);
        let cotangents = sums.inline(&rows, &inputs);
        let floats = self.forward.inputs.iter().zip(&axes).filter(|(v, _)| self.forward.ty(**v).dtype.is_float());
        let outputs = cotangents.into_iter().zip(floats);
        let outputs =
            outputs.map(|(c, (_, axis))| if axis.is_some() { c } else { sums.sum(c, &[0]) }).collect();
        let backward = Arc::new(sums.finish(outputs));
        let op = CustomVjp { name: self.name.clone(), forward: Arc::new(forward), backward };
        b.apply_all(op, &operands).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, _: &mut Lowering<'_>) {
        unreachable!("emission inlines calls");
    }

    fn call(&self) -> Option<Graph> {
        Some(inline_calls(&self.forward))
    }

    fn functions(&self) -> SmallVec<[&Graph; 2]> {
        smallvec![&*self.forward]
    }

    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.forward.cost()
    }
}
