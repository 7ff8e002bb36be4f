//! Tensor rearrangement: joining, splitting, repeating, reversing.

use smallvec::SmallVec;

use super::operands::{as_axes, as_axis, as_integers, as_size};
use super::shape::expect_broadcast;
use super::text::check_text;
use super::{Builtin, Parsed, VARIADIC, as_index, parse};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "flip",
        "(flip x :axis a)",
        "the elements in reverse order along an axis, a list of axes, or all of them; of a list or a string, its items",
        (1, 3),
        |i, a| {
            let parsed = parse(a, &["axis"], &[])?;
            let [x] = parsed.exactly()?;
            if matches!(x, Value::List(_) | Value::Str(_)) {
                only_axis(&parsed, "flip", x)?;
                return super::list::reverse(i, x);
            }
            let t = i.tensor(x)?;
            let axes = as_axes(parsed.option("axis"), t.ty())?;
            Ok(Value::from(if axes.is_empty() { t } else { i.op(p::Reverse { axes }, &[&t])? }))
        },
    )
    .examples(
        "(flip [1 2 3]) ;=> [3 2 1]\n(flip [[1 2] [3 4]] :axis 1) ;=> [[2 1] [4 3]]\n(flip '[1 :a]) ;=> '[:a 1]\n\
         (flip '[1 2] :axis 1) ;=> error: has one axis",
    ),
    Builtin::new(
        "roll",
        "(roll x shift :axis a)",
        "the elements moved on by shift places, those beyond the end coming in again at the start\n\
         without :axis the flattened elements move; lists give a shift for each axis",
        (2, 4),
        roll,
    )
    .examples("(roll [1 2 3 4] 1) ;=> [4 1 2 3]\n(roll [[1 2] [3 4]] -1 :axis 0) ;=> [[3 4] [1 2]]"),
    Builtin::new(
        "tile",
        "(tile x counts)",
        "copies of x side by side: as many along each axis as counts says, from the last",
        (2, VARIADIC),
        tile,
    )
    .examples("(tile [1 2] 2) ;=> [1 2 1 2]\n(tile [1 2] '[2 2]) ;=> [[1 2 1 2] [1 2 1 2]]"),
    Builtin::new(
        "pad",
        "(pad x widths :value v)",
        "a margin around x, of zeros or of :value\n\
         widths is a number for all sides, [before after] for all axes, or one such pair for each axis",
        (2, 4),
        pad,
    )
    .examples(
        "(pad [1 2] 1) ;=> [0 1 2 0]\n(pad [1 2] [0 2] :value 9) ;=> [1 2 9 9]\n\
         (pad [[1 2]] '[[1 0] [0 1]]) ;=> [[0 0 0] [1 2 0]]\n(pad [1 2] -1) ;=> error: must not be negative",
    ),
    Builtin::new(
        "stack",
        "(stack xs :axis a)",
        "tensors or numbers of one shape joined along a new axis; given as a list or one by one",
        (1, VARIADIC),
        |i, a| {
            let parsed = parse(a, &["axis"], &[])?;
            let items = match parsed.positional.as_slice() {
                [one] => i.sequence(one)?,
                many => many.iter().map(|v| (*v).clone()).collect(),
            };
            let axis = parsed.option("axis").map_or(Ok(0), |v| as_index(v, ":axis"))?;
            stack(i, &items, axis)
        },
    )
    .examples(
        "(stack [1 2] [3 4]) ;=> [[1 2] [3 4]]\n(stack (list [1 2] [3 4]) :axis 1) ;=> [[1 3] [2 4]]\n\
         (stack [1 2] [3]) ;=> error: stack joins tensors of one shape",
    ),
    Builtin::new(
        "concat",
        "(concat a b ... :axis a)",
        "lists, strings or tensors one after the other; tensors along axis 0 or :axis, also given as one list\n\
         with another axis than 0, lists are joined item by item along the axis before it",
        (1, VARIADIC),
        concat,
    )
    .examples(
        "(concat [1 2] [3]) ;=> [1 2 3]\n(concat [[1] [2]] [[3] [4]] :axis 1) ;=> [[1 3] [2 4]]\n\
         (concat \"ab\" \"c\") ;=> \"abc\"\n(concat '[1 :a] '[2]) ;=> '[1 :a 2]\n\
         (concat '[[1] [2]] '[[3] [:a]] :axis 1) ;=> '[[1 3] [2 :a]]\n\
         (concat [[1 2]] [3]) ;=> error: cannot join",
    ),
    Builtin::new(
        "tensor-split",
        "(tensor-split x n :axis a)",
        "a list of n parts along axis 0 or :axis, the first ones longer by 1 where it does not divide\n\
         a list in place of n says where the parts after the first begin",
        (2, 4),
        tensor_split,
    )
    .examples(
        "(tensor-split (arange 4) 2) ;=> (list [0 1] [2 3])\n\
         (map len (tensor-split (arange 5) 3)) ;=> '[2 2 1]\n\
         (tensor-split [1 2 3] '[1]) ;=> (list [1] [2 3])",
    ),
    Builtin::new(
        "append-and-roll",
        "(append-and-roll x v)",
        "x without its first entry and with v at the end: a window that moves on",
        (2, 2),
        |i, a| {
            let t = i.tensor(&a[0])?;
            if t.ty().rank() == 0 || t.shape()[0] == 0 {
                return fail(format!("append-and-roll wants entries to move, got {}", a[0].describe()));
            }
            let v = i.tensor(&a[1])?;
            expect_broadcast(&v, &t.shape()[1..], "append-and-roll")?;
            let (t, v) = i.promote(&t, &v)?;
            let v = i.broadcast_to(&v, &t.shape()[1..])?;
            let row: Shape = std::iter::once(1).chain(t.shape()[1..].iter().copied()).collect();
            let (v, rest) = (i.reshape(&v, &row)?, i.slice_axis(&t, 0, 1, i64::MAX)?);
            i.op(p::Concatenate { axis: 0 }, &[&rest, &v]).map(Value::from)
        },
    )
    .examples("(append-and-roll [1 2 3] 4) ;=> [2 3 4]\n(append-and-roll [[1 2] [3 4]] [5 6]) ;=> [[3 4] [5 6]]"),
];

