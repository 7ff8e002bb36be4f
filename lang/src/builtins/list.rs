//! Lists and sequences.

use super::{Builtin, MANY, as_index};
use crate::eval::{Eval, Interp, Value, fail};
use crate::primitives as p;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("list", "(list a b ...)", "a list of the arguments", (0, MANY), |_, a| {
        Ok(Value::list(a.to_vec()))
    }),
    Builtin::new("first", "(first xs)", "the first item", (1, 1), |i, a| item(i, &a[0], 0)),
    Builtin::new("second", "(second xs)", "the second item", (1, 1), |i, a| item(i, &a[0], 1)),
    Builtin::new("last", "(last xs)", "the last item", (1, 1), |i, a| item(i, &a[0], -1)),
    Builtin::new("nth", "(nth xs n)", "item n, counted from 0, negative from the end", (2, 2), |i, a| {
        if let Value::Tensor(t) = &a[0] {
            return i.row(&t.clone(), &a[1]);
        }
        let n = as_index(&a[1], "the position")?;
        item(i, &a[0], n)
    }),
    Builtin::new("rest", "(rest xs)", "all but the first item", (1, 1), |i, a| match &a[0] {
        Value::Nil => Ok(Value::list(Vec::new())),
        xs => part(i, xs, 1, i64::MAX),
    }),
    Builtin::new("cons", "(cons x xs)", "xs with x in front", (2, 2), |i, a| {
        let mut items = i.sequence(&a[1])?;
        items.insert(0, a[0].clone());
        Ok(Value::list(items))
    }),
    Builtin::new("append", "(append xs x)", "xs with x at the end", (2, MANY), |i, a| {
        let mut items = i.sequence(&a[0])?;
        items.extend_from_slice(&a[1..]);
        Ok(Value::list(items))
    }),
    Builtin::new("reverse", "(reverse xs)", "the items in reverse order", (1, 1), |i, a| match &a[0] {
        Value::Str(s) => Ok(Value::text(s.chars().rev().collect::<String>())),
        Value::Tensor(t) if t.ty().rank() > 0 => {
            Ok(Value::from(i.op(p::Reverse { axes: [0].as_slice().into() }, &[&t.clone()])?))
        }
        other => Ok(Value::list(i.sequence(other)?.into_iter().rev().collect())),
    }),
    Builtin::new("empty?", "(empty? xs)", "whether there is nothing in it", (1, 1), |_, a| {
        length(&a[0]).map(|n| Value::Bool(n == 0))
    }),
    Builtin::new("len", "(len xs)", "the number of items, or the extent of axis 0", (1, 1), |_, a| {
        length(&a[0]).map(Value::Int)
    }),
    Builtin::new("count", "(count xs)", "the same as len", (1, 1), |_, a| length(&a[0]).map(Value::Int)),
    Builtin::new("map", "(map f xs ...)", "a list of f of each item", (2, MANY), |i, a| {
        map(i, a).map(Value::list)
    }),
    Builtin::new("mapv", "(mapv f xs ...)", "f of each item, stacked", (2, MANY), |i, a| {
        let items = map(i, a)?;
        super::shape::stack(i, &items, 0)
    }),
    Builtin::new("filter", "(filter f xs)", "the items for which f holds", (2, 2), |i, a| {
        let items = i.sequence(&a[1])?;
        i.in_loop(items.len() as u64, |i| {
            let mut kept = Vec::new();
            for item in items {
                let holds = i.call(&a[0], [item.clone()].into_iter().collect())?;
                if holds.truthy()? {
                    kept.push(item);
                }
            }
            Ok(Value::list(kept))
        })
    }),
    Builtin::new("reduce", "(reduce f init xs)", "f of the state and each item in turn", (3, 3), |i, a| {
        let items = i.sequence(&a[2])?;
        i.in_loop(items.len() as u64, |i| {
            items
                .into_iter()
                .try_fold(a[1].clone(), |acc, item| i.call(&a[0], [acc, item].into_iter().collect()))
        })
    }),
    Builtin::new("apply", "(apply f xs)", "f with the items of xs as arguments", (2, 2), |i, a| {
        let items = i.sequence(&a[1])?;
        i.call(&a[0], items.into_iter().collect())
    }),
    Builtin::new("zip", "(zip xs ys ...)", "lists of items at the same position", (1, MANY), |i, a| {
        let columns = a.iter().map(|xs| i.sequence(xs)).collect::<Eval<Vec<_>>>()?;
        let n = columns.iter().map(Vec::len).min().unwrap_or(0);
        Ok(Value::list((0..n).map(|k| Value::list(columns.iter().map(|c| c[k].clone()).collect())).collect()))
    }),
    Builtin::new("take", "(take n xs)", "the first n items", (2, 2), |i, a| {
        part(i, &a[1], 0, as_index(&a[0], "the count")?.max(0))
    }),
    Builtin::new("drop", "(drop n xs)", "all but the first n items", (2, 2), |i, a| {
        part(i, &a[1], as_index(&a[0], "the count")?.max(0), i64::MAX)
    }),
];

