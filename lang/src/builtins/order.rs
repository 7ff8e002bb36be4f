//! Sorting tensors and lists.

use std::cmp::Ordering;

use super::operands::{as_axis, as_size};
use super::{Builtin, Parsed, as_index, parse};
use crate::eval::{Eval, Interp, fail, positions};
use crate::program::{Tensor, Value};
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const TENSORS: &[Builtin] = &[
    Builtin::new(
        "argsort",
        "(argsort x :axis a :reverse)",
        "the positions that sort x: a tensor along :axis (by default the last), a list by value",
        (1, 5),
        argsort,
    )
    .examples("(argsort [3 1 2]) ;=> [1 2 0]\n(argsort [3 1 2] :reverse) ;=> [0 2 1]\n(argsort '[\"b\" \"a\"]) ;=> '[1 0]"),
    Builtin::new(
        "top_k",
        "(top_k x k)",
        "[values indices] of the k greatest along the last axis, the greatest first; of equal ones the first\n\
         NaN counts as greater than all numbers, as in sort; gradients flow through the values",
        (2, 2),
        |i, a| {
            let t = i.tensor(&a[0])?;
            let Some(axis) = t.ty().rank().checked_sub(1) else {
                return fail(format!("top_k wants a tensor with an axis, got {}", a[0].describe()));
            };
            let k = as_size(&a[1], "k")?;
            if k > t.shape()[axis] {
                return Err(Diagnostic::error(format!("top_k wants the {k} greatest of {}", t.ty()))
                    .help(format!("its last axis has {} entries", t.shape()[axis]))
                    .into());
            }
            let places = i.op(p::TopK { k }, &[&t])?;
            let values = if k == 0 { i.slice_axis(&t, axis, 0, 0)? } else { at_places(i, &t, &places)? };
            Ok(Value::list(vec![Value::from(values), Value::from(places)]))
        },
    )
    .examples("(top_k [1 5 3] 2) ;=> (list [5 3] [1 2])\n(top_k [1 2] 3) ;=> error: the 3 greatest"),
    Builtin::new(
        "unique",
        "(unique x)",
        "the elements of a tensor in ascending order, equal ones once; how many there are depends on them, so a function \
         that calls it is interpreted",
        (1, 1),
        unique,
    )
    .examples("(unique [3 1 3 2]) ;=> [1 2 3]\n(unique [[true true]]) ;=> [true]\n(unique '[\"a\"]) ;=> error: distinct"),
];

pub(super) const LISTS: &[Builtin] = &[Builtin::new(
    "sort",
    "(sort xs :key f :reverse :axis a)",
    "in ascending order, or descending with :reverse; equal ones keep their order\n\
     a list by value, or by f of each item: numbers, strings, or lists item by item\n\
     a tensor along :axis (by default the last), NaN last; with :key its rows by f of each",
    (1, 7),
    sort,
)
.examples(
    "(sort [3 1 2]) ;=> [1 2 3]\n(sort [[3 1] [2 4]] :axis 0) ;=> [[2 1] [3 4]]\n\
     (sort '[\"pear\" \"fig\"] :key len) ;=> '[\"fig\" \"pear\"]\n(sort '[2 3 1] :reverse) ;=> '[3 2 1]\n\
     (sort '[1 \"a\"]) ;=> error: cannot sort",
)];

/// The elements of `t` at places along its last axis, where `t` and `places` have the same other axes.
fn at_places(interp: &mut Interp, t: &Tensor, places: &Tensor) -> Eval<Tensor> {
    let flat = interp.reshape(t, &[t.ty().count()])?;
    let (Some(extent), Some(k)) = (t.shape().last(), places.shape().last()) else {
        return fail(format!("{} and {} have no axis", t.ty(), places.ty()));
    };
    let shape: Shape = [places.ty().count() / k, *k].as_slice().into();
    let row = interp.iota(p::Iota { dtype: DType::I32, shape: shape.clone(), dimension: 0 })?;
    let extent = Tensor::host(HostTensor::filled(DType::I32, shape.as_slice(), *extent as f64));
    let first = interp.op(p::Binary(p::Mul), &[&row, &extent])?;
    let first = interp.reshape(&first, places.shape())?;
    let places = interp.op(p::Binary(p::Add), &[&first, places])?;
    interp.op(p::GatherRows, &[&flat, &places])
}

