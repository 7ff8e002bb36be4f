//! Searching and grouping of sequences by a function.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::rc::Rc;

use ustr::Ustr;

use super::index::part;
use super::{Builtin, VARIADIC, as_index, show};
use crate::eval::{Eval, Interp, fail};
use crate::program::{Dict, Key, Value};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "some",
        "(some f xs)",
        "the first of the values of f for the items that holds; nil where none does, and later items are left alone",
        (2, 2),
        |i, a| until(i, &a[0], &a[1], |value, _| Ok(value.truthy()?.then(|| value.clone()))),
    )
    .examples("(some (fn [x] (if (> x 1) (* x 10))) '[1 2 3]) ;=> 20\n(some string? '[1 2]) ;=> nil"),
    Builtin::new(
        "every?",
        "(every? f xs)",
        "whether f holds for all items; items after the first for which it does not are left alone",
        (2, 2),
        |i, a| {
            let failed = until(i, &a[0], &a[1], |value, _| Ok((!value.truthy()?).then_some(Value::Bool(true))))?;
            Ok(Value::Bool(matches!(failed, Value::Nil)))
        },
    )
    .examples("(every? number? '[1 2]) ;=> true\n(every? number? '[1 :a]) ;=> false\n(every? number? '[]) ;=> true"),
    Builtin::new(
        "take-while",
        "(take-while f xs)",
        "the items before the first for which f does not hold: a list, a tensor or a string as xs is",
        (2, 2),
        |i, a| {
            let n = prefix(i, &a[0], &a[1])?;
            part(i, &a[1], 0, n)
        },
    )
    .examples("(take-while (fn [x] (< x 3)) '[1 2 3 1]) ;=> '[1 2]\n(take-while (fn [x] (< x 3)) [1 2 3 1]) ;=> [1 2]"),
    Builtin::new(
        "drop-while",
        "(drop-while f xs)",
        "the items from the first on for which f does not hold: a list, a tensor or a string as xs is",
        (2, 2),
        |i, a| {
            let n = prefix(i, &a[0], &a[1])?;
            part(i, &a[1], n, i64::MAX)
        },
    )
    .examples("(drop-while (fn [x] (< x 3)) '[1 2 3 1]) ;=> '[3 1]"),
    Builtin::new(
        "partition",
        "(partition n step? xs)",
        "the list of parts of n items each, beginning at every step-th item, by default every n-th\n\
         items at the end that fill no part are left out; parts of a tensor are tensors",
        (2, 3),
        partition,
    )
    .examples(
        "(partition 2 '[1 2 3 4 5]) ;=> '[[1 2] [3 4]]\n(partition 2 1 '[1 2 3]) ;=> '[[1 2] [2 3]]\n\
         (partition 0 '[1]) ;=> error: at least 1",
    ),
    Builtin::new(
        "group-by",
        "(group-by f xs)",
        "a dictionary from each value of f to the list of the items that have it, in their order\n\
         the values become keys: keywords, strings and symbols, or the text of numbers and booleans",
        (2, 2),
        |i, a| {
            let items = i.sequence(&a[1])?;
            let mut groups: Vec<Vec<Value>> = Vec::new();
            let mut places: HashMap<Ustr, usize> = HashMap::new();
            let mut keys = Vec::new();
            i.in_loop(items.len() as u64, |i| -> Eval<()> {
                for item in items {
                    let key = key_for(&i.call(&a[0], [item.clone()])?)?;
                    let place = *places.entry(key.name).or_insert_with(|| {
                        keys.push(key);
                        groups.push(Vec::new());
                        groups.len() - 1
                    });
                    groups[place].push(item);
                }
                Ok(())
            })?;
            let entries = keys.into_iter().zip(groups.into_iter().map(Value::list));
            Ok(Value::Dict(Rc::new(entries.collect())))
        },
    )
    .examples(
        "(group-by (fn [w] (first w)) '[\"ant\" \"bee\" \"ape\"]) ;=> {:a '[\"ant\" \"ape\"] :b '[\"bee\"]}\n\
         (group-by identity '[[1]]) ;=> error: as a key",
    ),
    Builtin::new(
        "frequencies",
        "(frequencies xs)",
        "a dictionary from each item to how often it occurs, in the order of their first places\n\
         the items become keys: keywords, strings and symbols, or the text of numbers and booleans",
        (1, 1),
        |i, a| {
            let mut counts = Dict::default();
            for item in i.sequence(&a[0])? {
                let key = key_for(&item)?;
                let n = if let Some(Value::Int(n)) = counts.get(&key) { *n } else { 0 };
                counts.insert(key, Value::Int(n + 1));
            }
            Ok(Value::Dict(Rc::new(counts)))
        },
    )
    .examples("(frequencies \"abca\") ;=> {\"a\" 2 \"b\" 1 \"c\" 1}\n(frequencies '[1 2 1]) ;=> {\"1\" 2 \"2\" 1}"),
    Builtin::new(
        "distinct",
        "(distinct xs)",
        "the list of the items without those equal to an earlier one; unique does it for tensors, and sorts them",
        (1, 1),
        |i, a| distinct(i.sequence(&a[0])?).map(Value::list),
    )
    .examples("(distinct '[1 :a 1 2 :a]) ;=> '[1 :a 2]\n(distinct \"hello\") ;=> '[\"h\" \"e\" \"l\" \"o\"]"),
    Builtin::new(
        "interpose",
        "(interpose x xs)",
        "the list of the items with x between each two",
        (2, 2),
        |i, a| {
            let items = i.sequence(&a[1])?;
            let mut out = Vec::with_capacity(items.len() * 2);
            for item in items {
                if !out.is_empty() {
                    out.push(a[0].clone());
                }
                out.push(item);
            }
            Ok(Value::list(out))
        },
    )
    .examples("(interpose 0 '[1 2 3]) ;=> '[1 0 2 0 3]\n(apply str (interpose \", \" '[\"a\" \"b\"])) ;=> \"a, b\""),
    Builtin::new(
        "interleave",
        "(interleave xs ys ...)",
        "the list of the first items of all, then the second ones and so on, up to the end of the shortest",
        (1, VARIADIC),
        |i, a| {
            let columns = a.iter().map(|xs| i.sequence(xs)).collect::<Eval<Vec<_>>>()?;
            let n = columns.iter().map(Vec::len).min().unwrap_or(0);
            Ok(Value::list((0..n).flat_map(|k| columns.iter().map(move |c| c[k].clone())).collect()))
        },
    )
    .examples("(interleave '[1 2 3] '[:a :b]) ;=> '[1 :a 2 :b]"),
];