fn roll(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    let [x, shift] = parsed.exactly()?;
    let t = interp.tensor(x)?;
    let Some(axes) = parsed.option("axis").filter(|v| !matches!(v, Value::Nil)) else {
        let flat = interp.reshape(&t, &[t.ty().count()])?;
        let rolled = roll_axis(interp, &flat, shift, 0)?;
        return interp.reshape(&rolled, t.shape()).map(Value::from);
    };
    let axes = as_integers(axes, ":axis")?;
    let shifts: Vec<Value> = match shift {
        Value::Tensor(s) if s.ty().rank() == 0 => vec![shift.clone()],
        Value::Tensor(_) | Value::List(_) => interp.sequence(shift)?,
        number => vec![number.clone()],
    };
    if shifts.len() != axes.len() {
        return Err(Diagnostic::error(format!("roll got {} shifts for {} axes", shifts.len(), axes.len()))
            .help("give one shift for each axis: (roll x '[1 2] :axis '[0 1])")
            .into());
    }
    let mut rolled = t.clone();
    for (axis, shift) in axes.iter().zip(&shifts) {
        let axis = as_axis(*axis, t.ty().rank(), t.ty())?;
        rolled = roll_axis(interp, &rolled, shift, axis)?;
    }
    Ok(Value::from(rolled))
}

/// Rolls along one axis; an unknown shift becomes a gather.
fn roll_axis(interp: &mut Interp, t: &Tensor, shift: &Value, axis: usize) -> Eval<Tensor> {
    let n = t.shape()[axis];
    if n == 0 {
        return Ok(t.clone());
    }
    if let Value::Tensor(s) = shift
        && s.concrete().is_none()
        && s.ty().rank() == 0
        && s.ty().dtype != DType::Bool
    {
        let shift = interp.convert(s, DType::I32)?;
        let shift = interp.broadcast_to(&shift, &[n])?;
        let numbers = |from: i32| {
            Tensor::host(HostTensor::new([n].as_slice(), (from..from + n as i32).collect::<Vec<_>>()))
        };
        let full = |x: usize| Tensor::host(HostTensor::filled(DType::I32, [n].as_slice(), x as f64));
        // (i - shift) modulo n, with the sign that `rem` keeps.
        let moved = interp.op(p::Binary(p::Sub), &[&numbers(0), &shift])?;
        let rest = interp.op(p::Binary(p::Rem), &[&moved, &full(n)])?;
        return interp.take(t, axis, &Value::Tensor(rest));
    }
    let shift = as_index(shift, "a shift")?.rem_euclid(n as i64);
    if shift == 0 {
        return Ok(t.clone());
    }
    let (start, end) =
        (interp.slice_axis(t, axis, -shift, i64::MAX)?, interp.slice_axis(t, axis, 0, -shift)?);
    interp.op(p::Concatenate { axis }, &[&start, &end])
}

