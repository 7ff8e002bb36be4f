//! Indexing, slicing and index updates of tensors.

use super::operands::{as_axis, as_indices, as_integers, as_positions, from_the_end};
use super::shape::expect_broadcast;
use super::{Builtin, as_index, parse};
use crate::eval::{Eval, Interp, clip, fail, positions};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "slice",
        "(slice x start end? :axis a)",
        "positions start to end, without end itself: along axis 0 or :axis of a tensor, of a list, a string or a handle, which gives a tensor or a list\n\
         negative ones count from the end, and those beyond an end are cut off",
        (2, 5),
        slice,
    )
    .examples(
        "(slice [1 2 3 4] 1 3) ;=> [2 3]\n(slice [1 2 3 4] -2) ;=> [3 4]\n(slice \"hello\" 1 -1) ;=> \"ell\"\n\
         (slice '[1 :a 3] 0 2) ;=> '[1 :a]\n(slice [[1 2 3] [4 5 6]] 1 3 :axis 1) ;=> [[2 3] [5 6]]",
    ),
    Builtin::new(
        "dynamic-slice",
        "(dynamic-slice x start length)",
        "length entries along axis 0 from start on, which may be computed; lists do the same along the first axes\n\
         length is fixed; a start too near the end is moved back until the slice fits, as in JAX",
        (3, 3),
        dynamic_slice,
    )
    .examples(
        "(dynamic-slice [1 2 3 4] 1 2) ;=> [2 3]\n(dynamic-slice [1 2 3 4] 9 2) ;=> [3 4]\n\
         (dynamic-slice [[1 2 3] [4 5 6]] '[0 1] '[2 2]) ;=> [[2 3] [5 6]]\n\
         (dynamic-slice [1 2 3] 0 4) ;=> error: does not fit into",
    ),
    Builtin::new(
        "index-update",
        "(index-update x i v)",
        "x with v in place of the entries at i along axis 0: a number, a range a:b, or a tensor or list of indices\n\
         where an index occurs more than once, the last v stays; v broadcasts to the entries it replaces, and is cast to their dtype",
        (3, 3),
        index_update,
    )
    .examples(
        "(index-update [1 2 3] 0 9) ;=> [9 2 3]\n(index-update [1 2 3 4] [0 2] [8 9]) ;=> [8 2 9 4]\n\
         (index-update [1 2 3 4] 1:3 0) ;=> [1 0 0 4]\n(index-update [1 2 3] 3 0) ;=> error: outside of axis 0",
    ),
    Builtin::new(
        "scatter-add",
        "(scatter-add x i v)",
        "x with v added to its entries at the indices i along axis 0; entries named more than once get all of theirs",
        (3, 3),
        scatter_add,
    )
    .examples(
        "(scatter-add [0 0 0] [0 2 0] [1 2 3]) ;=> [4 0 2]\n(scatter-add [[1 1] [1 1]] 1 [2 3]) ;=> [[1 1] [3 4]]\n\
         (scatter-add [0 0] [5] [1]) ;=> error: outside of axis 0",
    ),
];

fn slice(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    let (xs, start, end) = match *parsed.positional.as_slice() {
        [xs, start] => (xs, start, None),
        [xs, start, end] => (xs, start, Some(end)),
        _ => return fail("slice wants a sequence, a start and maybe an end"),
    };
    let start = as_index(start, "the start of a slice")?;
    let end = end.map_or(Ok(i64::MAX), |v| as_index(v, "the end of a slice"))?;
    let axis = parsed.option("axis").filter(|v| !matches!(v, Value::Nil));
    match (axis, xs) {
        (Some(axis), Value::Tensor(t)) => {
            let axis = as_axis(as_index(axis, ":axis")?, t.ty().rank(), t.ty())?;
            interp.slice_axis(t, axis, start, end).map(Value::from)
        }
        (_, Value::Handle(handle)) => {
            super::arrange::only_axis(&parsed, "slice", xs)?;
            let (start, end) = clip(start, end, handle.count());
            interp.handle_slice(handle, start..end)
        }
        _ => {
            super::arrange::only_axis(&parsed, "slice", xs)?;
            part(interp, xs, start, end)
        }
    }
}