/// The first result of `done` that is not `None`; `done` gets the value of `f` and the position.
fn until(
    interp: &mut Interp,
    f: &Value,
    xs: &Value,
    done: impl Fn(&Value, usize) -> Eval<Option<Value>>,
) -> Eval<Value> {
    let mut items = interp.items_in(xs)?;
    interp.in_loop(items.len() as u64, |i| {
        let mut at = 0;
        while let Some(item) = items.next(i)? {
            let value = i.call(f, [item])?;
            if let Some(found) = done(&value, at)? {
                return Ok(found);
            }
            at += 1;
        }
        Ok(Value::Nil)
    })
}

/// Number of leading items for which `f` holds.
fn prefix(interp: &mut Interp, f: &Value, xs: &Value) -> Eval<i64> {
    let failed = until(interp, f, xs, |value, at| Ok((!value.truthy()?).then_some(Value::Int(at as i64))))?;
    Ok(if let Value::Int(at) = failed { at } else { i64::MAX })
}

fn partition(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let (n, step, xs) = match args {
        [n, xs] => (n, n, xs),
        [n, step, xs] => (n, step, xs),
        _ => return fail("partition takes a count, maybe a step, and a sequence"),
    };
    let (n, step) = (as_index(n, "the count")?, as_index(step, "the step")?);
    if n < 1 || step < 1 {
        return fail(format!("partition wants a count and a step of at least 1, got {n} and {step}"));
    }
    let (Ok(n), Ok(step)) = (usize::try_from(n), usize::try_from(step)) else {
        return fail("the count and the step are too large");
    };
    let length = match xs {
        Value::Tensor(t) if t.ty().rank() > 0 => t.shape()[0],
        Value::Handle(handle) => handle.count(),
        other => interp.sequence(other)?.len(),
    };
    let starts = (0..length).step_by(step).take_while(|start| n <= length - start);
    let parts = starts.map(|start| part(interp, xs, start as i64, (start + n) as i64));
    parts.collect::<Eval<Vec<Value>>>().map(Value::list)
}

/// The dictionary key equivalent to a value.
fn key_for(value: &Value) -> Eval<Key> {
    if let Some(key) = value.as_key() {
        return Ok(key);
    }
    match value {
        Value::Int(_) | Value::Float(_) | Value::Bool(_) => Ok(Key::quoted(&show(value))),
        Value::Tensor(t) if t.ty().rank() == 0 => Ok(Key::quoted(&show(&value.known("a key")?))),
        other => Err(Diagnostic::error(format!("{} cannot serve as a key", other.describe()))
            .help("keywords, strings, symbols, numbers and booleans can; (str x) makes a text of anything")
            .into()),
    }
}

/// The items without duplicates; the first one stays.
pub(super) fn distinct(items: Vec<Value>) -> Eval<Vec<Value>> {
    let mut seen: HashMap<u64, Vec<usize>> = HashMap::with_capacity(items.len());
    let mut kept: Vec<Value> = Vec::new();
    for item in items {
        let mut hasher = DefaultHasher::new();
        hash(&item, &mut hasher)?;
        let alike = seen.entry(hasher.finish()).or_default();
        let mut new = true;
        for at in alike.iter() {
            new = new && !super::structurally_equal(&kept[*at], &item)?;
        }
        if new {
            alike.push(kept.len());
            kept.push(item);
        }
    }
    Ok(kept)
}

/// Hashes a value consistently with equality: numbers by value, lists and tensors by elements, dictionaries by size.
fn hash(value: &Value, hasher: &mut DefaultHasher) -> Eval<()> {
    // Both zeros are equal, and so are a plain number and its rounding to `f32`.
    let number = |x: f64, hasher: &mut DefaultHasher| (x as f32 + 0.0).to_bits().hash(hasher);
    match value {
        Value::Int(n) => number(*n as f64, hasher),
        Value::Float(x) => number(*x, hasher),
        Value::Bool(b) => number(f64::from(u8::from(*b)), hasher),
        Value::Tensor(t) => {
            let host = t.elements("the items that differ")?;
            (0..host.count()).for_each(|i| number(host.element_f64(i), hasher));
        }
        Value::List(list) => {
            for item in &list.items {
                hash(item, hasher)?;
            }
        }
        Value::Dict(dict) => dict.len().hash(hasher),
        Value::Str(text) => text.as_str().hash(hasher),
        Value::Keyword(name) | Value::Symbol(name) => name.hash(hasher),
        Value::Nil | Value::Range(_) | Value::Function(_) | Value::Handle(_) | Value::Tokenizer(_) => {}
    }
    Ok(())
}