fn tile(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let counts = match &args[1..] {
        [one] => as_integers(one, "a count")?,
        many => many.iter().map(|v| as_index(v, "a count")).collect::<Eval<Vec<i64>>>()?,
    };
    if let Some(n) = counts.iter().find(|n| **n < 0) {
        return fail(format!("a count of copies must not be negative, got {n}"));
    }
    let rank = t.ty().rank().max(counts.len());
    let at = |i: usize, len: usize| (i + len).checked_sub(rank);
    // Each axis becomes (copies, entries), of which the first is broadcast.
    let (mut parted, mut full, mut shape) = (Shape::new(), Shape::new(), Shape::new());
    for i in 0..rank {
        let count = at(i, counts.len()).map_or(1, |i| counts[i] as usize);
        let extent = at(i, t.ty().rank()).map_or(1, |i| t.shape()[i]);
        parted.extend([1, extent]);
        full.extend([count, extent]);
        let Some(product) = count.checked_mul(extent) else {
            return fail(format!("{count} copies of {} are too many", t.ty()));
        };
        shape.push(product);
    }
    let parted = interp.reshape(&t, &parted)?;
    super::create::checked_count(&full)?;
    let stretched = interp.broadcast_to(&parted, &full)?;
    interp.reshape(&stretched, &shape).map(Value::from)
}

fn pad(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["value"], &[])?;
    let [x, widths] = parsed.exactly()?;
    let t = interp.tensor(x)?;
    let (low, high) = margins(interp, widths, &t)?;
    let value = interp.tensor(parsed.option("value").unwrap_or(&Value::Int(0)))?;
    if value.ty().rank() > 0 {
        return fail(format!(":value is one number, got {}", value.ty()));
    }
    let t = interp.strong(&t)?;
    // A weak zero adapts to every dtype.
    let value = if parsed.option("value").is_none() { interp.convert(&value, t.ty().dtype)? } else { value };
    let (t, value) = interp.promote(&t, &value)?;
    interp.op(p::Pad { low, high }, &[&t, &value]).map(Value::from)
}

/// Padding before and after each axis.
fn margins(interp: &mut Interp, widths: &Value, t: &Tensor) -> Eval<(Shape, Shape)> {
    let rank = t.ty().rank();
    let wrong = |found: &str| {
        Diagnostic::error(format!("the widths do not fit {}: {found}", t.ty())).help(
            "give one number, a pair [before after] for all axes, or one pair for each axis: '[[1 1] [0 2]]",
        )
    };
    let nested = match widths {
        Value::List(list) => list.items.iter().any(|v| match v {
            Value::Int(_) | Value::Float(_) => false,
            // A number that is computed.
            Value::Tensor(v) => v.ty().rank() > 0,
            _ => true,
        }),
        Value::Tensor(w) => w.ty().rank() > 1,
        _ => false,
    };
    let mut pairs: Vec<[i64; 2]> = Vec::with_capacity(rank);
    if nested {
        for pair in interp.sequence(widths)? {
            match as_integers(&pair, "a width")?.as_slice() {
                [before, after] => pairs.push([*before, *after]),
                other => return Err(wrong(&format!("an axis has {} widths, not 2", other.len())).into()),
            }
        }
    } else {
        let pair = match as_integers(widths, "a width")?.as_slice() {
            [both] => [*both, *both],
            [before, after] => [*before, *after],
            other => return Err(wrong(&format!("got {} numbers", other.len())).into()),
        };
        pairs.resize(rank, pair);
    }
    if pairs.len() != rank {
        return Err(wrong(&format!("got {} pairs for {rank} axes", pairs.len())).into());
    }
    if let Some(n) = pairs.iter().flatten().find(|n| **n < 0) {
        return fail(format!("a width must not be negative, got {n}"));
    }
    let mut padded = Shape::new();
    for ([before, after], extent) in pairs.iter().zip(t.shape()) {
        match (*before as usize).checked_add(*after as usize).and_then(|n| n.checked_add(*extent)) {
            Some(n) => padded.push(n),
            None => return fail("the widths are too large"),
        }
    }
    super::create::checked_count(&padded)?;
    let side = |i: usize| pairs.iter().map(|pair| pair[i] as usize).collect();
    Ok((side(0), side(1)))
}

