//! Matrix products.

use super::Builtin;
use super::operands::broadcast_shapes;
use crate::diagnostic::Diagnostic;
use crate::eval::{Eval, Interp, Tensor, Value};
use crate::primitives as p;
use crate::tensor::{DType, Shape, TensorType};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("@", "(@ a b)", "the matrix product, as NumPy's matmul", (2, 2), matmul),
    Builtin::new("dot", "(dot a b)", "the same as @", (2, 2), matmul),
];

/// `numpy.matmul`: the last axis of `a` with the last but one of `b` (the only one of a vector); axes before them
/// broadcast.
fn matmul(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (a, b) = (interp.tensor(&args[0])?, interp.tensor(&args[1])?);
    let inner = |t: &Tensor, from_end: usize| t.shape().len().checked_sub(from_end).map(|i| t.shape()[i]);
    let (left, right) = (inner(&a, 1), if b.ty().rank() == 1 { inner(&b, 1) } else { inner(&b, 2) });
    match (left, right) {
        (Some(m), Some(n)) if m == n => {}
        (None, _) | (_, None) => {
            return Err(Diagnostic::error(format!(
                "(@ a b) wants vectors or matrices, got {} and {}",
                args[0].describe(),
                args[1].describe()
            ))
            .help("* multiplies by a number")
            .into());
        }
        (Some(m), Some(n)) => return Err(mismatch(a.ty(), b.ty(), m, n).into()),
    }
    let (a, b) = interp.promote(&a, &b)?;
    let (a, b) = if a.ty().dtype == DType::Bool {
        (interp.convert(&a, DType::I32)?, interp.convert(&b, DType::I32)?)
    } else {
        (a, b)
    };
    let (ra, rb) = (a.ty().rank(), b.ty().rank());
    if rb <= 2 {
        // (..., n, k) by a matrix or a vector: no batch axes needed.
        return contract(interp, &a, &b, ra - 1, rb.saturating_sub(2), 0);
    }
    // Batched: both get the same leading axes.
    let vector = [ra == 1, rb == 1];
    let a = if vector[0] { interp.reshape(&a, &[1, a.shape()[0]])? } else { a };
    let b = if vector[1] { interp.reshape(&b, &[b.shape()[0], 1])? } else { b };
    let lead = |t: &Tensor| TensorType::new(t.ty().dtype, Shape::from_slice(&t.shape()[..t.ty().rank() - 2]));
    let batch = broadcast_shapes(&lead(&a), &lead(&b))?;
    let full = |t: &Tensor| -> Shape {
        batch.iter().copied().chain(t.shape()[t.ty().rank() - 2..].iter().copied()).collect()
    };
    let (sa, sb) = (full(&a), full(&b));
    let (a, b) = (interp.broadcast_to(&a, &sa)?, interp.broadcast_to(&b, &sb)?);
    let n = batch.len();
    let Value::Tensor(product) = contract(interp, &a, &b, n + 1, n, n)? else {
        unreachable!("a tensor of rank 2 and up")
    };
    let mut shape: Shape = product.shape().into();
    if vector[1] {
        shape.pop();
    }
    if vector[0] {
        shape.remove(n);
    }
    Ok(Value::from(interp.reshape(&product, &shape)?))
}

fn contract(
    interp: &mut Interp,
    a: &Tensor,
    b: &Tensor,
    left: usize,
    right: usize,
    batch: usize,
) -> Eval<Value> {
    let batch: Shape = (0..batch).collect();
    let op = p::DotGeneral {
        contract: [[left].as_slice().into(), [right].as_slice().into()],
        batch: [batch.clone(), batch],
    };
    Ok(Value::from(interp.op(op, &[a, b])?))
}

fn mismatch(a: &TensorType, b: &TensorType, m: usize, n: usize) -> Diagnostic {
    let d = Diagnostic::error(format!("(@ a b): {a} and {b} do not fit"))
        .note(format!("the last axis of a has {m} entries, the matching axis of b has {n}"));
    let transposed = b.rank() == 2 && b.shape[1] == m;
    if transposed {
        d.help("the transpose of b would fit: (@ a (transpose b))")
    } else {
        d.help("the inner extents must be equal: (m k) @ (k n)")
    }
}
