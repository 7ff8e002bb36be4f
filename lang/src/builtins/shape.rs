//! Shape queries, reshaping and transposition.

use super::operands::{as_axes, as_axis, as_integers, as_shape, show_shape};
use super::{Builtin, VARIADIC, as_index, parse};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "shape",
        "(shape x axis?)",
        "the extents of the axes as a list; with an axis, its extent as a number",
        (1, 2),
        |i, a| {
            let ty = type_of(i, &a[0])?;
            match a.get(1) {
                None => Ok(Value::list(ty.shape.iter().map(|n| Value::Int(*n as i64)).collect())),
                Some(axis) => {
                    let axis = as_axis(as_index(axis, "an axis")?, ty.rank(), &ty)?;
                    Ok(Value::Int(ty.shape[axis] as i64))
                }
            }
        },
    )
    .examples("(shape [[1 2 3] [4 5 6]]) ;=> '[2 3]\n(shape [[1 2 3] [4 5 6]] -1) ;=> 3\n(shape 5) ;=> '[]"),
    Builtin::new("ndim", "(ndim x)", "the number of axes: 0 for a number", (1, 1), |i, a| {
        Ok(Value::Int(type_of(i, &a[0])?.rank() as i64))
    })
    .examples("(ndim [[1 2 3]]) ;=> 2\n(ndim 5) ;=> 0"),
    Builtin::new("size", "(size x)", "the number of elements: the product of the shape", (1, 1), |i, a| {
        Ok(Value::Int(type_of(i, &a[0])?.count() as i64))
    })
    .examples("(size [[1 2 3] [4 5 6]]) ;=> 6\n(size 5) ;=> 1"),
    Builtin::new(
        "dtype",
        "(dtype x)",
        "the type of the elements as a keyword; a literal integer alone has 64 bits",
        (1, 1),
        |i, a| Ok(Value::Keyword(type_of(i, &a[0])?.dtype.name().into())),
    )
    .examples("(dtype [1 2]) ;=> :f32\n(dtype (> [1 2] 1)) ;=> :bool\n(dtype (arange 3)) ;=> :i32"),
    Builtin::new(
        "reshape",
        "(reshape x shape)",
        "the same elements in the same order under another shape; one extent may be -1 and is computed",
        (2, VARIADIC),
        reshape,
    )
    .examples(
        "(reshape (arange 6) '[2 3]) ;=> [[0 1 2] [3 4 5]]\n\
         (shape (reshape (zeros '[2 6]) 3 -1)) ;=> '[3 4]\n\
         (reshape [1 2 3] '[2 2]) ;=> error: does not fit the shape",
    ),
    Builtin::new("transpose", "(transpose x permutation?)", TRANSPOSE, (1, VARIADIC), transpose).examples(
        "(transpose [[1 2 3] [4 5 6]]) ;=> [[1 4] [2 5] [3 6]]\n\
         (shape (transpose (zeros '[2 3 4]) '[0 2 1])) ;=> '[2 4 3]",
    ),
    Builtin::new("tr", "(tr x permutation?)", TRANSPOSE, (1, VARIADIC), transpose)
        .examples("(tr [[1 2] [3 4]]) ;=> [[1 3] [2 4]]"),
    Builtin::new("swapaxes", "(swapaxes x axis other)", "two axes exchanged", (3, 3), |i, a| {
        let t = i.tensor(&a[0])?;
        let mut permutation: Shape = (0..t.ty().rank()).collect();
        let [one, other] = [1, 2].map(|n| as_index(&a[n], "an axis"));
        let (one, other) = (as_axis(one?, t.ty().rank(), t.ty())?, as_axis(other?, t.ty().rank(), t.ty())?);
        permutation.swap(one, other);
        i.permute(&t, permutation).map(Value::from)
    })
    .examples("(shape (swapaxes (zeros '[2 3 4]) 0 -1)) ;=> '[4 3 2]"),
    Builtin::new(
        "expand-dims",
        "(expand-dims x axis)",
        "a new axis of extent 1 before that axis; -1 puts it last; a list puts several, where they stand in the result",
        (2, 2),
        |i, a| {
            let t = i.tensor(&a[0])?;
            let axes = as_integers(&a[1], "an axis")?;
            let rank = t.ty().rank() + axes.len();
            let new = axes.iter().map(|n| as_axis(*n, rank, t.ty())).collect::<Eval<Shape>>()?;
            if let Some(twice) = (1..new.len()).find(|n| new[..*n].contains(&new[*n])) {
                return fail(format!("expand-dims: axis {} is named twice", axes[twice]));
            }
            let mut own = t.shape().iter().copied();
            let shape: Shape =
                (0..rank).map(|n| if new.contains(&n) { 1 } else { own.next().unwrap_or(1) }).collect();
            i.reshape(&t, &shape).map(Value::from)
        },
    )
    .examples("(shape (expand-dims [1 2 3] 0)) ;=> '[1 3]\n(shape (expand-dims [1 2 3] -1)) ;=> '[3 1]"),
    Builtin::new(
        "squeeze",
        "(squeeze x :axis a)",
        "without the axes of extent 1, or without those that :axis names",
        (1, 3),
        |i, a| {
            let parsed = parse(a, &["axis"], &[])?;
            let [x] = parsed.exactly()?;
            let t = i.tensor(x)?;
            let axes = match parsed.option("axis").filter(|v| !matches!(v, Value::Nil)) {
                Some(axis) => as_axes(Some(axis), t.ty())?,
                None => (0..t.ty().rank()).filter(|a| t.shape()[*a] == 1).collect(),
            };
            if let Some(axis) = axes.iter().find(|a| t.shape()[**a] != 1) {
                return Err(Diagnostic::error(format!("axis {axis} of {} is not of extent 1", t.ty()))
                    .help("squeeze only drops axes of extent 1; (x 0) or a sum takes another away")
                    .into());
            }
            let shape: Shape = (0..t.ty().rank()).filter(|a| !axes.contains(a)).map(|a| t.shape()[a]).collect();
            i.reshape(&t, &shape).map(Value::from)
        },
    )
    .examples(
        "(squeeze [[1 2 3]]) ;=> [1 2 3]\n(shape (squeeze (zeros '[1 3 1]) :axis -1)) ;=> '[1 3]\n\
         (squeeze [1 2] :axis 0) ;=> error: is not of extent 1",
    ),
    Builtin::new(
        "broadcast-to",
        "(broadcast-to x shape)",
        "x repeated to a shape: its axes are the last of it, and those of extent 1 stretch",
        (2, VARIADIC),
        |i, a| {
            let t = i.tensor(&a[0])?;
            let shape = as_shape(&a[1..].iter().collect::<Vec<_>>())?;
            i.broadcast_to(&t, &shape).map(Value::from)
        },
    )
    .examples(
        "(broadcast-to [1 2] '[2 2]) ;=> [[1 2] [1 2]]\n\
         (broadcast-to [1 2] '[3]) ;=> error: does not broadcast to the shape",
    ),
];