/// Tensors or numbers of one shape joined along a new axis.
pub fn stack(interp: &mut Interp, items: &[Value], axis: i64) -> Eval<Value> {
    let Some((first, rest)) = items.split_first() else {
        return Err(Diagnostic::error("stack wants at least one tensor, got none")
            .help("the shape of nothing is not known; (zeros '[0 3]) makes an empty tensor")
            .into());
    };
    let mut common = interp.tensor(first)?;
    let mut tensors = vec![common.clone()];
    for item in rest {
        let t = interp.tensor(item)?;
        if t.shape() != common.shape() {
            return Err(Diagnostic::error(format!(
                "stack joins tensors of one shape, got {} and {}",
                common.ty(),
                t.ty()
            ))
            .help("concat joins tensors along an axis that they have")
            .into());
        }
        (common, _) = interp.promote(&common, &t)?;
        tensors.push(t);
    }
    let mut shape: Shape = common.shape().into();
    let at = as_axis(axis, shape.len() + 1, common.ty())?;
    shape.insert(at, 1);
    let mut rows = Vec::with_capacity(tensors.len());
    for t in &tensors {
        let t = interp.convert(t, common.ty().strong_dtype())?;
        rows.push(interp.reshape(&t, &shape)?);
    }
    join(interp, &rows, at)
}

fn join(interp: &mut Interp, tensors: &[Tensor], axis: usize) -> Eval<Value> {
    if let [one] = tensors {
        return Ok(Value::from(one.clone()));
    }
    let refs: Vec<&Tensor> = tensors.iter().collect();
    Ok(Value::Tensor(interp.op(p::Concatenate { axis }, &refs)?))
}

/// Fails above the maximum length of a list, so that repeated doubling ends in an error.
fn check_items(count: usize) -> Eval<()> {
    const MAX_ITEMS: usize = 1 << 24;
    if count <= MAX_ITEMS {
        return Ok(());
    }
    Err(Diagnostic::error(format!("a list of {count} items is too long: {MAX_ITEMS} are the most"))
        .help("a tensor holds more numbers, in less memory")
        .into())
}

fn concat(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    match parsed.positional.first() {
        Some(text @ Value::Str(_)) => {
            only_axis(&parsed, "concat", text)?;
            let mut text = String::new();
            for part in &parsed.positional {
                let Value::Str(s) = part else {
                    return Err(Diagnostic::error(format!(
                        "concat joins strings with strings, got {}",
                        part.describe()
                    ))
                    .help("(str a b) makes a text of anything")
                    .into());
                };
                check_text(text.len() + s.len())?;
                text.push_str(s);
            }
            Ok(Value::text(text))
        }
        Some(Value::List(first)) => {
            // A single list of tensors is joined; several lists are concatenated.
            if parsed.positional.len() == 1
                && first.items.iter().all(|v| matches!(v, Value::Tensor(t) if t.ty().rank() > 0))
                && !first.items.is_empty()
            {
                return concat_tensors(
                    interp,
                    &first.items.iter().collect::<Vec<_>>(),
                    parsed.option("axis"),
                );
            }
            let axis = parsed.option("axis").map_or(Ok(0), |v| as_index(v, ":axis"))?;
            concat_lists(interp, &parsed.positional, axis)
        }
        _ => concat_tensors(interp, &parsed.positional, parsed.option("axis")),
    }
}

/// Concatenated lists; along a later axis, item by item.
fn concat_lists(interp: &mut Interp, parts: &[&Value], axis: i64) -> Eval<Value> {
    if axis < 0 {
        return Err(Diagnostic::error(format!("concat joins lists along axis 0 or a later one, got {axis}"))
            .help("lists may be uneven, so their axes are counted from the first; (tensor xs) makes a tensor of a list")
            .into());
    }
    if axis == 0
        && let [Value::List(first), others @ ..] = parts
    {
        let others = others.iter().map(|part| interp.sequence(part)).collect::<Eval<Vec<_>>>()?;
        check_items(others.iter().map(Vec::len).fold(first.items.len(), usize::saturating_add))?;
        return Ok(Value::from(first.items.and(&others.concat())));
    }
    let columns = parts.iter().map(|part| interp.sequence(part)).collect::<Eval<Vec<_>>>()?;
    if axis == 0 {
        check_items(columns.iter().map(Vec::len).fold(0, usize::saturating_add))?;
        return Ok(Value::list(columns.concat()));
    }
    let lengths: Vec<usize> = columns.iter().map(Vec::len).collect();
    if lengths.iter().any(|n| *n != lengths[0]) {
        return Err(Diagnostic::error(format!(
            "concat along axis {axis} wants lists of one length, got {lengths:?}"
        ))
        .help("without :axis the lists are joined one after the other")
        .into());
    }
    let joined = (0..lengths[0]).map(|k| {
        let items: Vec<&Value> = columns.iter().map(|column| &column[k]).collect();
        match items.as_slice() {
            [Value::Tensor(t), ..] if t.ty().rank() > 0 => {
                concat_tensors(interp, &items, Some(&Value::Int(axis - 1)))
            }
            items => crate::stack::maybe_grow(|| concat_lists(interp, items, axis - 1)),
        }
    });
    joined.collect::<Eval<Vec<Value>>>().map(Value::list)
}

