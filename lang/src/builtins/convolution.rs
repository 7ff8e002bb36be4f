//! Building blocks of the standard library's convolutions and poolings: strides, padding, sliding windows.

use smallvec::SmallVec;

use super::Builtin;
use super::operands::as_integers;
use crate::eval::{Eval, Interp, Signal, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Number, Shape, TensorType};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "-convolution",
        "(-convolution x kernel axes stride padding dilation groups spread)",
        "the convolution of [batch, space.., channels] over so many axes; the entries of x are `spread` apart, with zeros between \
         them, and those of the kernel `dilation`",
        (8, 8),
        convolution,
    ),
    Builtin::new(
        "-windows",
        "(-windows x window stride padding fill)",
        "[batch, places.., window, channels]: the elements under a window at each of its places; the margin is \
         filled with zeros, or with the lowest number for :lowest",
        (5, 5),
        windows,
    ),
];

/// Maximum size of a window, stride or padding; sums and products of such sizes stay far within 64 bits.
const MAX_SIZE: i64 = i32::MAX as i64;

fn convolution(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let n = super::as_index(&args[2], "the number of axes")?.unsigned_abs() as usize;
    let (x, kernel) = (interp.tensor(&args[0])?, interp.tensor(&args[1])?);
    let layout = if n == 1 { "length" } else { "height width" };
    if x.ty().rank() != n + 2 {
        return Err(wrong_layout(x.ty(), &format!("conv{n}d"), layout));
    }
    if kernel.ty().rank() != n + 2 {
        return Err(Diagnostic::error(format!(
            "the kernel of conv{n}d has the shape [{layout} channels features], got {}",
            kernel.ty()
        ))
        .into());
    }
    let (x, kernel) = interp.promote(&x, &kernel)?;
    let [strides, dilation, spread] =
        [(3, ":stride"), (5, ":dilation"), (7, ":stride")].map(|(i, name)| sizes(&args[i], n, name));
    let (strides, kernel_dilation, input_dilation) = (strides?, dilation?, spread?);
    let apart = |extents: &[usize], by: &[usize]| -> Shape {
        extents.iter().zip(by).map(|(extent, by)| p::dilated(*extent, *by) as usize).collect()
    };
    let window = apart(&kernel.shape()[..n], &kernel_dilation);
    let space = apart(&x.shape()[1..=n], &input_dilation);
    let padding = margins(&args[4], &space, &window, &strides)?;
    check_fit(x.ty(), &space, &window, &padding)?;
    let groups = groups(&args[6], x.ty(), kernel.ty())?;
    let op = p::Convolution { strides, padding, input_dilation, kernel_dilation, groups };
    Ok(Value::from(interp.op(op, &[&x, &kernel])?))
}

/// The number of groups of channels, which divides channels and features.
fn groups(value: &Value, x: &TensorType, kernel: &TensorType) -> Eval<usize> {
    let groups = sizes(value, 1, ":groups")?[0];
    let [.., own, features] = kernel.shape[..] else { unreachable!("its rank was checked") };
    let channels = x.shape[x.rank() - 1];
    if groups == 1 || own.checked_mul(groups) == Some(channels) && features.is_multiple_of(groups) {
        return Ok(groups);
    }
    fail(format!(
        "{groups} groups of {channels} channels want a kernel [.. {} features], with as many features for each group, got {kernel}",
        channels / groups
    ))
}

fn windows(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let x = interp.tensor(&args[0])?;
    let n = match x.ty().rank() {
        3 => 1,
        4 => 2,
        _ => return Err(wrong_layout(x.ty(), "pooling", "height width")),
    };
    if x.ty().dtype == DType::Bool {
        return fail(format!("pooling wants numbers, got {}", x.ty()));
    }
    let window = sizes(&args[1], n, "the window")?;
    let strides = sizes(&args[2], n, ":stride")?;
    let padding = margins(&args[3], &x.shape()[1..=n], &window, &strides)?;
    check_fit(x.ty(), &x.shape()[1..=n], &window, &padding)?;
    let fill = match &args[4] {
        Value::Keyword(key) if *key == "lowest" => lowest(x.ty().dtype),
        _ => HostTensor::filled(x.ty().dtype, Shape::new(), 0.0),
    };
    let fill = Tensor::host(fill);
    let mut out = x;
    for axis in 0..n {
        // Each axis unfolded before has become two.
        out = unfold(interp, &out, 1 + 2 * axis, (window[axis], strides[axis]), padding[axis], &fill)?;
    }
    // [batch, (position, window).., channels] becomes [batch, positions.., windows.., channels].
    let last = 2 * n + 1;
    let order = std::iter::once(0).chain((0..n).map(|i| 1 + 2 * i)).chain((0..n).map(|i| 2 + 2 * i));
    let permutation: Shape = order.chain([last]).collect();
    let out = interp.op(p::Transpose { permutation }, &[&out])?;
    let mut shape: Shape = out.shape()[..=n].into();
    shape.push(window.iter().product());
    shape.push(out.shape()[last]);
    Ok(Value::from(interp.reshape(&out, &shape)?))
}