fn map(interp: &mut Interp, args: &[Value]) -> Eval<Vec<Value>> {
    let columns = args[1..].iter().map(|xs| interp.sequence(xs)).collect::<Eval<Vec<_>>>()?;
    let n = columns.iter().map(Vec::len).min().unwrap_or(0);
    interp.in_loop(n as u64, |i| {
        (0..n).map(|k| i.call(&args[0], columns.iter().map(|c| c[k].clone()).collect())).collect()
    })
}

/// The items from `start` to `end`: a tensor of a tensor, else a list.
fn part(interp: &mut Interp, xs: &Value, start: i64, end: i64) -> Eval<Value> {
    if let Value::Tensor(t) = xs
        && t.ty().rank() > 0
    {
        return Ok(Value::from(interp.slice_axis(&t.clone(), 0, start, end)?));
    }
    let items = interp.sequence(xs)?;
    let clip = |i: i64| usize::try_from(i).unwrap_or(usize::MAX).min(items.len());
    Ok(Value::list(items[clip(start)..clip(end).max(clip(start))].to_vec()))
}

/// An item by position, negative from the end; nil of an empty list.
fn item(interp: &mut Interp, xs: &Value, n: i64) -> Eval<Value> {
    match xs {
        Value::Nil => Ok(Value::Nil),
        Value::Tensor(t) => interp.row(&t.clone(), &Value::Int(n)),
        Value::Str(s) => {
            let count = s.chars().count() as i64;
            let at = if n < 0 { n + count } else { n };
            match usize::try_from(at).ok().and_then(|at| s.chars().nth(at)) {
                Some(c) => Ok(Value::text(c.to_string())),
                None if count == 0 => Ok(Value::Nil),
                None => fail(format!("position {n} is outside of a text of {count} characters")),
            }
        }
        Value::List(list) => {
            let at = if n < 0 { n + list.items.len() as i64 } else { n };
            match usize::try_from(at).ok().and_then(|at| list.items.get(at)) {
                Some(item) => Ok(item.clone()),
                None if list.items.is_empty() => Ok(Value::Nil),
                None => fail(format!("position {n} is outside of a list of {} items", list.items.len())),
            }
        }
        other => fail(format!("expected a list or a tensor, got {}", other.describe())),
    }
}

fn length(xs: &Value) -> Eval<i64> {
    Ok(match xs {
        Value::Nil => 0,
        Value::List(list) => list.items.len() as i64,
        Value::Dict(dict) => dict.len() as i64,
        Value::Str(s) => s.chars().count() as i64,
        Value::Tensor(t) if t.ty().rank() > 0 => t.shape()[0] as i64,
        other => return fail(format!("{} has no length", other.describe())),
    })
}
