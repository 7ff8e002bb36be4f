//! Lists and sequences.

use smallvec::SmallVec;

use super::index::part;
use super::{Builtin, VARIADIC, as_index};
use crate::eval::{Eval, Interp, ItemsOf, fail};
use crate::program::{Items, Value};
use sheaf_graph::primitives as p;
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const LENGTHS: &[Builtin] = &[
    Builtin::new("len", "(len xs)", LEN, (1, 1), |_, a| length(&a[0]).map(Value::Int)).examples(
        "(len '[1 :a \"x\"]) ;=> 3\n(len [[1 2] [3 4] [5 6]]) ;=> 3\n(len 5) ;=> error: has no length",
    ),
    Builtin::new("count", "(count xs)", LEN, (1, 1), |_, a| length(&a[0]).map(Value::Int))
        .examples("(count \"abc\") ;=> 3\n(count {:a 1}) ;=> 1"),
];

const LEN: &str = "the number of items of a list or a handle, characters of a string, entries of a dictionary, or of a tensor along axis 0";

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("list", "(list a b ...)", "a list of the arguments, whatever they are", (0, VARIADIC), |_, a| {
        Ok(Value::list(a.to_vec()))
    })
    .examples("(list 1 :a \"x\") ;=> '[1 :a \"x\"]\n(list) ;=> '[]"),
    Builtin::new("first", "(first xs)", "the first item; nil where there is none", (1, 1), |i, a| {
        item_or_nil(i, &a[0], 0)
    })
    .examples("(first '[1 2 3]) ;=> 1\n(first [[1 2] [3 4]]) ;=> [1 2]\n(first '[]) ;=> nil"),
    Builtin::new("second", "(second xs)", "the second item; nil where there is none", (1, 1), |i, a| {
        item_or_nil(i, &a[0], 1)
    })
    .examples("(second '[1 2 3]) ;=> 2\n(second '[1]) ;=> nil"),
    Builtin::new("last", "(last xs)", "the last item; nil where there is none", (1, 1), |i, a| {
        item_or_nil(i, &a[0], -1)
    })
    .examples("(last '[1 2 3]) ;=> 3\n(last \"abc\") ;=> \"c\""),
    Builtin::new("nth", "(nth xs n)", "item n, counted from 0, negative from the end", (2, 2), |i, a| {
        nth(i, &a[0], &a[1])
    })
    .examples("(nth '[:a :b] 1) ;=> :b\n(nth [2 3] -1) ;=> 3.0\n(nth '[:a :b] 2) ;=> error: outside of a list"),
    Builtin::new(
        "rest",
        "(rest xs)",
        "all but the first item: a list, a tensor or a string as xs is",
        (1, 1),
        |i, a| match &a[0] {
            Value::Nil => Ok(Value::list(Vec::new())),
            xs => part(i, xs, 1, i64::MAX),
        },
    )
    .examples("(rest '[1 2 3]) ;=> '[2 3]\n(rest [1 2 3]) ;=> [2 3]\n(rest '[]) ;=> '[]"),
    Builtin::new("cons", "(cons x xs)", "the list of x and then the items of xs", (2, 2), |i, a| {
        let items = match &a[1] {
            Value::List(list) => list.items.after(a[0].clone()),
            xs => Items::from(i.sequence(xs)?).after(a[0].clone()),
        };
        Ok(Value::from(items))
    })
    .examples("(cons 1 '[2 3]) ;=> '[1 2 3]"),
    Builtin::new(
        "append",
        "(append xs x ...)",
        "the list of the items of xs and then x; of a tensor, the tensor with x as a further entry along axis 0\n\
         concat joins two lists, or two tensors",
        (2, VARIADIC),
        |i, a| match &a[0] {
            Value::Tensor(t) if t.ty().rank() > 0 => super::arrange::append(i, t, &a[1..]),
            Value::List(list) => Ok(Value::from(list.items.and(&a[1..]))),
            xs => Ok(Value::from(Items::from(i.sequence(xs)?).and(&a[1..]))),
        },
    )
    .takes_whole()
    .examples(
        "(append '[1 2] 3) ;=> '[1 2 3]\n(append '[1] '[2]) ;=> '[1 [2]]\n(append [1 2] 3) ;=> [1 2 3]\n\
         (append [[1 2]] [3 4]) ;=> [[1 2] [3 4]]\n(append [1 2] [3 4]) ;=> error: concat",
    ),
    Builtin::new(
        "reverse",
        "(reverse xs)",
        "the items in reverse order: a list, a tensor (along axis 0) or a string as xs is",
        (1, 1),
        |i, a| reverse(i, &a[0]),
    )
    .examples("(reverse '[1 2 3]) ;=> '[3 2 1]\n(reverse [[1 2] [3 4]]) ;=> [[3 4] [1 2]]\n(reverse \"abc\") ;=> \"cba\""),
    Builtin::new("take", "(take n xs)", "the first n items, or all if there are fewer: a list, a tensor, a string or a handle as xs is", (2, 2), |i, a| {
        part(i, &a[1], 0, as_index(&a[0], "the count")?.max(0))
    })
    .examples("(take 2 '[1 2 3]) ;=> '[1 2]\n(take 2 [1 2 3]) ;=> [1 2]\n(take 9 \"abc\") ;=> \"abc\""),
    Builtin::new("drop", "(drop n xs)", "all but the first n items: a list, a tensor, a string or a handle as xs is", (2, 2), |i, a| {
        part(i, &a[1], as_index(&a[0], "the count")?.max(0), i64::MAX)
    })
    .examples("(drop 2 '[1 2 3]) ;=> '[3]\n(drop 1 [1 2 3]) ;=> [2 3]"),
    Builtin::new(
        "filter",
        "(filter f xs)",
        "the list of the items for which f holds; f must be known, so in compiled code (where ...) takes its place",
        (2, 2),
        |i, a| {
            let mut items = i.items_in(&a[1])?;
            let mut ticks = i.ticks(&a[1..], items.len());
            i.in_loop(items.len() as u64, |i| {
                let mut kept = Vec::new();
                while let Some(item) = items.next(i)? {
                    if holds(i, &a[0], &item)? {
                        kept.push(item);
                    }
                    ticks.advance();
                }
                Ok(Value::list(kept))
            })
        },
    )
    .examples("(filter (fn [x] (> x 1)) '[1 2 3]) ;=> '[2 3]"),
    Builtin::new("find", "(find f xs)", "the first item for which f holds; nil where there is none", (2, 2), |i, a| {
        let mut items = i.items_in(&a[1])?;
        i.in_loop(items.len() as u64, |i| {
            while let Some(item) = items.next(i)? {
                if holds(i, &a[0], &item)? {
                    return Ok(item);
                }
            }
            Ok(Value::Nil)
        })
    })
    .examples("(find (fn [x] (> x 1)) '[1 2 3]) ;=> 2\n(find string? '[1 2]) ;=> nil"),
    Builtin::new(
        "index-of",
        "(index-of xs x)",
        "the position of the first item equal to x, or of the first place where the string x is in the string xs\n\
         -1 where there is none",
        (2, 2),
        |_, a| index_of(&a[0], &a[1]),
    )
    .examples("(index-of '[:a :b] :b) ;=> 1\n(index-of \"hello\" \"l\") ;=> 2\n(index-of '[1 2] 5) ;=> -1"),
    Builtin::new("empty?", "(empty? xs)", "whether there is nothing in xs: (len xs) is 0, or it is nil", (1, 1), |_, a| {
        Ok(Value::Bool(matches!(a[0], Value::Nil) || length(&a[0])? == 0))
    })
    .examples("(empty? '[]) ;=> true\n(empty? [1 2]) ;=> false\n(empty? nil) ;=> true"),
    Builtin::new(
        "map",
        "(map f xs ...)",
        "the list of f of each item; of several sequences, f of their items side by side, up to the shortest\n\
         a tensor gives its entries along axis 0, a string its characters; mapv stacks the results to a tensor",
        (2, VARIADIC),
        |i, a| map(i, a).map(Value::list),
    )
    .examples("(map (fn [x] (* x x)) '[1 2 3]) ;=> '[1 4 9]\n(map + '[1 2] '[10 20]) ;=> '[11 22]\n(map sum [[1 2] [3 4]]) ;=> (list 3.0 7.0)"),
    Builtin::new(
        "mapv",
        "(mapv f xs ...)",
        "f of each item, stacked to a tensor along axis 0; the results must have one shape",
        (2, VARIADIC),
        |i, a| {
            if let Some(stacked) = i.staged_mapv(&a[0], &a[1..])? {
                return Ok(stacked);
            }
            let items = unrolled_map(i, a)?;
            super::arrange::stack(i, &items, 0)
        },
    )
    .examples("(mapv (fn [x] (* x x)) [1 2 3]) ;=> [1 4 9]\n(mapv sum [[1 2] [3 4]]) ;=> [3 7]"),
    Builtin::new(
        "apply",
        "(apply f a ... xs)",
        "f called with the items of xs as its last arguments",
        (2, VARIADIC),
        |i, a| {
            let [f, first @ .., xs] = a else { return fail("apply wants a function and a list") };
            let items = i.sequence(xs)?;
            i.call(f, first.iter().cloned().chain(items).collect::<Vec<_>>())
        },
    )
    .examples("(apply + '[1 2 3]) ;=> 6\n(apply + 10 '[1 2]) ;=> 13"),
    Builtin::new(
        "reduce",
        "(reduce f init? xs :rolled)",
        "(f state item) for each item in turn, starting from init, or from the first item; the last state\n\
         with :rolled the items are of one structure and type, such as equal layers, and compiled code is one loop over them stacked: it compiles faster, and its calls take longer",
        (2, 5),
        reduce,
    )
    .examples("(reduce + 0 '[1 2 3]) ;=> 6\n(reduce max '[3 8 5]) ;=> 8\n(reduce (fn [acc row] (+ acc row)) 0 [[1 2] [3 4]]) ;=> [4 6]"),
    Builtin::new(
        "zip",
        "(zip xs ys ...)",
        "the lists of the items at each position, up to the end of the shortest",
        (1, VARIADIC),
        |i, a| {
            let columns = a.iter().map(|xs| i.sequence(xs)).collect::<Eval<Vec<_>>>()?;
            let n = columns.iter().map(Vec::len).min().unwrap_or(0);
            let row = |k: usize| Value::list(columns.iter().map(|c| c[k].clone()).collect());
            Ok(Value::list((0..n).map(row).collect()))
        },
    )
    .examples("(zip '[1 2] '[:a :b]) ;=> '[[1 :a] [2 :b]]\n(zip '[1 2 3] \"ab\") ;=> '[[1 \"a\"] [2 \"b\"]]"),
    Builtin::new("chars", "(chars s)", "the characters of a string as a list of strings", (1, 1), |i, a| {
        match &a[0] {
            Value::Str(_) => i.sequence(&a[0]).map(Value::list),
            other => Err(Diagnostic::error(format!("chars wants a string, got {}", other.describe()))
                .help("(str x) makes a text of anything")
                .into()),
        }
    })
    .examples("(chars \"abc\") ;=> '[\"a\" \"b\" \"c\"]\n(chars 5) ;=> error: wants a string"),
];

