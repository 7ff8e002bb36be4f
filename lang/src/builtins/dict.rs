//! Dictionaries, and `get`, which also gathers from tensors.

use std::rc::Rc;

use ustr::UstrSet;

use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp, Stop, fail};
use crate::program::{Dict, Key, Value};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "dict",
        "(dict key value ...)",
        "a dictionary of the pairs; keys are keywords, strings or symbols",
        (0, VARIADIC),
        |_, a| assoc(&Value::Nil, a),
    )
    .examples("(dict :a 1 \"b\" 2) ;=> {:a 1 \"b\" 2}\n(dict :a) ;=> error: every key wants a value"),
    Builtin::new(
        "get",
        "(get d key ... default?) or (get x i ... j)",
        "an entry of a dictionary, an item of a list or string, rows of a tensor or items of a handle by an integer or integers; further keys lead \
         into nested dictionaries; without an entry the default, or nil\n\
         of a tensor, further indices are those of the next axes, each for itself; ... leaves out as many as there are; (vmap get) pairs the \
         rows of a tensor with indices",
        (2, VARIADIC),
        get,
    )
    .examples(
        "(get {:a 1} :a) ;=> 1\n\
         (get {:a {:b 2}} :a :b) ;=> 2\n\
         (get {:a 1} :c 0) ;=> 0\n\
         (get [10 20 30] [2 0]) ;=> [30 10]\n\
         (get [[1 2] [3 4]] 1 0) ;=> 3.0\n\
         (get [[1 2] [3 4]] ... 0) ;=> [1 3]\n\
         (get [[1 2] [3 4]] [1 0] [0 1]) ;=> [[3 4] [1 2]]\n\
         ((vmap get) [[1 2] [3 4]] [1 0]) ;=> [2 3]\n\
         (get {:a 1} 2) ;=> error: a key is a keyword",
    ),
    Builtin::new(
        "get-in",
        "(get-in d path default?)",
        "what lies at the end of a path of keys and positions; the default, or nil, where it breaks off",
        (2, 3),
        |i, a| {
            let path = i.sequence(&a[1])?;
            Ok(at_path(i, &a[0], &path)?.unwrap_or_else(|| a.get(2).cloned().unwrap_or(Value::Nil)))
        },
    )
    .examples(
        "(get-in {:layers '[{:W 1} {:W 2}]} [:layers 1 :W]) ;=> 2\n\
         (get-in {:a {}} [:a :b] 0) ;=> 0",
    ),
    Builtin::new(
        "assoc",
        "(assoc d key value ...)",
        "d with these entries, new ones at the end; of a list, with these items in place of those at the positions",
        (3, VARIADIC),
        |_, a| assoc(&a[0], &a[1..]),
    )
    .examples(
        "(assoc {:a 1} :b 2 :a 3) ;=> {:a 3 :b 2}\n\
         (assoc '[1 2] 0 5) ;=> '[5 2]\n\
         (assoc {:a 1} :b) ;=> error: assoc takes at least 3 arguments",
    ),
    Builtin::new(
        "assoc-in",
        "(assoc-in d path value)",
        "d with this value at the end of a path of keys and positions; dictionaries that are not there are made",
        (3, 3),
        |i, a| {
            let path = i.sequence(&a[1])?;
            assoc_in(&a[0], &path, &a[2])
        },
    )
    .examples(
        "(assoc-in {:a {:b 1}} [:a :b] 2) ;=> {:a {:b 2}}\n\
         (assoc-in {} [:a :b] 2) ;=> {:a {:b 2}}\n\
         (assoc-in {:a 1} [:a :b] 2) ;=> error: expected a dictionary",
    ),
    Builtin::new(
        "update",
        "(update d key f ...)",
        "d with f of an entry, and of further arguments, in its place",
        (3, VARIADIC),
        |i, a| {
            let found = entry(i, &a[0], &a[1])?;
            let is_missing = found.is_none();
            let args = std::iter::once(found.unwrap_or(Value::Nil)).chain(a[3..].iter().cloned());
            let new = i.call(&a[2], args.collect::<Vec<_>>()).map_err(|mut signal| {
                if let (true, Stop::Error(d), Some(key)) = (is_missing, &mut *signal, a[1].as_key()) {
                    d.notes.push(format!("the dictionary has no {}", key.form()));
                }
                signal
            })?;
            assoc(&a[0], &[a[1].clone(), new])
        },
    )
    .examples(
        "(update {:n 1} :n + 10) ;=> {:n 11}\n\
         (update {:n 1} :m + 10) ;=> error: expected a tensor or a number, got nil",
    ),
    Builtin::new(
        "update-in",
        "(update-in d path f ...)",
        "d with f of what lies at the end of a path of keys and positions, and of further arguments, in its place",
        (3, VARIADIC),
        |i, a| {
            let path = i.sequence(&a[1])?;
            let old = at_path(i, &a[0], &path)?.unwrap_or(Value::Nil);
            let args = std::iter::once(old).chain(a[3..].iter().cloned()).collect::<Vec<_>>();
            let new = i.call(&a[2], args)?;
            assoc_in(&a[0], &path, &new)
        },
    )
    .examples(
        "(update-in {:a {:n 1}} [:a :n] + 10) ;=> {:a {:n 11}}\n\
         (update-in {:layers '[{:W 1} {:W 2}]} [:layers 1 :W] neg) ;=> {:layers '[{:W 1} {:W -2}]}\n\
         (update-in {:a 1} [:a :b] identity) ;=> error: has no entries",
    ),
    Builtin::new(
        "select-keys",
        "(select-keys d keys)",
        "d with only these keys, those of them that it has, in its own order",
        (2, 2),
        |i, a| {
            let keys = i.sequence(&a[1])?.iter().map(key_of).collect::<Eval<Vec<Key>>>()?;
            let keys: UstrSet = keys.into_iter().map(|key| key.name).collect();
            let kept = dictionary(&a[0])?.iter().filter(|(key, _)| keys.contains(&key.name));
            Ok(Value::Dict(Rc::new(kept.map(|(key, value)| (key, value.clone())).collect())))
        },
    )
    .examples(
        "(select-keys {:a 1 :b 2 :c 3} [:c :a :d]) ;=> {:a 1 :c 3}\n\
         (select-keys {:a 1} :a) ;=> error: expected a list",
    ),
    Builtin::new(
        "zipmap",
        "(zipmap keys values)",
        "a dictionary of the keys and the values at the same positions, up to the end of the shorter",
        (2, 2),
        |i, a| {
            let (keys, values) = (i.sequence(&a[0])?, i.sequence(&a[1])?);
            let entries = keys.iter().zip(values).map(|(key, value)| Ok((key_of(key)?, value)));
            Ok(Value::Dict(Rc::new(entries.collect::<Eval<Dict>>()?)))
        },
    )
    .examples("(zipmap [:a :b] '[1 2]) ;=> {:a 1 :b 2}\n(zipmap '[1 2] '[3 4]) ;=> error: a key is a keyword"),
    Builtin::new(
        "dissoc",
        "(dissoc d keys)",
        "d without these keys: a list of them, or one or more by themselves",
        (2, VARIADIC),
        |i, a| {
            let mut dict = dictionary(&a[0])?.clone();
            for given in &a[1..] {
                let keys = if given.as_key().is_some() { vec![given.clone()] } else { i.sequence(given)? };
                for key in keys {
                    dict.remove(&*key_of(&key)?);
                }
            }
            Ok(Value::Dict(Rc::new(dict)))
        },
    )
    .examples("(dissoc {:a 1 :b 2 :c 3} [:a :c]) ;=> {:b 2}\n(dissoc {:a 1} [0]) ;=> error: a key is a keyword"),
    Builtin::new(
        "merge",
        "(merge a b ...)",
        "the entries of all; later ones win, in the place of the earlier",
        (0, VARIADIC),
        |_, a| {
            let mut given = a.iter().filter(|d| !matches!(d, Value::Nil));
            let mut out = given.next().map_or_else(|| Ok(Dict::default()), |d| dictionary(d).cloned())?;
            for d in given {
                out.extend(dictionary(d)?.iter().map(|(k, v)| (k, v.clone())));
            }
            Ok(Value::Dict(Rc::new(out)))
        },
    )
    .examples("(merge {:a 1 :b 2} {:b 3 :c 4}) ;=> {:a 1 :b 3 :c 4}\n(merge {:a 1} 2) ;=> error: expected a dictionary"),
    Builtin::new("keys", "(keys d)", KEYS, (1, 1), |_, a| {
        Ok(Value::list(dictionary(&a[0])?.keys().map(Key::value).collect()))
    })
    .examples("(keys {:b 1 \"a\" 2}) ;=> '[:b \"a\"]"),
    Builtin::new("vals", "(vals d)", "the list of values, in insertion order", (1, 1), |_, a| {
        Ok(Value::list(dictionary(&a[0])?.values().cloned().collect()))
    })
    .examples("(vals {:b 1 :a 2}) ;=> '[1 2]"),
    Builtin::new(
        "contains?",
        "(contains? d key)",
        "whether a dictionary has the key, a list an item equal to it, or a string that part",
        (2, 2),
        |_, a| {
            Ok(Value::Bool(match &a[0] {
                Value::List(list) => {
                    let mut found = false;
                    for item in &list.items {
                        found = found || super::structurally_equal(item, &a[1])?;
                    }
                    found
                }
                Value::Str(text) => match &a[1] {
                    Value::Str(part) => text.contains(&**part),
                    other => {
                        return fail(format!("in a string a string is looked for, not {}", other.describe()));
                    }
                },
                Value::Nil => false,
                d => dictionary(d)?.contains_key(&*key_of(&a[1])?),
            }))
        },
    )
    .examples("(contains? {:a nil} :a) ;=> true\n(contains? '[1 2] 3) ;=> false\n(contains? \"hello\" \"ell\") ;=> true"),
    Builtin::new(
        "-options",
        "(-options given defaults)",
        "the options of a call over their defaults",
        (2, 2),
        |i, a| {
            let defaults = dictionary(&a[1])?.clone();
            let flag = |k: &Key| matches!(defaults[&**k], Value::Bool(_));
            let (flags, valued): (Vec<&str>, Vec<&str>) = (
                defaults.keys().filter(flag).map(|k| k.name.as_str()).collect(),
                defaults.keys().filter(|k| !flag(k)).map(|k| k.name.as_str()).collect(),
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
            Ok(Value::Dict(Rc::new(defaults.iter().map(|(k, d)| (k, value(&k, d))).collect())))
        },
    ),
];

