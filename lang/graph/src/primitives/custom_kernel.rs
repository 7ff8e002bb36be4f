//! `custom_kernel`: the call of a function for which processors have a kernel of its own, as `jax.lax.platform_dependent` chooses.

use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::region::{are_floats, call_jvp, call_vjp, expect_operands, positions, real};
use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front};
use crate::graph::{Builder, Graph, Var, evaluate};
use crate::stablehlo::Lowering;
use crate::tensor::{HostTensor, Shape, TensorType};
use crate::transform;

mod cholesky;
#[cfg(feature = "host-kernels")]
mod host;
mod lu;
mod matrices;
mod qr;
mod rotations;
mod substitution;

use matrices::Matrices;

/// Result of a kernel for matrices [.. n m], the axes before the last two being batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kernel {
    /// The lower Cholesky factor of symmetric matrices.
    Cholesky,
    /// Packed factors l and u with pivots, and the order of the rows, a float for each.
    Lu,
    /// Orthonormal columns q, and the upper triangle r.
    Qr,
    /// The solution of lower triangular systems, of which what is above the diagonal is not read.
    Substitution,
    /// The solution of the transposes of such systems.
    BackSubstitution,
    /// Rows turned to be orthogonal, and the turn.
    Rotations,
}

impl Kernel {
    /// All kernels.
    pub const ALL: [Kernel; 6] = [
        Kernel::Cholesky,
        Kernel::Lu,
        Kernel::Qr,
        Kernel::Substitution,
        Kernel::BackSubstitution,
        Kernel::Rotations,
    ];