/// The items in reverse order, along axis 0 for a tensor.
pub(super) fn reverse(interp: &mut Interp, xs: &Value) -> Eval<Value> {
    match xs {
        Value::Str(s) => Ok(Value::text(s.chars().rev().collect::<String>())),
        Value::Handle(handle) if handle.rows().is_some() => {
            let whole = interp.whole(handle)?;
            reverse(interp, &Value::Tensor(whole))
        }
        Value::Tensor(t) if t.ty().rank() > 0 => {
            Ok(Value::from(interp.op(p::Reverse { axes: [0].as_slice().into() }, &[t])?))
        }
        other => Ok(Value::list(interp.sequence(other)?.into_iter().rev().collect())),
    }
}

fn reduce(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    // Behind the items: a state may be a keyword.
    let (args, rolled) = match args {
        [args @ .., Value::Keyword(key)] if *key == "rolled" => (args, true),
        [args @ .., Value::Keyword(key), Value::Bool(rolled)] if *key == "rolled" => (args, *rolled),
        args => (args, false),
    };
    match args {
        [f, init, xs] => fold(interp, f, init, xs, xs, rolled),
        [f, xs] => {
            if length(xs)? == 0 {
                return Err(Diagnostic::error(
                    "reduce without a first state wants at least one item, got none",
                )
                .help("give the state to start from: (reduce f init xs)")
                .into());
            }
            let first = item_or_nil(interp, xs, 0)?;
            let rest = part(interp, xs, 1, i64::MAX)?;
            fold(interp, f, &first, &rest, xs, rolled)
        }
        _ => fail(format!("reduce takes 2 or 3 arguments besides :rolled, got {}", args.len())),
    }
}