const KEYS: &str =
    "the list of keys, in insertion order: keywords, or strings where a key was first given as a string";

/// A step of a `with-params` path.
pub const ENTRY: &Builtin =
    &Builtin::new("with-params", "(with-params [d :key] body)", "", (2, 2), |_, a| {
        let (dict, key) = (dictionary(&a[0])?, key_of(&a[1])?);
        dict.get(&key).cloned().ok_or_else(|| {
            Diagnostic::error(format!("with-params found no :{key} in {}", a[0].describe())).into()
        })
    });

/// True if a destructured dictionary has a key that has a default.
pub const HAS_KEY: &Builtin = &Builtin::new("contains?", "(contains? d key)", "", (2, 2), |_, a| {
    Ok(Value::Bool(dictionary(&a[0])?.contains_key(&*key_of(&a[1])?)))
});

pub(super) fn dictionary(value: &Value) -> Eval<&Dict> {
    match value {
        Value::Dict(dict) => Ok(dict),
        Value::Nil => Err(super::nil("a dictionary")),
        other => fail(format!("expected a dictionary, got {}", other.describe())),
    }
}

fn key_of(value: &Value) -> Eval<Key> {
    match value.as_key() {
        Some(key) => Ok(key),
        None => fail(format!("a key is a keyword, a string or a symbol, not {}", value.describe())),
    }
}

