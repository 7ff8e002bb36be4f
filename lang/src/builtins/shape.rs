//! Shapes and rearranging.

use smallvec::SmallVec;

use super::operands::{as_axes, as_axis, as_integers, as_positions, as_shape};
use super::{Builtin, MANY, as_index, parse};
use crate::diagnostic::Diagnostic;
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::primitives as p;
use crate::tensor::Shape;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("shape", "(shape x axis?)", "the shape as a list, or one extent", (1, 2), |i, a| {
        let t = i.tensor(&a[0])?;
        match a.get(1) {
            None => Ok(Value::list(t.shape().iter().map(|n| Value::Int(*n as i64)).collect())),
            Some(axis) => {
                let axis = as_axis(as_index(axis, "an axis")?, t.ty().rank(), t.ty())?;
                Ok(Value::Int(t.shape()[axis] as i64))
            }
        }
    }),
    Builtin::new("ndim", "(ndim x)", "the number of axes", (1, 1), |i, a| {
        Ok(Value::Int(i.tensor(&a[0])?.ty().rank() as i64))
    }),
    Builtin::new("size", "(size x)", "the number of elements", (1, 1), |i, a| {
        Ok(Value::Int(i.tensor(&a[0])?.ty().count() as i64))
    }),
    Builtin::new("dtype", "(dtype x)", "the element type as a keyword", (1, 1), |i, a| {
        Ok(Value::Keyword(i.tensor(&a[0])?.ty().dtype.name().into()))
    }),
    Builtin::new(
        "reshape",
        "(reshape x shape)",
        "the same elements under another shape; one extent may be -1",
        (2, MANY),
        reshape,
    ),
    Builtin::new("transpose", "(transpose x permutation?)", "axes reversed or permuted", (1, 2), transpose),
    Builtin::new("tr", "(tr x permutation?)", "the same as transpose", (1, 2), transpose),
    Builtin::new("expand-dims", "(expand-dims x axis)", "a new axis of extent 1", (2, 2), |i, a| {
        let t = i.tensor(&a[0])?;
        let axis = as_axis(as_index(&a[1], "an axis")?, t.ty().rank() + 1, t.ty())?;
        let mut shape: Shape = t.shape().into();
        shape.insert(axis, 1);
        Ok(Value::from(i.reshape(&t, &shape)?))
    }),
    Builtin::new("squeeze", "(squeeze x :axis a)", "without axes of extent 1", (1, 3), |i, a| {
        let parsed = parse(a, &["axis"], &[])?;
        let [x] = parsed.positional.as_slice() else { return fail("squeeze takes one tensor") };
        let t = i.tensor(x)?;
        let axes = match parsed.option("axis") {
            Some(axis) => as_axes(Some(axis), t.ty())?,
            None => (0..t.ty().rank()).filter(|a| t.shape()[*a] == 1).collect(),
        };
        if let Some(axis) = axes.iter().find(|a| t.shape()[**a] != 1) {
            return fail(format!("axis {axis} of {} is not of extent 1", t.ty()));
        }
        let shape: Shape = (0..t.ty().rank()).filter(|a| !axes.contains(a)).map(|a| t.shape()[a]).collect();
        Ok(Value::from(i.reshape(&t, &shape)?))
    }),
    Builtin::new("broadcast-to", "(broadcast-to x shape)", "x repeated to a shape", (2, MANY), |i, a| {
        let t = i.tensor(&a[0])?;
        let shape = as_shape(&a[1..].iter().collect::<Vec<_>>())?;
        Ok(Value::from(i.broadcast_to(&t, &shape)?))
    }),
    Builtin::new(
        "stack",
        "(stack xs :axis a)",
        "tensors of one shape joined along a new axis",
        (1, MANY),
        |i, a| {
            let parsed = parse(a, &["axis"], &[])?;
            let items = match parsed.positional.as_slice() {
                [one] => i.sequence(one)?,
                many => many.iter().map(|v| (*v).clone()).collect(),
            };
            let axis = parsed.option("axis").map_or(Ok(0), |v| as_index(v, ":axis"))?;
            stack(i, &items, axis)
        },
    ),
    Builtin::new(
        "concat",
        "(concat a b ... :axis a)",
        "lists, strings or tensors one after the other",
        (1, MANY),
        concat,
    ),
    Builtin::new(
        "slice",
        "(slice x start end)",
        "positions start to end along axis 0, negative from the end",
        (2, 3),
        slice,
    ),
    Builtin::new(
        "scatter-add",
        "(scatter-add x i v)",
        "x with the rows v added at indices i",
        (3, 3),
        |i, a| {
            let t = i.tensor(&a[0])?;
            if t.ty().rank() == 0 {
                return fail(format!("scatter-add wants rows to add to, got {}", a[0].describe()));
            }
            let indices = as_positions(i, &a[1], t.shape()[0])?;
            let v = i.tensor(&a[2])?;
            let v = i.convert(&v, t.ty().dtype)?;
            let mut shape: Shape = indices.shape().into();
            shape.extend(t.shape()[1..].iter().copied());
            let v = i.broadcast_to(&v, &shape)?;
            Ok(Value::from(i.op(p::ScatterAdd, &[&t, &indices, &v])?))
        },
    ),
];