/// Folds `xs`, which is `whole` or the rest of it.
fn fold(
    interp: &mut Interp,
    f: &Value,
    init: &Value,
    xs: &Value,
    whole: &Value,
    rolled: bool,
) -> Eval<Value> {
    if let (true, Value::List(list)) = (rolled, xs)
        && let Some(state) = interp.rolled_reduce(f, init, &list.items.to_vec())?
    {
        return Ok(state);
    }
    if let Some(state) = interp.staged_reduce(f, init, xs)? {
        return Ok(state);
    }
    let mut items = interp.items_in(xs)?;
    let mut ticks = interp.ticks(std::slice::from_ref(whole), items.len());
    interp.in_loop(items.len() as u64, |i| {
        let mut state = init.clone();
        while let Some(item) = items.next(i)? {
            state = i.call(f, [state, item])?;
            ticks.advance();
        }
        Ok(state)
    })
}

fn holds(interp: &mut Interp, f: &Value, item: &Value) -> Eval<bool> {
    interp.call(f, [item.clone()])?.truthy()
}

fn map(interp: &mut Interp, args: &[Value]) -> Eval<Vec<Value>> {
    match interp.staged_map(&args[0], &args[1..])? {
        Some(items) => Ok(items),
        None => unrolled_map(interp, args),
    }
}

