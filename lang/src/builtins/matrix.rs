//! Matrix products.

use super::einsum::einsum;
use super::operands::broadcast_shapes;
use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "@",
        "(@ a b)",
        "the matrix product, as NumPy's matmul: (n k) @ (k m) is (n m), and two vectors give their dot product\n\
         axes before the last two are batches and broadcast",
        (2, 2),
        |i, a| matmul(i, a).map(Value::from),
    )
    .examples(
        "(@ [[1 2] [3 4]] [[5 6] [7 8]]) ;=> [[19 22] [43 50]]\n\
         (@ [1 2 3] [4 5 6]) ;=> 32.0\n\
         (@ [[1 2 3]] [4 5]) ;=> error: do not fit",
    ),
    Builtin::new(
        "dot",
        "(dot a b)",
        "the product summed over the last axis of a and the last but one of b (the only one of a vector), as NumPy's dot\n\
         of vectors and matrices the same as @; a number multiplies",
        (2, 2),
        |i, a| dot(i, a).map(Value::from),
    )
    .examples("(dot [1 2 3] [4 5 6]) ;=> 32.0\n(dot 2 [1 2]) ;=> [2 4]"),
    Builtin::new(
        "outer",
        "(outer a b)",
        "every element of a times every element of b, both flattened: (n) and (m) give (n m)",
        (2, 2),
        |i, a| outer(i, a).map(Value::from),
    )
    .examples("(outer [1 2] [3 4 5]) ;=> [[3 4 5] [6 8 10]]"),
    Builtin::new(
        "einsum",
        "(einsum pattern x y ...)",
        "products of tensors summed over named axes: each letter names an axis, and those not after -> are summed\n\
         a letter twice in one term takes the diagonal; ... stands for the axes in between, which broadcast\n\
         without -> the result has the letters that occur once, in alphabetical order; blanks mean nothing",
        (2, VARIADIC),
        |i, a| einsum(i, a).map(Value::from),
    )
    .examples(
        "(einsum \"i j, j k -> i k\" [[1 2] [3 4]] [[1 0] [0 1]]) ;=> [[1 2] [3 4]]\n\
         (einsum \"ii\" [[1 2] [3 4]]) ;=> 5.0\n\
         (einsum \"...d->...\" [[1 2] [3 4]]) ;=> [3 7]\n\
         (einsum \"i,i\" [1 2] [1 2 3]) ;=> error: the index i",
    ),
];

/// `numpy.matmul`: contracts the last axis of `a` with the last but one of `b` (the only one of a vector); leading axes
/// broadcast.
fn matmul(interp: &mut Interp, args: &[Value]) -> Eval<Tensor> {
    let (a, b) = operands(interp, "@", args)?;
    let (ra, rb) = (a.ty().rank(), b.ty().rank());
    if rb <= 2 {
        // (..., n, k) by a matrix or a vector: no batch axes needed.
        return contract(interp, &a, &b, ra - 1, rb.saturating_sub(2), 0);
    }
    // Batched: both get the same leading axes by broadcasting.
    let vector = [ra == 1, rb == 1];
    let (given_a, given_b) = (a.ty().clone(), b.ty().clone());
    let a = if vector[0] { interp.reshape(&a, &[1, a.shape()[0]])? } else { a };
    let lead = |t: &Tensor| TensorType::new(t.ty().dtype, Shape::from_slice(&t.shape()[..t.ty().rank() - 2]));
    let batch = broadcast_shapes(&lead(&a), &lead(&b)).map_err(|_| {
        Diagnostic::error(format!("(@ a b): the batch axes of {given_a} and {given_b} do not broadcast"))
            .help("the axes before the last two are matched from the last; each pair must be equal, or one of them 1")
    })?;
    let full = |t: &Tensor| -> Shape {
        batch.iter().copied().chain(t.shape()[t.ty().rank() - 2..].iter().copied()).collect()
    };
    let (sa, sb) = (full(&a), full(&b));
    let (a, b) = (interp.broadcast_to(&a, &sa)?, interp.broadcast_to(&b, &sb)?);
    let n = batch.len();
    let product = contract(interp, &a, &b, n + 1, n, n)?;
    let mut shape: Shape = product.shape().into();
    if vector[0] {
        shape.remove(n);
    }
    interp.reshape(&product, &shape)
}