fn sort(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis", "key"], &["reverse"])?;
    let [xs] = parsed.exactly()?;
    let reverse = parsed.flag("reverse");
    let key = parsed.option("key").filter(|f| !matches!(f, Value::Nil));
    if let (Value::Tensor(t), None) = (xs, key) {
        let axis = axis_of(&parsed, t)?;
        let t = interp.strong(t)?;
        return Ok(Value::from(sorted(interp, &t, axis, reverse)?.swap_remove(0)));
    }
    if parsed.option("axis").is_some() {
        return fail(
            ":axis sorts a tensor along an axis; a list has none, and with :key whole rows are sorted",
        );
    }
    let items = interp.sequence(xs)?;
    let keys = match key {
        Some(f) => interp.in_loop(items.len() as u64, |i| {
            items.iter().map(|item| i.call(f, [item.clone()])).collect::<Eval<Vec<_>>>()
        })?,
        None => items.clone(),
    };
    if let Value::Tensor(t) = xs {
        // Sort tensor rows by tensor keys, which need not be known.
        let keys = super::arrange::stack(interp, &keys, 0)?;
        let keys = interp.tensor(&keys)?;
        if keys.ty().rank() != 1 {
            return fail(format!("the key of each row must be one number, got {}", keys.ty()));
        }
        let order = sorted(interp, &keys, 0, reverse)?.swap_remove(1);
        return interp.op(p::GatherRows, &[t, &order]).map(Value::from);
    }
    let order = order(&keys, reverse)?;
    let items: Vec<Value> = order.into_iter().map(|i| items[i].clone()).collect();
    Ok(match xs {
        Value::Str(_) => Value::text(items.iter().map(super::show).collect::<String>()),
        _ => Value::list(items),
    })
}

fn unique(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    if let other @ (Value::List(_) | Value::Str(_)) = &args[0] {
        return Err(Diagnostic::error(format!("unique takes a tensor, got {}", other.describe()))
            .help("(distinct xs) does it for lists, and keeps their order; (tensor xs) makes a tensor of a list")
            .into());
    }
    let t = interp.tensor(&args[0])?;
    let flat = interp.reshape(&t, &[t.ty().count()])?;
    let sorted = sorted(interp, &flat, 0, false)?.swap_remove(0);
    let host = sorted.elements("the number of elements that differ")?;
    let same = |i: usize, k: usize| {
        let (a, b) = (host.element_f64(i), host.element_f64(k));
        (a == b && host.element_i64(i) == host.element_i64(k)) || (a.is_nan() && b.is_nan())
    };
    let first = (0..host.count()).filter(|i| *i == 0 || !same(*i, *i - 1)).map(|i| i as i32);
    let first: Vec<i32> = first.collect();
    let first = Tensor::host(HostTensor::new([first.len()].as_slice(), first));
    interp.op(p::GatherRows, &[&sorted, &first]).map(Value::from)
}

fn argsort(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis"], &["reverse"])?;
    let [xs] = parsed.exactly()?;
    let reverse = parsed.flag("reverse");
    if let Value::Tensor(t) = xs {
        let axis = axis_of(&parsed, t)?;
        return Ok(Value::from(sorted(interp, t, axis, reverse)?.swap_remove(1)));
    }
    if parsed.option("axis").is_some() {
        return fail(":axis sorts a tensor along an axis; a list has none");
    }
    let order = order(&interp.sequence(xs)?, reverse)?;
    Ok(Value::list(order.into_iter().map(|i| Value::Int(i as i64)).collect()))
}

fn axis_of(parsed: &Parsed, t: &Tensor) -> Eval<usize> {
    if t.ty().rank() == 0 {
        return fail(format!("a list or a tensor with an axis is sorted, not the scalar {}", t.ty()));
    }
    let axis = parsed.option("axis").map_or(Ok(-1), |v| as_index(v, ":axis"))?;
    as_axis(axis, t.ty().rank(), t.ty())
}