    /// The name by which the standard library calls it.
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Cholesky => "cholesky",
            Kernel::Lu => "lu",
            Kernel::Qr => "qr",
            Kernel::Substitution => "substitution",
            Kernel::BackSubstitution => "back-substitution",
            Kernel::Rotations => "rotations",
        }
    }

    /// Maximum elements of a matrix. Each column of a QR factorisation reads all of it, which stays in the processor's cache up to the
    /// lesser size.
    fn max_elements(self) -> usize {
        if self == Kernel::Qr { 1 << 21 } else { 1 << 24 }
    }

    /// Number of its arrays on the stack, each as long as the matrix.
    fn arrays(self) -> usize {
        match self {
            Kernel::Cholesky | Kernel::Lu | Kernel::Substitution | Kernel::BackSubstitution => 0,
            Kernel::Rotations => 1,
            Kernel::Qr => 2,
        }
    }

    /// Its results on the host, `None` if a library is not for these operands: the function is. The library's rounding is another one.
    pub fn evaluate(self, args: &[&HostTensor]) -> Option<SmallVec<[HostTensor; 2]>> {
        #[cfg(feature = "host-kernels")]
        let results = host::evaluate(self, args);
        #[cfg(not(feature = "host-kernels"))]
        let (results, _) = (None, args);
        results
    }

    /// Shapes of the results for operands of these types, `None` if it is not for them.
    fn results(self, args: &[&TensorType]) -> Option<SmallVec<[Shape; 2]>> {
        let shape = &args.first()?.shape;
        let [batch @ .., n, m] = &shape[..] else { return None };
        let with = |axes: &[usize]| Shape::from([batch, axes].concat());
        match (self, args) {
            (Kernel::Cholesky, [_]) if n == m => Some(smallvec![shape.clone()]),
            (Kernel::Lu, [_]) => Some(smallvec![shape.clone(), with(&[*n])]),
            (Kernel::Qr, [_]) if n >= m => Some(smallvec![shape.clone(), with(&[*m, *m])]),
            (Kernel::Rotations, [_]) => Some(smallvec![shape.clone(), with(&[*n, *n])]),
            (Kernel::Substitution | Kernel::BackSubstitution, [a, b]) if n == m && a.dtype == b.dtype => {
                match &b.shape[..] {
                    [other @ .., rows, _] if (other, rows) == (batch, n) => Some(smallvec![b.shape.clone()]),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A function. On a processor the kernel runs if the matrices fit; elsewhere, and on the host, the function does. It is an
/// operation of its own for all passes, its inside is not looked at.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CustomKernel {
    /// The kernel.
    pub kernel: Kernel,
    /// The function, without index checks.
    pub body: Arc<Graph>,
}

impl Primitive for CustomKernel {
    fn name(&self) -> &'static str {
        "custom_kernel"
    }

    fn parameters(&self) -> String {
        self.kernel.name().to_owned()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        expect_operands("custom_kernel", &self.body, args)?;
        let results: Types = self.body.outputs.iter().map(|v| self.body.ty(*v).clone()).collect();
        let shapes = self.kernel.results(args).unwrap_or_default();
        let fits = |(ty, shape): (&TensorType, &Shape)| ty.dtype == args[0].dtype && ty.shape == *shape;
        if results.is_empty() || results.len() > shapes.len() || !results.iter().zip(&shapes).all(fits) {
            return Err(TypeFault::new(format!("the kernel {} is not for this function", self.kernel.name())));
        }
        Ok(results)
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        if let Some(mut results) = self.kernel.evaluate(args) {
            results.truncate(self.body.outputs.len());
            return results;
        }
        let args: Vec<HostTensor> = args.iter().map(|x| (*x).clone()).collect();
        evaluate(&self.body, &args).into()
    }

    fn no_vjp(&self, varies: &[bool]) -> Option<&'static str> {
        transform::no_vjp(&self.body, &positions(varies)).map(|(_, reason)| reason)
    }

    fn no_jvp(&self, varies: &[bool]) -> Option<&'static str> {
        transform::no_jvp(&self.body, &positions(varies)).map(|(_, reason)| reason)
    }

    fn vjp(&self, b: &mut Builder, args: &[Var], outs: &[Var], cotangents: &[Option<Var>]) -> Cotangents {
        let cotangents = real(b, cotangents, outs);
        call_vjp(b, &self.body, args, &cotangents, &are_floats(&self.body, &self.body.inputs))
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        call_jvp(b, &self.body, args, tangents)
    }

    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        let size = batch_size(b, args, axes);
        let front = |(x, axis): (&Var, &Option<usize>)| batch_to_front(b, *x, *axis, size);
        let operands: Vec<Var> = args.iter().zip(axes).map(front).collect();
        let body = Arc::new(transform::vmap(&self.body, &vec![Some(0); args.len()], size));
        let op = CustomKernel { kernel: self.kernel, body };
        b.apply_all(op, &operands).into_iter().map(|v| (v, 0)).collect()
    }

    fn stablehlo(&self, to: &mut Lowering<'_>) {
        let write = match self.kernel {
            Kernel::Cholesky => cholesky::write,
            Kernel::Lu => lu::write,
            Kernel::Qr => qr::write,
            Kernel::Substitution => substitution::forward,
            Kernel::BackSubstitution => substitution::backward,
            Kernel::Rotations => rotations::write,
        };
        let results = match Matrices::of(to, self.kernel) {
            Some(matrices) => write(to, &matrices),
            None => {
                let operands = (0..to.operand_count()).map(|i| to.operand(i)).collect();
                to.nested(&self.body, operands)
            }
        };
        to.name_results(&results);
    }

    /// That of the function, which is what interpreted code does.
    fn cost(&self, _: &[&TensorType], _: &[&TensorType]) -> u64 {
        self.body.cost()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stablehlo::{Model, emit};
    use crate::tensor::DType;

    /// Gradients leave out results that nothing reads.
    #[test]
    fn kernels_are_written_without_their_last_result() {
        let ty = TensorType::new(DType::F32, [6, 6].as_slice());
        for kernel in [Kernel::Lu, Kernel::Qr, Kernel::Rotations] {
            let mut inner = Builder::new();
            let x = inner.input(ty.clone());
            let body = Arc::new(inner.finish(vec![x]));
            let mut b = Builder::new();
            let x = b.input(ty.clone());
            let result = b.apply(CustomKernel { kernel, body }, &[x]);
            let text = emit(&b.finish(vec![result]), Model::Hal).text;
            assert!(text.contains("scf.for"), "{text}");
        }
    }
}