/// `numpy.dot`: free axes of `a`, then those of `b`.
fn dot(interp: &mut Interp, args: &[Value]) -> Eval<Tensor> {
    let (a, b) = (interp.tensor(&args[0])?, interp.tensor(&args[1])?);
    if a.ty().rank() == 0 || b.ty().rank() == 0 {
        let (a, b) = interp.broadcast(&a, &b)?;
        let (a, b) = (interp.countable(&a)?, interp.countable(&b)?);
        return interp.op(p::Binary(p::Mul), &[&a, &b]);
    }
    let (a, b) = operands(interp, "dot", args)?;
    contract(interp, &a, &b, a.ty().rank() - 1, b.ty().rank().saturating_sub(2), 0)
}

fn outer(interp: &mut Interp, args: &[Value]) -> Eval<Tensor> {
    let (a, b) = (interp.tensor(&args[0])?, interp.tensor(&args[1])?);
    let (a, b) = interp.promote(&a, &b)?;
    let (n, m) = (a.ty().count(), b.ty().count());
    let (a, b) = (interp.reshape(&a, &[n, 1])?, interp.reshape(&b, &[1, m])?);
    let (a, b) = (interp.countable(&a)?, interp.countable(&b)?);
    let (a, b) = (interp.broadcast_to(&a, &[n, m])?, interp.broadcast_to(&b, &[n, m])?);
    interp.op(p::Binary(p::Mul), &[&a, &b])
}

/// Two operands whose contracted extents agree, in their common dtype.
fn operands(interp: &mut Interp, name: &str, args: &[Value]) -> Eval<(Tensor, Tensor)> {
    let (a, b) = (interp.tensor(&args[0])?, interp.tensor(&args[1])?);
    let inner = |t: &Tensor, from_end: usize| t.shape().len().checked_sub(from_end).map(|i| t.shape()[i]);
    let (left, right) = (inner(&a, 1), if b.ty().rank() == 1 { inner(&b, 1) } else { inner(&b, 2) });
    match (left, right) {
        (Some(m), Some(n)) if m == n => {}
        (None, _) | (_, None) => {
            return Err(Diagnostic::error(format!(
                "({name} a b) wants vectors or matrices, got {} and {}",
                args[0].describe(),
                args[1].describe()
            ))
            .help("* multiplies by a number")
            .into());
        }
        (Some(m), Some(n)) => return Err(mismatch(name, a.ty(), b.ty(), m, n).into()),
    }
    let (a, b) = interp.promote(&a, &b)?;
    Ok((interp.countable(&a)?, interp.countable(&b)?))
}

impl Interp {
    /// `t` as summable elements: booleans become `i32`.
    pub(super) fn countable(&mut self, t: &Tensor) -> Eval<Tensor> {
        if t.ty().dtype == DType::Bool { self.convert(t, DType::I32) } else { Ok(t.clone()) }
    }
}

fn contract(
    interp: &mut Interp,
    a: &Tensor,
    b: &Tensor,
    left: usize,
    right: usize,
    batch: usize,
) -> Eval<Tensor> {
    let batch: Shape = (0..batch).collect();
    let op = p::DotGeneral {
        contract: [[left].as_slice().into(), [right].as_slice().into()],
        batch: [batch.clone(), batch],
    };
    interp.op(op, &[a, b])
}

fn mismatch(name: &str, a: &TensorType, b: &TensorType, m: usize, n: usize) -> Diagnostic {
    let d = Diagnostic::error(format!("({name} a b): {a} and {b} do not fit"))
        .note(format!("the last axis of a has {m} entries, the matching axis of b has {n}"));
    let transposed = b.rank() == 2 && b.shape[1] == m;
    if transposed {
        d.help(format!("the transpose of b would fit: ({name} a (transpose b))"))
    } else {
        d.help("the inner extents must be equal: (m k) @ (k n)")
    }
}