/// Stable sort along `axis`: the sorted elements, and their original positions.
fn sorted(interp: &mut Interp, t: &Tensor, axis: usize, reverse: bool) -> Eval<Vec<Tensor>> {
    let truths = t.ty().dtype == DType::Bool;
    let t = if truths { interp.convert(t, DType::I32)? } else { t.clone() };
    let places = positions(&t, axis, interp.span)?;
    // Descending and stable: reverse, sort ascending, reverse again.
    let back = |interp: &mut Interp, t: &Tensor| {
        if reverse { interp.op(p::Reverse { axes: [axis].as_slice().into() }, &[t]) } else { Ok(t.clone()) }
    };
    let (keys, places) = (back(interp, &t)?, back(interp, &places)?);
    let both = interp.op_all(p::Sort { axis }, &[&keys, &places])?;
    let mut both = both.iter().map(|t| back(interp, t)).collect::<Eval<Vec<Tensor>>>()?;
    if truths {
        both[0] = interp.convert(&both[0], DType::Bool)?;
    }
    Ok(both)
}

/// A sort key of list items.
enum Key {
    /// A number: its nearest float, then its integer part, which distinguishes large integers.
    Number(f64, i64),
    Text(String),
    List(Vec<Key>),
}

impl Key {
    fn of(value: &Value) -> Eval<Key> {
        Ok(match value {
            Value::Int(n) => Key::Number(*n as f64, *n),
            Value::Float(x) => Key::Number(*x, *x as i64),
            Value::Bool(b) => Key::Number(f64::from(u8::from(*b)), i64::from(*b)),
            Value::Tensor(t) if t.ty().rank() == 0 => {
                let host = t.elements("the order of a list")?;
                Key::Number(host.element_f64(0), host.element_i64(0))
            }
            Value::Tensor(t) if t.ty().rank() == 1 => {
                let host = t.elements("the order of a list")?;
                Key::List(
                    (0..host.count())
                        .map(|i| Key::Number(host.element_f64(i), host.element_i64(i)))
                        .collect(),
                )
            }
            Value::Str(s) => Key::Text(s.to_string()),
            Value::Keyword(k) | Value::Symbol(k) => Key::Text(k.to_string()),
            Value::List(list) => Key::List(list.items.iter().map(Key::of).collect::<Eval<_>>()?),
            other => {
                return Err(Diagnostic::error(format!("cannot sort by {}", other.describe()))
                    .help("numbers, strings and lists of them have an order; :key f gives one for each item")
                    .into());
            }
        })
    }

    fn compare(&self, other: &Key) -> Ordering {
        match (self, other) {
            // NaN sorts last; both zeros are equal.
            (Key::Number(a, m), Key::Number(b, n)) => {
                a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())).then(m.cmp(n))
            }
            (Key::Text(a), Key::Text(b)) => a.cmp(b),
            (Key::List(a), Key::List(b)) => {
                let unequal = a.iter().zip(b).map(|(a, b)| a.compare(b)).find(|o| o.is_ne());
                unequal.unwrap_or_else(|| a.len().cmp(&b.len()))
            }
            (a, b) => a.kind().cmp(b.kind()),
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            Key::Number(..) => "a number",
            Key::Text(_) => "a string",
            Key::List(_) => "a list",
        }
    }

    fn comparable(&self, other: &Key) -> Eval<()> {
        match (self, other) {
            (Key::List(a), Key::List(b)) => a.iter().zip(b).try_for_each(|(a, b)| a.comparable(b)),
            (a, b) if a.kind() == b.kind() => Ok(()),
            (a, b) => Err(Diagnostic::error(format!("cannot sort {} beside {}", a.kind(), b.kind()))
                .help(":key f sorts by f of each item: give one that makes them alike, such as str")
                .into()),
        }
    }
}

/// Stable sort order of the keys.
fn order(keys: &[Value], reverse: bool) -> Eval<Vec<usize>> {
    let keys = keys.iter().map(Key::of).collect::<Eval<Vec<Key>>>()?;
    keys.windows(2).try_for_each(|pair| pair[0].comparable(&pair[1]))?;
    let mut order: Vec<usize> = (0..keys.len()).collect();
    order.sort_by(|i, k| {
        let ascending = keys[*i].compare(&keys[*k]);
        if reverse { ascending.reverse() } else { ascending }
    });
    Ok(order)
}