/// The position that a key denotes in a list of `count` items.
fn position(key: &Value, count: usize) -> Eval<Option<usize>> {
    let i = super::as_index(key, "a position in a list")?;
    let at = if i < 0 { i + count as i64 } else { i };
    Ok(usize::try_from(at).ok().filter(|at| *at < count))
}

/// `value` with added or replaced entries. Nil counts as an empty dictionary.
fn assoc(value: &Value, pairs: &[Value]) -> Eval<Value> {
    if !pairs.len().is_multiple_of(2) {
        return fail("every key wants a value: there is an odd number of them");
    }
    let pairs = pairs.chunks_exact(2).map(|pair| (&pair[0], &pair[1]));
    match value {
        Value::List(list) => {
            let mut out = (**list).clone();
            for (key, new) in pairs {
                let Some(at) = position(key, out.items.len())? else {
                    return Err(Diagnostic::error(format!(
                        "{} is no position in a list of {} items",
                        super::show(key),
                        out.items.len()
                    ))
                    .help("(append xs x) adds an item at the end")
                    .into());
                };
                out.items.set(at, new.clone());
            }
            Ok(Value::List(Rc::new(out)))
        }
        Value::Dict(_) | Value::Nil => {
            let mut out = if let Value::Dict(dict) = value { (**dict).clone() } else { Dict::default() };
            for (key, new) in pairs {
                out.insert(key_of(key)?, new.clone());
            }
            Ok(Value::Dict(Rc::new(out)))
        }
        other => fail(format!("expected a dictionary or a list to put entries in, got {}", other.describe())),
    }
}

