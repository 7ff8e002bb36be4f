//! Dictionaries, and `get`, which also gathers from tensors.

use std::rc::Rc;

use ustr::Ustr;

use super::{Builtin, MANY};
use crate::diagnostic::Diagnostic;
use crate::eval::{Dict, Eval, Interp, Value, fail};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("dict", "(dict k v ...)", "a dictionary of the pairs", (0, MANY), |_, a| {
        assoc(Value::Dict(Rc::new(Dict::default())), a).map(|d| Value::Dict(Rc::new(d)))
    }),
    Builtin::new("get", "(get d key default?)", "an entry of a dictionary, list or tensor", (2, MANY), get),
    Builtin::new("get-in", "(get-in d keys default?)", "an entry of nested dictionaries", (2, 3), |i, a| {
        let mut value = a[0].clone();
        for key in i.sequence(&a[1])? {
            value = entry(i, &value, &key)?;
        }
        Ok(if matches!(value, Value::Nil) { a.get(2).cloned().unwrap_or(Value::Nil) } else { value })
    }),
    Builtin::new("assoc", "(assoc d k v ...)", "d with other entries", (3, MANY), |_, a| {
        assoc(a[0].clone(), &a[1..]).map(|d| Value::Dict(Rc::new(d)))
    }),
    Builtin::new(
        "assoc-in",
        "(assoc-in d keys v)",
        "d with another entry of a nested dictionary",
        (3, 3),
        |i, a| {
            let path = i.sequence(&a[1])?;
            assoc_in(&a[0], &path, a[2].clone())
        },
    ),
    Builtin::new("update", "(update d k f)", "d with f of an entry in its place", (3, MANY), |i, a| {
        let old = entry(i, &a[0], &a[1])?;
        let args = std::iter::once(old).chain(a[3..].iter().cloned()).collect();
        let new = i.call(&a[2], args)?;
        assoc(a[0].clone(), &[a[1].clone(), new]).map(|d| Value::Dict(Rc::new(d)))
    }),
    Builtin::new("dissoc", "(dissoc d keys)", "d without some entries", (2, 2), |i, a| {
        let keys = if a[1].as_key().is_some() { vec![a[1].clone()] } else { i.sequence(&a[1])? };
        let mut dict = dictionary(&a[0])?.clone();
        for key in keys {
            dict.shift_remove(&key_of(&key)?);
        }
        Ok(Value::Dict(Rc::new(dict)))
    }),
    Builtin::new("merge", "(merge a b ...)", "the entries of all; later ones win", (0, MANY), |_, a| {
        let mut out = Dict::default();
        for d in a {
            out.extend(dictionary(d)?.iter().map(|(k, v)| (*k, v.clone())));
        }
        Ok(Value::Dict(Rc::new(out)))
    }),
    Builtin::new("keys", "(keys d)", "the keys, in insertion order", (1, 1), |_, a| {
        Ok(Value::list(dictionary(&a[0])?.keys().map(|k| Value::Keyword(*k)).collect()))
    }),
    Builtin::new("vals", "(vals d)", "the values, in insertion order", (1, 1), |_, a| {
        Ok(Value::list(dictionary(&a[0])?.values().cloned().collect()))
    }),
    Builtin::new("contains?", "(contains? d key)", "whether there is such an entry", (2, 2), |_, a| {
        Ok(Value::Bool(match &a[0] {
            Value::List(list) => {
                let mut found = false;
                for item in &list.items {
                    found |= super::structurally_equal(item, &a[1])?;
                }
                found
            }
            d => dictionary(d)?.contains_key(&key_of(&a[1])?),
        }))
    }),
    Builtin::new(
        "-options",
        "(-options given defaults)",
        "the options of a call over their defaults",
        (2, 2),
        |i, a| {
            let defaults = dictionary(&a[1])?;
            let flag = |k: &Ustr| matches!(defaults[k], Value::Bool(_));
            let (flags, valued): (Vec<&str>, Vec<&str>) = (
                defaults.keys().filter(|k| flag(k)).map(Ustr::as_str).collect(),
                defaults.keys().filter(|k| !flag(k)).map(Ustr::as_str).collect(),
            );
            let names = [valued.as_slice(), &flags].concat();
            let given = i.sequence(&a[0])?;
            let parsed = super::parse(&given, &valued, &flags)?;
            if let [other, ..] = parsed.positional.as_slice() {
                return fail(format!(
                    "expected an option such as :{}, got {}",
                    names.join(" or :"),
                    other.describe()
                ));
            }
            let value = |name: &str, default: &Value| match default {
                Value::Bool(_) => Value::Bool(parsed.flag(name)),
                default => parsed.option(name).unwrap_or(default).clone(),
            };
            Ok(Value::Dict(Rc::new(defaults.iter().map(|(k, d)| (*k, value(k, d))).collect())))
        },
    ),
];

