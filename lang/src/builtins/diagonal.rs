//! Diagonals and triangles of matrices.

use super::{Builtin, as_index};
use crate::eval::{Eval, Interp, positions};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "tril",
        "(tril x diagonal?)",
        "the lower triangle of a matrix, 0 above: up to the main diagonal, or one that many above it\n\
         of a tensor with more axes, that of each matrix of the last two",
        (1, 2),
        |i, a| triangle(i, a, false),
    )
    .examples("(tril [[1 2] [3 4]]) ;=> [[1 0] [3 4]]\n(tril (ones '[2 3]) 1) ;=> [[1 1 0] [1 1 1]]"),
    Builtin::new(
        "triu",
        "(triu x diagonal?)",
        "the upper triangle of a matrix, 0 below: from the main diagonal on, or from one that many above it\n\
         of a tensor with more axes, that of each matrix of the last two",
        (1, 2),
        |i, a| triangle(i, a, true),
    )
    .examples("(triu [[1 2] [3 4]]) ;=> [[1 2] [0 4]]\n(triu (ones '[2 3]) 1) ;=> [[0 1 1] [0 0 1]]"),
    Builtin::new(
        "diag",
        "(diag x diagonal?)",
        "the diagonal of a matrix as a vector, or a matrix with a vector as its diagonal and 0 elsewhere\n\
         the main one, or one that many above it, below it if negative",
        (1, 2),
        |i, a| {
            let t = i.tensor(&a[0])?;
            let offset = a.get(1).map_or(Ok(0), |v| as_index(v, "a diagonal"))?;
            match t.ty().rank() {
                1 => from_diagonal(i, &t, offset).map(Value::from),
                2 => diagonal(i, &t, offset).map(Value::from),
                _ => Err(Diagnostic::error(format!("diag wants a vector or a matrix, got {}", t.ty()))
                    .help("(einsum \"bii->bi\" x) takes the diagonal of each matrix of a batch")
                    .into()),
            }
        },
    )
    .examples(
        "(diag [[1 2] [3 4]]) ;=> [1 4]\n(diag [1 2]) ;=> [[1 0] [0 2]]\n(diag [[1 2] [3 4]] 1) ;=> [2]",
    ),
    Builtin::new(
        "trace",
        "(trace x diagonal?)",
        "the sum of the main diagonal of a matrix, or of the one that many above it",
        (1, 2),
        |i, a| {
            let t = i.tensor(&a[0])?;
            if t.ty().rank() != 2 {
                return Err(Diagnostic::error(format!("trace wants a matrix, got {}", t.ty()))
                    .help("(einsum \"bii->b\" x) gives the trace of each matrix of a batch")
                    .into());
            }
            let offset = a.get(1).map_or(Ok(0), |v| as_index(v, "a diagonal"))?;
            let entries = diagonal(i, &t, offset)?;
            let entries = i.countable(&entries)?;
            i.op(p::ReduceSum { axes: [0].as_slice().into() }, &[&entries]).map(Value::from)
        },
    )
    .examples("(trace [[1 2] [3 4]]) ;=> 5.0\n(trace [1 2]) ;=> error: trace wants a matrix"),
];

fn triangle(interp: &mut Interp, args: &[Value], upper: bool) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let rank = t.ty().rank();
    if rank < 2 {
        return Err(Diagnostic::error(format!("a triangle is that of a matrix, got {}", t.ty()))
            .help("(ones '[n n]) makes a matrix to take the triangle of")
            .into());
    }
    // All diagonals beyond the corners give the same result.
    let largest = t.shape()[rank - 1].max(t.shape()[rank - 2]) as i64 + 1;
    let offset = args.get(1).map_or(Ok(0), |v| as_index(v, "a diagonal"))?.clamp(-largest, largest);
    let (row, column) = (positions(&t, rank - 2, interp.span)?, positions(&t, rank - 1, interp.span)?);
    let full = |x: i64| Tensor::host(HostTensor::filled(DType::I32, t.shape(), x as f64));
    let diagonal = interp.op(p::Binary(p::Add), &[&row, &full(offset)])?;
    let direction = if upper { p::Direction::Ge } else { p::Direction::Le };
    let kept = interp.op(p::Compare { direction }, &[&column, &diagonal])?;
    let zeros = Tensor::host(HostTensor::filled(t.ty().dtype, t.shape(), 0.0));
    interp.op(p::Select, &[&kept, &t, &zeros]).map(Value::from)
}

/// The diagonal of elements `x[i][i + offset]`.
fn diagonal(interp: &mut Interp, t: &Tensor, offset: i64) -> Eval<Tensor> {
    let (n, m) = (t.shape()[0] as i64, t.shape()[1] as i64);
    let offset = offset.clamp(-n, m);
    let (row, column) = ((-offset).max(0), offset.max(0));
    let length = (n - row).min(m - column).max(0);
    let flat = interp.reshape(t, &[t.ty().count()])?;
    let places: Vec<i32> = (0..length).map(|i| ((row + i) * m + column + i) as i32).collect();
    let places = Tensor::host(HostTensor::new([places.len()].as_slice(), places));
    interp.op(p::GatherRows, &[&flat, &places])
}

/// The square matrix with that diagonal: each element followed by a row of zeros, reshaped to rows shorter by 1.
fn from_diagonal(interp: &mut Interp, t: &Tensor, offset: i64) -> Eval<Tensor> {
    let n = t.shape()[0];
    let margin = usize::try_from(offset.unsigned_abs()).unwrap_or(usize::MAX);
    let side = n.saturating_add(margin);
    super::create::checked_count(&[side, side])?;
    let t = interp.strong(t)?;
    let zero = Tensor::host(HostTensor::filled(t.ty().dtype, Shape::new(), 0.0));
    let mut square = interp.reshape(&t, &[n, 1])?;
    if n > 0 {
        let pad = |low: [usize; 2], high: [usize; 2]| p::Pad {
            low: low.as_slice().into(),
            high: high.as_slice().into(),
        };
        let spaced = interp.op(pad([0, 0], [0, n]), &[&square, &zero])?;
        let flat = interp.reshape(&spaced, &[n * (n + 1)])?;
        let cut = interp.slice_axis(&flat, 0, 0, (n * n) as i64)?;
        square = interp.reshape(&cut, &[n, n])?;
        if margin > 0 {
            let (low, high) =
                if offset > 0 { ([0, margin], [margin, 0]) } else { ([margin, 0], [0, margin]) };
            square = interp.op(pad(low, high), &[&square, &zero])?;
        }
        return Ok(square);
    }
    Ok(Tensor::host(HostTensor::filled(t.ty().dtype, [side, side].as_slice(), 0.0)))
}