fn assoc_in(value: &Value, path: &[Value], new: &Value) -> Eval<Value> {
    let Some((key, rest)) = path.split_first() else { return Ok(new.clone()) };
    let inner = match value {
        Value::Dict(dict) => dict.get(&*key_of(key)?),
        Value::List(list) => position(key, list.items.len())?.map(|at| &list.items[at]),
        _ => None,
    };
    let inner = assoc_in(inner.unwrap_or(&Value::Nil), rest, new)?;
    assoc(value, &[key.clone(), inner])
}

/// The value at a path; `None` if the path breaks off.
fn at_path(interp: &mut Interp, value: &Value, path: &[Value]) -> Eval<Option<Value>> {
    let mut value = value.clone();
    for key in path {
        match entry(interp, &value, key)? {
            Some(found) => value = found,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

/// One step of a path; `None` if there is no such entry.
fn entry(interp: &mut Interp, value: &Value, key: &Value) -> Eval<Option<Value>> {
    match value {
        Value::Dict(dict) => {
            let name = key_of(key)?;
            let found = dict.get(&name).cloned();
            if found.is_none()
                && let Some(span) = interp.span
            {
                interp.failed_lookups.remember(name.name, span, dict.keys());
            }
            Ok(found)
        }
        Value::Nil => Ok(None),
        Value::Tensor(t) => interp.row(t, key).map(Some),
        Value::Handle(handle) => interp.handle_get(handle, key).map(Some),
        Value::List(list) => Ok(position(key, list.items.len())?.map(|at| list.items[at].clone())),
        other => fail(format!("{} has no entries", other.describe())),
    }
}

/// `(get d :a x)`: x is a path step only if it denotes a key and `(get d :a)` is a dictionary; otherwise it is the
/// default. The last argument of a longer path that breaks off is the default as well.
pub fn get(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    if let Value::Tensor(t) = &args[0]
        && t.ty().rank() > 0
    {
        return interp.along_axes(t, &args[1..]);
    }
    let mut found = entry(interp, &args[0], &args[1])?;
    for next in &args[2..] {
        match &found {
            None => return Ok(args[args.len() - 1].clone()),
            Some(value @ Value::Dict(_)) if next.as_key().is_some() => {
                let value = value.clone();
                found = entry(interp, &value, next)?;
            }
            Some(_) => break,
        }
    }
    Ok(found.unwrap_or(Value::Nil))
}