/// Fails if `:axis` is not 0, the only axis of a list or string.
pub(super) fn only_axis(parsed: &Parsed, name: &str, xs: &Value) -> Eval<()> {
    let axis = parsed.option("axis").filter(|v| !matches!(v, Value::Nil)).map(|v| as_index(v, ":axis"));
    match axis.transpose()? {
        None | Some(0 | -1) => Ok(()),
        Some(axis) => fail(format!("{name} along axis {axis}: {} has one axis, 0", xs.describe())),
    }
}

/// `t` with `entries` appended along axis 0.
pub(super) fn append(interp: &mut Interp, t: &Tensor, entries: &[Value]) -> Eval<Value> {
    let row: Shape = t.shape()[1..].into();
    let wanted: Shape = std::iter::once(1).chain(row.iter().copied()).collect();
    let mut common = t.clone();
    let mut parts = vec![t.clone()];
    for entry in entries {
        let entry = interp.tensor(entry)?;
        if entry.shape() != row.as_slice() {
            return Err(Diagnostic::error(format!(
                "append adds an entry to {}, which {} is not",
                t.ty(),
                entry.ty()
            ))
            .help("an entry has the shape of the rows along axis 0; (concat a b) joins two tensors")
            .into());
        }
        (common, _) = interp.promote(&common, &entry)?;
        parts.push(interp.reshape(&entry, &wanted)?);
    }
    for part in &mut parts {
        *part = interp.convert(part, common.ty().strong_dtype())?;
    }
    join(interp, &parts, 0)
}

fn concat_tensors(interp: &mut Interp, parts: &[&Value], axis: Option<&Value>) -> Eval<Value> {
    let Some((first, rest)) = parts.split_first() else { return fail("concat wants something to join") };
    let mut common = interp.tensor(first)?;
    let mut tensors = vec![common.clone()];
    for part in rest {
        let t = interp.tensor(part)?;
        (common, _) = interp.promote(&common, &t)?;
        tensors.push(t);
    }
    if common.ty().rank() == 0 {
        return Err(Diagnostic::error("concat joins tensors along an axis, and numbers have none")
            .help("(stack a b) makes a vector of numbers, and so does [a b]")
            .into());
    }
    let axis = as_axis(axis.map_or(Ok(0), |a| as_index(a, ":axis"))?, common.ty().rank(), common.ty())?;
    let fits = |t: &Tensor| {
        let same = |i: usize| i == axis || t.shape()[i] == common.shape()[i];
        t.ty().rank() == common.ty().rank() && (0..common.ty().rank()).all(same)
    };
    if let Some(other) = tensors.iter().find(|t| !fits(t)) {
        return Err(Diagnostic::error(format!(
            "concat cannot join {} and {} along axis {axis}",
            common.ty(),
            other.ty()
        ))
        .help("all extents but that of this axis must be equal; :axis chooses another, stack makes a new one")
        .into());
    }
    for t in &mut tensors {
        *t = interp.convert(t, common.ty().strong_dtype())?;
    }
    join(interp, &tensors, axis)
}

/// As NumPy's `array_split`.
fn tensor_split(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    let [x, parts] = parsed.exactly()?;
    let t = interp.tensor(x)?;
    let axis =
        as_axis(parsed.option("axis").map_or(Ok(0), |v| as_index(v, ":axis"))?, t.ty().rank(), t.ty())?;
    let extent = t.shape()[axis];
    let mut bounds: SmallVec<[i64; 8]> = SmallVec::from_elem(0, 1);
    match parts {
        Value::List(_) => bounds.extend(as_integers(parts, "where a part begins")?),
        Value::Tensor(p) if p.ty().rank() > 0 => bounds.extend(as_integers(parts, "where a part begins")?),
        number => {
            let n = as_size(number, "the number of parts")?;
            if n == 0 {
                return fail("tensor-split wants at least one part, got 0");
            }
            super::create::checked_count(&[n])?;
            let (width, longer) = (extent / n, extent % n);
            bounds.extend((1..n).map(|i| (i * width + i.min(longer)) as i64));
        }
    }
    bounds.push(extent as i64);
    let cut = bounds.windows(2).map(|w| interp.slice_axis(&t, axis, w[0], w[1]).map(Value::from));
    cut.collect::<Eval<Vec<Value>>>().map(Value::list)
}
