//! Function transformations.

use std::rc::Rc;

use ustr::Ustr;

use super::operands::{as_index, as_integers};
use super::{Builtin, VARIADIC, parse};
use crate::eval::{Eval, Interp, Signal, Stop, fail, map_trees};
use crate::program::{Axes, Function, GradOptions, Transform, Value};
use sheaf_graph::primitives as p;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum nesting of transformations of a function.
const MAX_TRANSFORMS: usize = 100;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "value-and-grad",
        "(value-and-grad f :wrt i :aux)",
        "a function that gives [value gradient] of f, which gives one float; the gradient has the structure of the \
         first argument, or of those at the positions :wrt; with :aux f gives [loss extra] and the result is \
         [[loss extra] gradient]",
        (1, VARIADIC),
        |_, a| grad(a, true),
    )
    .examples(
        "((value-and-grad (fn [x] (sum (* x x)))) [1 2]) ;=> '[5.0 [2. 4.]]\n\
         ((value-and-grad (fn [x y] (* x y)) :wrt '[0 1]) 2.0 3.0) ;=> '[6.0 [3.0 2.0]]\n\
         ((value-and-grad (fn [x] (* 2 x))) [1 2]) ;=> error: wants a scalar float loss",
    ),
    Builtin::new(
        "grad",
        "(grad f :wrt i :aux)",
        "a function that gives the gradient of f alone; options as for value-and-grad, with :aux [gradient extra]",
        (1, VARIADIC),
        |_, a| grad(a, false),
    )
    .examples(
        "((grad (fn [x] (* x x))) 3.0) ;=> 6.0\n\
         ((grad (fn [p] (sum (* (:w p) [1 2])))) {:w [5 6]}) ;=> {:w [1. 2.]}\n\
         ((grad (grad (fn [x] (** x 3)))) 2.0) ;=> 12.0",
    ),
    Builtin::new(
        "jvp",
        "(jvp f)",
        "a function of the arguments of f, then a tangent for each, that gives [value tangent]: f at the point, and \
         its derivative in that direction, in forward mode; trees move by trees of the same structure",
        (1, 1),
        |_, a| transformed(&a[0], Transform::Jvp),
    )
    .examples(
        "((jvp (fn [x] (* x x))) 3.0 1.0) ;=> '[9.0 6.0]\n\
         ((jvp (fn [x y] (* x y))) [1 2] [3 4] [1 0] [0 1]) ;=> '[[3. 8.] [3. 2.]]\n\
         ((jvp sin) 0.0) ;=> error: it takes those of f, then a tangent for each",
    ),
    Builtin::new(
        "jacobian",
        "(jacobian f)",
        "a function that gives all partial derivatives of f by its first argument: for a result of shape R and an \
         argument of shape A a tensor of shape R then A; for trees a tree of those, by result, then by argument",
        (1, 1),
        |_, a| transformed(&a[0], Transform::Jacobian),
    )
    .examples(
        "((jacobian (fn [x] (* x x))) [1 2]) ;=> [[2 0] [0 4]]\n\
         (shape ((jacobian (fn [w] (@ [1 2] w))) (ones '[2 3]))) ;=> '[3 2 3]",
    ),
    Builtin::new(
        "vmap",
        "(vmap f in-axes?)",
        "a function that maps f over axis 0 of every tensor in its arguments at once, results stacked along axis 0; \
         in-axes is an axis for all, or a list with an axis, a tree of axes, or nil (the same for all) for each argument",
        (1, 2),
        |_, a| {
            let axes = match a.get(1) {
                None => Axes::Every(Some(0)),
                Some(value) => as_axes(value).map_err(|signal| match *signal {
                    Stop::Error(_) => no_axes(&a[0], value),
                    Stop::Trace(_) => signal,
                })?,
            };
            if let (Axes::Items(items), Some(count)) = (&axes, parameters(&a[0]))
                && items.len() != count
            {
                return Err(no_axes(&a[0], &a[1]));
            }
            transformed(&a[0], Transform::Vmap(axes))
        },
    )
    .examples(
        "((vmap (fn [x] (sum x))) [[1 2] [3 4]]) ;=> [3 7]\n\
         ((vmap (fn [x w] (@ x w)) [0 nil]) [[1 2] [3 4]] [10 1]) ;=> [12 34]\n\
         ((vmap (fn [x y] (+ x y))) [1 2] [1 2 3]) ;=> error: axes of different extents",
    ),
    Builtin::new(
        "scan",
        "(scan f init xs)",
        "a loop over xs that carries a state: f of the state and an item gives [state output], the whole is [the last \
         state, the outputs stacked]; xs is a tensor along axis 0, a list, or a dictionary of those taken side by side; \
         state and output are trees",
        (3, 3),
        |i, a| match &a[0] {
            f @ Value::Function(_) => i.scan(f, &a[1], &a[2]),
            other => Err(Diagnostic::error(format!("scan takes a function first, got {}", other.describe()))
                .help("the state it starts from comes second: (scan f init xs)")
                .into()),
        },
    )
    .takes_whole()
    .examples(
        "(scan (fn [c x] [(+ c x) (* c x)]) 0 [1 2 3]) ;=> '[6.0 [0 2 9]]\n\
         (scan (fn [c {:keys [x y]}] (list (+ c (* x y)) x)) 0 {:x [1 2] :y [3 4]}) ;=> '[11.0 [1 2]]\n\
         (scan (fn [c x] (+ c x)) 0 [1 2]) ;=> error: scan wants [state output]",
    ),
    Builtin::new(
        "stop-gradient",
        "(stop-gradient x)",
        "x, which derivatives take for a constant; of a tree, every leaf",
        (1, 1),
        stop_gradient,
    )
    .examples("((grad (fn [x] (* x (stop-gradient x)))) 3.0) ;=> 3.0"),
    Builtin::new(
        "checkpoint",
        "(checkpoint f)",
        "f, whose inside the backward pass computes again instead of keeping it: less memory, more work",
        (1, 1),
        |_, a| transformed(&a[0], Transform::Checkpoint),
    )
    .examples(
        "((checkpoint (fn [x] (* x x))) 3) ;=> 9\n\
         ((grad (checkpoint (fn [x] (* x x)))) 3.0) ;=> 6.0",
    ),
];