fn unrolled_map(interp: &mut Interp, args: &[Value]) -> Eval<Vec<Value>> {
    let mut columns = args[1..].iter().map(|xs| interp.items_in(xs)).collect::<Eval<Vec<_>>>()?;
    let n = columns.iter().map(ItemsOf::len).min().unwrap_or(0);
    let mut ticks = interp.ticks(&args[1..], n);
    interp.in_loop(n as u64, |i| {
        let mut results = Vec::with_capacity(n);
        for _ in 0..n {
            let mut row: SmallVec<[Value; 2]> = SmallVec::with_capacity(columns.len());
            for column in &mut columns {
                row.extend(column.next(i)?);
            }
            results.push(i.call(&args[0], row)?);
            ticks.advance();
        }
        Ok(results)
    })
}

fn nth(interp: &mut Interp, xs: &Value, n: &Value) -> Eval<Value> {
    match xs {
        Value::Tensor(t) => return interp.row(t, n),
        Value::Handle(handle) => return interp.handle_get(handle, n),
        _ => {}
    }
    let n = as_index(n, "the position")?;
    if let Some(item) = item(xs, n)? {
        return Ok(item);
    }
    let (whole, kind) = if matches!(xs, Value::Str(_)) { ("text", "characters") } else { ("list", "items") };
    let length = length(xs)?;
    fail(format!("position {n} is outside of a {whole} of {length} {kind}"))
}

/// The item at `n`, or nil past the end.
fn item_or_nil(interp: &mut Interp, xs: &Value, n: i64) -> Eval<Value> {
    match xs {
        Value::Nil => Ok(Value::Nil),
        Value::Tensor(t) => interp.row(t, &Value::Int(n)),
        Value::Handle(handle) => {
            let at = if n < 0 { n + handle.count() as i64 } else { n };
            match usize::try_from(at).ok().filter(|at| *at < handle.count()) {
                Some(at) => interp.handle_item(handle, at),
                None => Ok(Value::Nil),
            }
        }
        _ => Ok(item(xs, n)?.unwrap_or(Value::Nil)),
    }
}

/// An item of a list or string by position, negative from the end.
fn item(xs: &Value, n: i64) -> Eval<Option<Value>> {
    let at = |count: usize| {
        let at = if n < 0 { n + count as i64 } else { n };
        usize::try_from(at).ok().filter(|at| *at < count)
    };
    match xs {
        Value::Str(s) => {
            let at = at(s.chars().count());
            Ok(at.and_then(|at| s.chars().nth(at)).map(|c| Value::text(c.to_string())))
        }
        Value::List(list) => Ok(at(list.items.len()).map(|at| list.items[at].clone())),
        Value::Nil => Err(super::nil("a list, a tensor or a string")),
        other => fail(format!("expected a list, a tensor or a string, got {}", other.describe())),
    }
}

fn index_of(xs: &Value, x: &Value) -> Eval<Value> {
    if let Value::Str(text) = xs {
        let Value::Str(part) = x else {
            return fail(format!("in a string a string is looked for, not {}", x.describe()));
        };
        let at = text.find(&**part).map(|at| text[..at].chars().count() as i64);
        return Ok(Value::Int(at.unwrap_or(-1)));
    }
    match xs {
        Value::List(list) => {
            for (at, item) in list.items.iter().enumerate() {
                if super::structurally_equal(item, x)? {
                    return Ok(Value::Int(at as i64));
                }
            }
            Ok(Value::Int(-1))
        }
        other => {
            Err(Diagnostic::error(format!("index-of looks in a list or a string, got {}", other.describe()))
                .help("(argmax (= x v)) is the first position of v in a tensor")
                .into())
        }
    }
}

pub(super) fn length(xs: &Value) -> Eval<i64> {
    Ok(match xs {
        Value::Nil => return Err(super::nil("something with a length")),
        Value::List(list) => list.items.len() as i64,
        Value::Dict(dict) => dict.len() as i64,
        Value::Str(s) => s.chars().count() as i64,
        Value::Tensor(t) if t.ty().rank() > 0 => t.shape()[0] as i64,
        Value::Handle(handle) => handle.count() as i64,
        other => {
            return Err(Diagnostic::error(format!("{} has no length", other.describe()))
                .help("lists, strings, dictionaries and tensors with axes have one; (size x) counts the elements of a tensor")
                .into());
        }
    })
}
