//! `custom_kernel`: the call of a function for which processors have a kernel of its own, as `jax.lax.platform_dependent` chooses.

use std::sync::Arc;

use smallvec::SmallVec;

use super::region::{are_floats, expect_operands, picked, picked_varying, positions, present, real, spread, strong};
use super::{Cotangents, Primitive, TypeFault, Types, batch_size, batch_to_front};
use crate::graph::{Builder, Graph, Var, evaluate};
use crate::stablehlo::{Lowering, MAX_ARRAYS};
use crate::tensor::{DType, HostTensor, TensorType};
use crate::transform;

mod cholesky;
mod lu;
mod qr;
mod rotations;
mod substitution;

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
    /// Rows turned to be orthogonal, and the turn.
    Rotations,
}

impl Kernel {
    /// The kernels by the names that the standard library calls them by.
    pub const ALL: [(&str, Kernel); 5] = [
        ("cholesky", Kernel::Cholesky),
        ("lu", Kernel::Lu),
        ("qr", Kernel::Qr),
        ("substitution", Kernel::Substitution),
        ("rotations", Kernel::Rotations),
    ];

    fn name(self) -> &'static str {
        Kernel::ALL.into_iter().find(|(_, kernel)| *kernel == self).expect("a name for each").0
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
        Ok(self.body.outputs.iter().map(|v| self.body.ty(*v).clone()).collect())
    }

    fn evaluate(&self, args: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
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
        let varies = are_floats(&self.body, &self.body.inputs);
        let operands = [args, &real(b, cotangents, outs)].concat();
        let pulled = b.inline(&transform::vjp(&self.body, &positions(&varies)), &operands);
        spread(pulled[self.body.outputs.len()..].iter().map(|v| strong(b, *v)), &varies)
    }

    fn jvp(&self, b: &mut Builder, args: &[Var], _: &[Var], tangents: &[Option<Var>]) -> Cotangents {
        let varies = present(tangents);
        let varying = transform::varying(&self.body, &varies);
        let mut operands = args.to_vec();
        operands.extend(real(b, &picked_varying(tangents, &varies), &picked(args, &varies)));
        let derivative = transform::jvp(&self.body, &positions(&varies));
        let pushed = b.inline(&derivative, &operands).split_off(self.body.outputs.len());
        spread(picked(&pushed, &varying).into_iter().map(|v| strong(b, v)), &varying)
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
            Kernel::Substitution => substitution::write,
            Kernel::Rotations => rotations::write,
        };
        // Each column of a QR factorisation reads all of the matrix, which stays in the processor's cache up to the lesser size.
        let limit = if self.kernel == Kernel::Qr { 1 << 21 } else { 1 << 24 };
        let results = match Matrices::of(to, limit) {
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

/// Bytes from one row to the next at which a column has few places in a processor's cache.
const CACHE_STRIDE: usize = 2048;

/// The operands of a kernel as batches of matrices, and what its vectors are like.
struct Matrices {
    dtype: DType,
    batch: usize,
    /// Elements of a vector; rows have a margin of zeros up to whole ones.
    lanes: usize,
}

impl Matrices {
    /// None if the kernel is not for the operands, matrices of at most `limit` elements, or not for the device.
    fn of(to: &Lowering<'_>, limit: usize) -> Option<Matrices> {
        let types: Vec<&TensorType> = (0..to.operand_count()).map(|i| to.operand_type(i)).collect();
        let (dtype, rank) = (types[0].dtype, types[0].rank());
        let extents = types.iter().flat_map(|ty| ty.shape[rank - 2..].iter().copied());
        let longest = extents.max().unwrap_or(0);
        let columns = types[types.len() - 1].shape[rank - 1];
        let fits = types.iter().all(|ty| {
            ty.count() > 0 && ty.shape[rank - 2..].iter().product::<usize>() <= limit
        });
        // Those of a QR factorisation, with a margin each.
        let arrays = 2 * (longest + 64) * dtype.byte_width();
        let taken = matches!(dtype, DType::F32 | DType::F64) && fits && arrays <= MAX_ARRAYS;
        if !taken || !to.is_for_processor() || to.in_kernel() {
            return None;
        }
        let batch = types[0].shape[..rank - 2].iter().product();
        let matrices = Matrices { dtype, batch, lanes: 1 };
        // Sums of several vectors do not wait for each other; an eighth of the columns may be margin.
        let wide = [4, 2].map(|vectors| vectors * matrices.processor_lanes());
        let fits = |lanes: &usize| columns.next_multiple_of(*lanes) <= columns + columns / 8;
        let lanes = wide.into_iter().find(fits).unwrap_or_else(|| matrices.processor_lanes());
        Some(Matrices { lanes, ..matrices })
    }

    /// Elements of a processor's vector.
    fn processor_lanes(&self) -> usize {
        if self.dtype == DType::F32 { 16 } else { 8 }
    }

    /// The type of `rows` with whole vectors of columns, and one more where rows would share their places in a cache.
    fn ty(&self, rows: usize, columns: usize) -> TensorType {
        let mut columns = columns.next_multiple_of(self.lanes);
        if self.lanes > 1 && (columns * self.dtype.byte_width()).is_multiple_of(CACHE_STRIDE) {
            columns += self.lanes;
        }
        TensorType::new(self.dtype, [self.batch, rows, columns].as_slice())
    }

    /// Operand `i` in that form.
    fn operand(&self, to: &mut Lowering<'_>, i: usize) -> (String, TensorType) {
        let from = to.operand_type(i).clone();
        let [.., rows, columns] = from.shape[..] else { unreachable!("matrices have two axes") };
        let (plain, whole) =
            (from.with_shape([self.batch, rows, columns].as_slice()), self.ty(rows, columns));
        let x = to.operand(i);
        let x = to.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", from.mlir(), plain.mlir()));
        if plain == whole {
            return (x, whole);
        }
        let scalar = TensorType::scalar(self.dtype);
        let zero = to.splat(&scalar, "0.0");
        let padded = to.temporary(&format!(
            "stablehlo.pad {x}, {zero}, low = [0, 0, 0], high = [0, 0, {}], interior = [0, 0, 0] : ({}, {}) -> {}",
            whole.shape[2] - columns,
            plain.mlir(),
            scalar.mlir(),
            whole.mlir()
        ));
        (padded, whole)
    }

    /// Tensor `x` of type `ty`, which a kernel gave, in the shape of result `i`: without its margin and surplus rows.
    fn result(&self, to: &mut Lowering<'_>, i: usize, x: &str, ty: &TensorType) -> String {
        let into = to.result_type(i).clone();
        let axes = ty.rank() - 1;
        let mut shape = vec![self.batch];
        shape.extend(&into.shape[into.rank() - axes..]);
        let plain = ty.with_shape(shape.as_slice());
        let mut x = x.to_owned();
        if plain != *ty {
            let bounds: Vec<String> = plain.shape.iter().map(|extent| format!("0:{extent}")).collect();
            x = to.temporary(&format!(
                "stablehlo.slice {x} [{}] : ({}) -> {}",
                bounds.join(", "),
                ty.mlir(),
                plain.mlir()
            ));
        }
        to.temporary(&format!("stablehlo.reshape {x} : ({}) -> {}", plain.mlir(), into.mlir()))
    }
}