const TRANSPOSE: &str = "the axes in reverse order, or in that of a permutation: axis i of the result is axis permutation[i] of x";

/// The type of a tensor or a number, or of the tensor that a handle is; nothing is read.
fn type_of(interp: &mut Interp, value: &Value) -> Eval<TensorType> {
    if let Value::Handle(handle) = value
        && let Some((_, ty)) = handle.rows()
    {
        return Ok(ty);
    }
    Ok(interp.tensor(value)?.ty().clone())
}

impl Interp {
    /// `t` with the axes in another order.
    pub(super) fn permute(&mut self, t: &Tensor, permutation: Shape) -> Eval<Tensor> {
        if permutation.iter().copied().eq(0..t.ty().rank()) {
            return Ok(t.clone());
        }
        self.op(p::Transpose { permutation }, &[t])
    }
}

fn reshape(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let numbers = match &args[1..] {
        [one] => as_integers(one, super::SHAPE)?,
        many => many.iter().map(|v| as_index(v, super::SHAPE)).collect::<Eval<Vec<i64>>>()?,
    };
    let wrong = || {
        let wanted = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        Diagnostic::error(format!(
            "{} with its {} elements does not fit the shape [{wanted}]",
            t.ty(),
            t.ty().count()
        ))
        .help("the product of the extents must be the number of elements; one extent may be -1")
    };
    let count = t.ty().count() as i64;
    let mut given = numbers.iter().filter(|n| **n != -1);
    let known = given.try_fold(1_i64, |product, n| product.checked_mul(*n).filter(|_| *n >= 0));
    let unknown = numbers.iter().filter(|n| **n == -1).count();
    let rest = match (known, unknown) {
        (Some(known), 0) if known == count => 0,
        (Some(known), 1) if known > 0 && count % known == 0 => count / known,
        _ => return Err(wrong().into()),
    };
    let shape: Shape = numbers.iter().map(|n| if *n == -1 { rest } else { *n } as usize).collect();
    Ok(Value::from(interp.reshape(&t, &shape)?))
}

fn transpose(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let rank = t.ty().rank();
    let numbers = match &args[1..] {
        [] => return interp.permute(&t, (0..rank).rev().collect()).map(Value::from),
        [one] => as_integers(one, "a permutation")?,
        many => many.iter().map(|v| as_index(v, "a permutation")).collect::<Eval<Vec<i64>>>()?,
    };
    let permutation = numbers.iter().map(|a| as_axis(*a, rank, t.ty())).collect::<Eval<Shape>>()?;
    if permutation.len() != rank || (0..rank).any(|axis| !permutation.contains(&axis)) {
        return Err(Diagnostic::error(format!(
            "a permutation names each axis of {} once, got {}",
            t.ty(),
            numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ")
        ))
        .help(format!(
            "its axes are 0 to {}; swapaxes exchanges two of them, and without a permutation all are reversed",
            rank.max(1) - 1
        ))
        .into());
    }
    interp.permute(&t, permutation).map(Value::from)
}

/// Fails if a value does not broadcast to a shape; `what` names its use.
pub(super) fn expect_broadcast(value: &Tensor, shape: &[usize], what: &str) -> Eval<()> {
    let own = value.shape();
    let fits = own.len() <= shape.len()
        && own.iter().rev().zip(shape.iter().rev()).all(|(from, to)| from == to || *from == 1);
    if fits {
        return Ok(());
    }
    fail(format!(
        "{what} wants values of shape {}, or such that broadcast to it, got {}",
        show_shape(shape),
        value.ty()
    ))
}