fn function<'a>(value: &'a Value, wanted_by: &str) -> Eval<&'a Rc<Function>> {
    match value {
        Value::Function(f) => Ok(f),
        other => Err(Diagnostic::error(format!("{wanted_by} takes a function, got {}", other.describe()))
            .help(format!("first ({wanted_by} f), then the call: (({wanted_by} f) x)"))
            .into()),
    }
}

fn transformed(f: &Value, transform: Transform) -> Eval<Value> {
    let f = Rc::clone(function(f, transform.name())?);
    // Recursive walks over transformations rely on this limit.
    if f.transforms() >= MAX_TRANSFORMS {
        return fail(format!("transforms are nested more than {MAX_TRANSFORMS} deep"));
    }
    Ok(Value::function(Function::Transformed(transform, f)))
}

fn grad(args: &[Value], value: bool) -> Eval<Value> {
    let parsed = parse(args, &["wrt"], &["aux"])?;
    let name = if value { "value-and-grad" } else { "grad" };
    let [f] = parsed.positional.as_slice() else {
        return Err(Diagnostic::error(format!(
            "{name} takes one function, got {} arguments",
            parsed.positional.len()
        ))
        .help(format!("first ({name} f), then the call: (({name} f) x)"))
        .into());
    };
    let (wrt, wrt_list) = match parsed.option("wrt") {
        None => (vec![0], false),
        Some(option) => {
            let position = |i| usize::try_from(i).or_else(|_| fail(":wrt counts arguments from 0"));
            let wrt = as_integers(option, ":wrt")?.into_iter().map(position).collect::<Eval<Vec<usize>>>()?;
            let list = match option {
                Value::Tensor(t) => t.ty().rank() > 0,
                other => matches!(other, Value::List(_)),
            };
            (wrt, list)
        }
    };
    if wrt.is_empty() {
        return fail(":wrt names no argument");
    }
    if let Some(twice) = wrt.iter().enumerate().find(|(i, n)| wrt[..*i].contains(n)) {
        return fail(format!(":wrt names argument {} twice", twice.1));
    }
    let options = GradOptions { wrt, wrt_list, aux: parsed.flag("aux"), value };
    transformed(f, Transform::Grad(options))
}

/// The number of parameters of a function of the program, if it is fixed.
fn parameters(f: &Value) -> Option<usize> {
    let Value::Function(f) = f else { return None };
    let Function::Closure(closure) = &**f else { return None };
    closure.code.rest.is_none().then_some(closure.code.params.len())
}

/// The error for in-axes of `vmap` that are no axes of the arguments of `f`, but more likely an argument.
fn no_axes(f: &Value, value: &Value) -> Signal {
    let wanted = match parameters(f) {
        Some(1) => "of the one argument of f".into(),
        Some(n) => format!("of the {n} arguments of f"),
        None => "of the arguments of f".into(),
    };
    Diagnostic::error(format!("vmap takes in-axes second, the axes {wanted}, got {}", value.describe()))
        .help("first (vmap f), then the call: ((vmap f) xs)")
        .into()
}

/// The axes of an in-axes value.
fn as_axes(value: &Value) -> Eval<Axes> {
    Ok(match value {
        Value::Nil => Axes::Every(None),
        Value::List(list) => Axes::Items(list.items.iter().map(as_axes).collect::<Eval<_>>()?),
        Value::Tensor(t) if t.ty().rank() == 1 => {
            let axes = as_integers(value, "in-axes")?;
            Axes::Items(axes.into_iter().map(|axis| Axes::Every(Some(axis))).collect())
        }
        Value::Dict(dict) => {
            let mut entries: Vec<(Ustr, Axes)> =
                dict.iter().map(|(key, v)| Ok((key.name, as_axes(v)?))).collect::<Eval<_>>()?;
            entries.sort_unstable_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
            Axes::Entries(entries)
        }
        other => Axes::Every(Some(as_index(other, "an axis")?)),
    })
}

fn stop_gradient(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    map_trees(args, &mut |_, leaf| match &leaf[0] {
        Value::Tensor(t) => Ok(Value::from(interp.op(p::StopGradient, &[t])?)),
        other => Ok(other.clone()),
    })
}