/// The slice from `start` to `end` of a list, a string, a handle, or a tensor along axis 0, of the same kind.
pub(super) fn part(interp: &mut Interp, xs: &Value, start: i64, end: i64) -> Eval<Value> {
    match xs {
        Value::List(list) => {
            let (start, end) = clip(start, end, list.items.len());
            Ok(Value::from(list.items.part(start..end)))
        }
        Value::Str(s) => {
            let (start, end) = clip(start, end, s.chars().count());
            Ok(Value::text(s.chars().skip(start).take(end - start).collect::<String>()))
        }
        Value::Handle(handle) => {
            let (start, end) = clip(start, end, handle.count());
            Ok(Value::from(handle.part(start..end)))
        }
        Value::Nil => Err(super::nil("a list, a tensor or a string")),
        Value::Tensor(t) if t.ty().rank() > 0 => interp.slice_axis(t, 0, start, end).map(Value::from),
        other => fail(format!("expected a list, a tensor with axes or a string, got {}", other.describe())),
    }
}

fn dynamic_slice(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let lengths = as_integers(&args[2], "a length")?;
    let starts = match &args[1] {
        Value::Tensor(s) if s.ty().rank() == 0 => vec![args[1].clone()],
        Value::List(_) | Value::Tensor(_) => interp.sequence(&args[1])?,
        number => vec![number.clone()],
    };
    if starts.len() != lengths.len() || starts.len() > t.ty().rank() {
        return Err(Diagnostic::error(format!(
            "dynamic-slice got {} starts and {} lengths for {}",
            starts.len(),
            lengths.len(),
            t.ty()
        ))
        .help("give a start and a length for each axis from the first on; axes without them stay whole")
        .into());
    }
    let mut sizes: Shape = t.shape().into();
    for (size, length) in sizes.iter_mut().zip(&lengths) {
        match usize::try_from(*length) {
            Ok(length) if length <= *size => *size = length,
            _ => {
                return Err(Diagnostic::error(format!(
                    "a slice of length {length} does not fit into {}",
                    t.ty()
                ))
                .help(format!("the axis has {size} entries"))
                .into());
            }
        }
    }
    let starts = starts
        .iter()
        .enumerate()
        .map(|(axis, start)| begin(interp, start, t.shape()[axis]))
        .collect::<Eval<Vec<Tensor>>>()?;
    boxed(interp, &t, &sizes, starts)
}

/// The slice of those sizes; axes without a start are whole.
fn boxed(interp: &mut Interp, t: &Tensor, sizes: &Shape, mut starts: Vec<Tensor>) -> Eval<Value> {
    starts.resize_with(t.ty().rank(), || Tensor::host(HostTensor::scalar(0_i32)));
    let operands: Vec<&Tensor> = std::iter::once(t).chain(&starts).collect();
    interp.op(p::DynamicSlice { sizes: sizes.clone() }, &operands).map(Value::from)
}

/// Start index of a slice along an axis of that extent: negative numbers count from the end; the primitive clamps.
fn begin(interp: &mut Interp, start: &Value, extent: usize) -> Eval<Tensor> {
    if let Value::Tensor(t) = start
        && t.concrete().is_none()
    {
        // Clamped out of range, as in JAX, so unchecked.
        let start = as_indices(interp, start)?;
        return from_the_end(interp, &start, extent);
    }
    let start = as_index(start, "a start")?;
    let start = if start < 0 { start.saturating_add(extent as i64) } else { start };
    Ok(Tensor::host(HostTensor::scalar(start.clamp(0, extent as i64) as i32)))
}

fn index_update(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    if t.ty().rank() == 0 {
        return fail(format!("index-update wants entries to replace, got {}", args[0].describe()));
    }
    let t = interp.strong(&t)?;
    let v = interp.tensor_of(&args[2], t.ty().dtype)?;
    let row = &t.shape()[1..];
    let (start, count, wanted) = if let Value::Range(range) = &args[1] {
        let (start, end) = clip(range.start, range.end, t.shape()[0]);
        let wanted: Shape = std::iter::once(end - start).chain(row.iter().copied()).collect();
        (Tensor::host(HostTensor::scalar(start as i32)), end - start, wanted)
    } else {
        let indices = as_positions(interp, &args[1], 0, t.ty())?;
        if indices.ty().rank() > 0 {
            return replace_rows(interp, &t, &indices, &v);
        }
        (indices, 1, row.into())
    };
    expect_broadcast(&v, &wanted, "index-update")?;
    if count == 0 {
        return Ok(Value::from(t));
    }
    let v = interp.broadcast_to(&v, &wanted)?;
    let block: Shape = std::iter::once(count).chain(row.iter().copied()).collect();
    let v = interp.reshape(&v, &block)?;
    let mut starts = vec![start];
    starts.resize_with(t.ty().rank(), || Tensor::host(HostTensor::scalar(0_i32)));
    let operands: Vec<&Tensor> = [&t, &v].into_iter().chain(&starts).collect();
    interp.op(p::DynamicUpdateSlice, &operands).map(Value::from)
}