/// `t` with `axis` replaced by two: window positions, and the elements of each window.
fn unfold(
    interp: &mut Interp,
    t: &Tensor,
    axis: usize,
    (size, stride): (usize, usize),
    (low, high): (i64, i64),
    fill: &Tensor,
) -> Eval<Tensor> {
    let extent = t.shape()[axis] + (low + high) as usize;
    let places = (extent - size) / stride + 1;
    // Slices take whole strides, so there must be padding after the last position.
    let room = if size <= stride { places * stride } else { size - 1 + places * stride };
    let edge = |n: usize| {
        let mut edges = Shape::from_elem(0, t.ty().rank());
        edges[axis] = n;
        edges
    };
    let more = room.saturating_sub(extent);
    let mut padded = t.clone();
    if low + high > 0 || more > 0 {
        let op = p::Pad { low: edge(low as usize), high: edge(high as usize + more) };
        padded = interp.op(op, &[t, fill])?;
    }
    // The first `taken` of each `stride` elements from `start`.
    let mut cut = |start: usize, taken: usize| -> Eval<Tensor> {
        let mut limit: Shape = padded.shape().into();
        limit[axis] = start + places * stride;
        let part = interp.op(p::Slice { start: edge(start), limit }, &[&padded])?;
        let mut shape: Shape = part.shape().into();
        shape[axis] = places;
        shape.insert(axis + 1, stride);
        let part = interp.reshape(&part, &shape)?;
        if taken == stride {
            return Ok(part);
        }
        shape[axis + 1] = taken;
        interp.op(p::Slice { start: Shape::from_elem(0, shape.len()), limit: shape }, &[&part])
    };
    if size <= stride {
        return cut(0, size);
    }
    let parts = (0..size).map(|start| cut(start, 1)).collect::<Eval<Vec<Tensor>>>()?;
    let parts: Vec<&Tensor> = parts.iter().collect();
    interp.op(p::Concatenate { axis: axis + 1 }, &parts)
}

fn wrong_layout(x: &TensorType, who: &str, layout: &str) -> Signal {
    let d = Diagnostic::error(format!("{who} wants x of shape [batch {layout} channels], got {x}"));
    let help = match (x.rank(), layout) {
        (3, "height width") => {
            "one image is a batch of one: (expand-dims x 0); one channel: (expand-dims x -1)"
        }
        (2, "length") => "one sequence is a batch of one: (expand-dims x 0); one channel: (expand-dims x -1)",
        _ => "the batch comes first, the channels last",
    };
    d.help(help).into()
}

/// A number for all of `n` axes, or one for each; at least 1.
fn sizes(value: &Value, n: usize, wanted: &str) -> Eval<Shape> {
    let given = as_integers(value, wanted)?;
    if given.len() != n && given.len() != 1 || given.iter().any(|s| *s < 1 || *s > MAX_SIZE) {
        return fail(format!(
            "{wanted} is a positive whole number, or one for each of the {n} axes, not {}",
            super::repr(value)
        ));
    }
    Ok((0..n).map(|axis| given[axis.min(given.len() - 1)] as usize).collect())
}

/// Padding before and after each axis: `:valid` none; `:same` gives one result per stride (an odd element goes after,
/// as in TensorFlow and JAX); a number for all sides, or a pair per axis.
fn margins(
    value: &Value,
    space: &[usize],
    window: &[usize],
    strides: &[usize],
) -> Eval<SmallVec<[(i64, i64); 2]>> {
    let n = space.len();
    let same = |axis: usize| {
        let places = space[axis].div_ceil(strides[axis]).max(1);
        let total = ((places - 1) * strides[axis] + window[axis]).saturating_sub(space[axis]) as i64;
        (total / 2, total - total / 2)
    };
    let margins: Option<SmallVec<[(i64, i64); 2]>> = match value {
        Value::Keyword(key) if *key == "valid" => Some(SmallVec::from_elem((0, 0), n)),
        Value::Keyword(key) if *key == "same" => Some((0..n).map(same).collect()),
        Value::List(list) if list.items.len() == n => {
            let pair = |v: &Value| match as_integers(v, ":padding").ok()?.as_slice() {
                [low, high] => Some((*low, *high)),
                _ => None,
            };
            list.items.iter().map(pair).collect()
        }
        Value::Tensor(t) if t.shape() == [n, 2] => {
            let pairs = t.elements(":padding")?;
            Some((0..n).map(|i| (pairs.element_i64(2 * i), pairs.element_i64(2 * i + 1))).collect())
        }
        Value::Tensor(t) if t.ty().rank() > 0 => None,
        Value::Int(_) | Value::Float(_) | Value::Tensor(_) => {
            let side = super::as_index(value, ":padding")?;
            Some(SmallVec::from_elem((side, side), n))
        }
        _ => None,
    };
    let allowed = |m: &SmallVec<[(i64, i64); 2]>| {
        m.iter().all(|(low, high)| [low, high].into_iter().all(|side| (0..=MAX_SIZE).contains(side)))
    };
    margins.filter(allowed).ok_or_else(|| {
        Diagnostic::error(format!("expected :padding, got {}", super::repr(value)))
            .help(
                "padding is :valid (none), :same, a number for every side, or a pair [before after] for each axis: \
                 [[1 1] [0 2]]",
            )
            .into()
    })
}

/// Fails if the window is larger than the padded input.
fn check_fit(x: &TensorType, space: &[usize], window: &[usize], padding: &[(i64, i64)]) -> Eval<()> {
    for (axis, (size, (low, high))) in window.iter().zip(padding).enumerate() {
        let extent = space[axis] + (low + high) as usize;
        if *size > extent {
            let padded = if low + high > 0 { format!(" ({extent} with padding)") } else { String::new() };
            return Err(Diagnostic::error(format!(
                "a window of {size} does not fit into axis {} of {x}, which has {} entries{padded}",
                axis + 1,
                space[axis]
            ))
            .help(":padding :same makes room for it")
            .into());
        }
    }
    Ok(())
}

/// The neutral element of a maximum.
fn lowest(dtype: DType) -> HostTensor {
    let least = match dtype.bounds() {
        Some((least, _)) => Number::Int(least),
        None if dtype == DType::Bool => Number::Int(0),
        None => Number::Float(f64::NEG_INFINITY),
    };
    HostTensor::number(dtype, Shape::new(), least)
}