/// A step of a `with-params` path.
pub const ENTRY: &Builtin =
    &Builtin::new("with-params", "(with-params [d :key] body)", "", (2, 2), |_, a| {
        let (dict, key) = (dictionary(&a[0])?, key_of(&a[1])?);
        dict.get(&key).cloned().ok_or_else(|| {
            Diagnostic::error(format!("with-params found no :{key} in {}", a[0].describe())).into()
        })
    });

pub(super) fn dictionary(value: &Value) -> Eval<&Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        other => fail(format!("expected a dictionary, got {}", other.describe())),
    }
}

fn key_of(value: &Value) -> Eval<Ustr> {
    match value.as_key() {
        Some(key) => Ok(key),
        None => fail(format!("a key is a keyword, a string or a symbol, not {}", value.describe())),
    }
}

fn assoc(dict: Value, pairs: &[Value]) -> Eval<Dict> {
    let mut out = match dict {
        Value::Nil => Dict::default(),
        other => dictionary(&other)?.clone(),
    };
    if !pairs.len().is_multiple_of(2) {
        return fail("every key wants a value");
    }
    for pair in pairs.chunks(2) {
        out.insert(key_of(&pair[0])?, pair[1].clone());
    }
    Ok(out)
}

fn assoc_in(value: &Value, path: &[Value], new: Value) -> Eval<Value> {
    let Some((key, rest)) = path.split_first() else { return Ok(new) };
    let inner = match value {
        Value::Dict(dict) => dict.get(&key_of(key)?).cloned().unwrap_or(Value::Nil),
        _ => Value::Nil,
    };
    let inner = assoc_in(&inner, rest, new)?;
    assoc(value.clone(), &[key.clone(), inner]).map(|d| Value::Dict(Rc::new(d)))
}

/// One step: nil where there is no such entry.
fn entry(interp: &mut Interp, value: &Value, key: &Value) -> Eval<Value> {
    match value {
        Value::Dict(dict) => {
            let name = key_of(key)?;
            let found = dict.get(&name).cloned();
            if found.is_none() {
                if let Some(span) = interp.span {
                    interp.misses.remember(name, span, dict.keys());
                }
            }
            Ok(found.unwrap_or(Value::Nil))
        }
        Value::Nil => Ok(Value::Nil),
        Value::Tensor(t) => interp.row(&t.clone(), key),
        Value::List(list) => {
            let i = super::as_index(key, "a position")?;
            let at = if i < 0 { i + list.items.len() as i64 } else { i };
            Ok(usize::try_from(at).ok().and_then(|at| list.items.get(at)).cloned().unwrap_or(Value::Nil))
        }
        other => fail(format!("{} has no entries", other.describe())),
    }
}

/// `(get d :a x)`: x is a further step of a path only if it names a key and `(get d :a)` is a dictionary; otherwise
/// it is the default. So is the last argument where a longer path breaks off.
pub fn get(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let mut value = entry(interp, &args[0], &args[1])?;
    for next in &args[2..] {
        match &value {
            Value::Dict(_) if next.as_key().is_some() => value = entry(interp, &value, next)?,
            Value::Nil => return Ok(args[args.len() - 1].clone()),
            _ => return Ok(value),
        }
    }
    Ok(value)
}