/// `t` with its rows at `indices` replaced by those of `v`. The last row of `v` for each row of `t` is gathered, so
/// that the result never depends on the order in which a device writes.
fn replace_rows(interp: &mut Interp, t: &Tensor, indices: &Tensor, v: &Tensor) -> Eval<Value> {
    let row = &t.shape()[1..];
    let wanted = p::rows_shape(indices.shape(), t.shape());
    expect_broadcast(v, &wanted, "index-update")?;
    let n = indices.ty().count();
    if n == 0 {
        return Ok(Value::from(t.clone()));
    }
    let v = interp.broadcast_to(v, &wanted)?;
    let flat: Shape = std::iter::once(n).chain(row.iter().copied()).collect();
    let v = interp.reshape(&v, &flat)?;
    let indices = interp.reshape(indices, &[n])?;
    // One more than the position of the last row of v written to each row of t, 0 if there is none.
    let last = last_positions(interp, &indices, t.shape()[0])?;
    let zeros = Tensor::host(HostTensor::filled(DType::I32, last.shape(), 0.0));
    let ones = Tensor::host(HostTensor::filled(DType::I32, last.shape(), 1.0));
    let replaced = interp.op(p::Compare { direction: p::Direction::Gt }, &[&last, &zeros])?;
    let position = interp.op(p::Binary(p::Sub), &[&last, &ones])?;
    let position = interp.op(p::Binary(p::Max), &[&position, &zeros])?;
    let new = interp.op(p::GatherRows, &[&v, &position])?;
    let dims = [0].as_slice().into();
    let replaced = interp.op(p::BroadcastInDim { shape: t.shape().into(), dims }, &[&replaced])?;
    interp.op(p::Select, &[&replaced, &new, t]).map(Value::from)
}

/// For each of `count` rows, 1 more than its last position among the indices; 0 if absent.
fn last_positions(interp: &mut Interp, indices: &Tensor, count: usize) -> Eval<Tensor> {
    let n = indices.ty().count();
    if let Some(known) = indices.concrete() {
        let host = known.host()?;
        let mut last = vec![0_i32; count];
        for i in 0..n {
            last[host.element_i64(i) as usize] = i as i32 + 1;
        }
        return Ok(Tensor::host(HostTensor::new([count].as_slice(), last)));
    }
    let full = |x: usize| Tensor::host(HostTensor::filled(DType::I32, [n].as_slice(), x as f64));
    let inside = interp.op(p::Binary(p::Max), &[indices, &full(0)])?;
    let inside = interp.op(p::Binary(p::Min), &[&inside, &full(count.saturating_sub(1))])?;
    // After a stable sort, the last of each run of equal indices wins.
    let positions = positions(&inside, 0, interp.span)?;
    let sorted = interp.op_all(p::Sort { axis: 0 }, &[&inside, &positions])?;
    let after = interp.slice_axis(&sorted[0], 0, 1, i64::MAX)?;
    let none = Tensor::host(HostTensor::filled(DType::I32, [1].as_slice(), -1.0));
    let after = interp.op(p::Concatenate { axis: 0 }, &[&after, &none])?;
    let ends = interp.op(p::Compare { direction: p::Direction::Ne }, &[&sorted[0], &after])?;
    let place = interp.op(p::Binary(p::Add), &[&sorted[1], &full(1)])?;
    let place = interp.op(p::Select, &[&ends, &place, &full(0)])?;
    let zeros = Tensor::host(HostTensor::filled(DType::I32, [count].as_slice(), 0.0));
    interp.op(p::ScatterAdd, &[&zeros, &sorted[0], &place])
}

fn scatter_add(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    if t.ty().rank() == 0 {
        return fail(format!("scatter-add wants entries to add to, got {}", args[0].describe()));
    }
    let t = interp.strong(&t)?;
    let t = interp.countable(&t)?;
    let indices = as_positions(interp, &args[1], 0, t.ty())?;
    let v = interp.tensor(&args[2])?;
    let (t, v) = interp.promote(&t, &v)?;
    let shape = p::rows_shape(indices.shape(), t.shape());
    expect_broadcast(&v, &shape, "scatter-add")?;
    let v = interp.broadcast_to(&v, &shape)?;
    interp.op(p::ScatterAdd, &[&t, &indices, &v]).map(Value::from)
}