fn reshape(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let t = interp.tensor(&args[0])?;
    let numbers = match &args[1..] {
        [one] => as_integers(one, "a shape")?,
        many => many.iter().map(|v| as_index(v, "a shape")).collect::<Eval<Vec<i64>>>()?,
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
    let permutation: Shape = match args.get(1) {
        Some(list) => as_integers(list, "a permutation")?
            .into_iter()
            .map(|a| as_axis(a, rank, t.ty()))
            .collect::<Eval<_>>()?,
        None => (0..rank).rev().collect(),
    };
    if permutation.iter().copied().eq(0..rank) {
        return Ok(Value::from(t));
    }
    if (0..rank).any(|axis| !permutation.contains(&axis)) || permutation.len() != rank {
        return Err(Diagnostic::error(format!("a permutation names each axis of {} once", t.ty()))
            .help(format!("its axes are 0 to {}; without a permutation they are reversed", rank.max(1) - 1))
            .into());
    }
    Ok(Value::from(interp.op(p::Transpose { permutation }, &[&t])?))
}

/// Tensors or numbers of one shape joined along a new axis.
pub(super) fn stack(interp: &mut Interp, items: &[Value], axis: i64) -> Eval<Value> {
    let Some((first, rest)) = items.split_first() else { return fail("stack wants at least one tensor") };
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

fn concat(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &[])?;
    match parsed.positional.first() {
        Some(Value::Str(_)) => {
            let mut text = String::new();
            for part in &parsed.positional {
                let Value::Str(s) = part else {
                    return fail(format!("concat joins strings with strings, got {}", part.describe()));
                };
                text.push_str(s);
            }
            Ok(Value::text(text))
        }
        Some(Value::List(first)) => {
            // A list of tensors alone joins them; several lists are chained.
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
            let mut items = Vec::new();
            for part in &parsed.positional {
                items.extend(interp.sequence(part)?);
            }
            Ok(Value::list(items))
        }
        _ => concat_tensors(interp, &parsed.positional, parsed.option("axis")),
    }
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

fn slice(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let start = as_index(&args[1], "the start of a slice")?;
    let end = args.get(2).map_or(Ok(i64::MAX), |v| as_index(v, "the end of a slice"))?;
    let clip = |n: usize| {
        let clip = |i: i64| if i < 0 { (i + n as i64).max(0) } else { i.min(n as i64) } as usize;
        (clip(start), clip(end).max(clip(start)))
    };
    match &args[0] {
        Value::List(list) => {
            let (start, end) = clip(list.items.len());
            Ok(Value::list(list.items[start..end].to_vec()))
        }
        Value::Str(s) => {
            let chars: SmallVec<[char; 32]> = s.chars().collect();
            let (start, end) = clip(chars.len());
            Ok(Value::text(chars[start..end].iter().collect::<String>()))
        }
        other => {
            let t = interp.tensor(other)?;
            if t.ty().rank() == 0 {
                return fail("a scalar has no axis to slice");
            }
            Ok(Value::from(interp.slice_axis(&t, 0, start, end)?))
        }
    }
}
