//! Pytrees.

use super::operands::broadcast_shapes;
use super::{Builtin, VARIADIC};
use crate::eval::{Eval, Interp, KeyPath, Signal, Tree, fail, flatten, map_trees, unflatten};
use crate::program::Value;
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "tree-map",
        "(tree-map f tree ...)",
        "f of each leaf, in the structure of the tree; of several trees of one structure, f of the leaves at the same \
         key path",
        (2, VARIADIC),
        |i, a| map_trees(&a[1..], &mut |path, leaves| call_on_leaf(i, &a[0], leaves, path)),
    )
    .examples(
        "(tree-map (fn [x] (* 2 x)) {:a [1 2] :b '(3)}) ;=> {:a [2 4] :b '[6]}\n\
         (tree-map - {:a 5 :b 6} {:b 2 :a 1}) ;=> {:a 4 :b 4}\n\
         (tree-map + {:a {:b 1}} {:a {:c 1}}) ;=> error: the trees differ at [:a]",
    ),
    Builtin::new(
        "flatten",
        "(flatten tree)",
        "the list of leaves, depth first, dictionary keys sorted",
        (1, 1),
        |_, a| Ok(Value::list(flatten(&a[0]))),
    )
    .examples("(flatten {:b 1 :a '[2 {:c 3}]}) ;=> '[2 3 1]"),
    Builtin::new(
        "tree-reduce",
        "(tree-reduce f tree init?)",
        "folds the leaves with f of what the leaves before gave and the next, from init or the first leaf",
        (2, 3),
        reduce,
    )
    .examples(
        "(tree-reduce + {:a 1 :b '[2 3]}) ;=> 6\n\
         (tree-reduce (fn [a x] (+ a (sum x))) {:a [1 2] :b [[3 4 5]]} 0) ;=> 15.0\n\
         (tree-reduce + {:a [1 2] :b [3 4 5]}) ;=> error: does not broadcast",
    ),
    Builtin::new(
        "tree-unflatten",
        "(tree-unflatten structure leaves)",
        "the tree of that structure, as tree-flatten or another tree has it, with these leaves",
        (2, 2),
        |i, a| {
            let leaves = i.sequence(&a[1])?;
            let wanted = flatten(&a[0]).len();
            if wanted != leaves.len() {
                return fail(format!("the structure has {wanted} leaves, {} were given", leaves.len()));
            }
            unflatten(&Tree::of(&a[0]), &mut leaves.into_iter())
        },
    )
    .examples(
        "(tree-unflatten {:b 0 :a 0} '[1 2]) ;=> {:b 2 :a 1}\n\
         (tree-unflatten '[* *] '[1]) ;=> error: the structure has 2 leaves, 1 were given",
    ),
];

/// Calls `f` on leaves; an error gets their key path.
fn call_on_leaf(interp: &mut Interp, f: &Value, leaves: &[Value], path: &KeyPath) -> Eval<Value> {
    let result = interp.call(f, leaves.iter().cloned());
    if path.is_root() { result } else { result.map_err(|signal| signal.note(format!("at the leaf {path}"))) }
}

fn reduce(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let mut acc = args.get(2).cloned();
    map_trees(&args[1..2], &mut |path, leaf| {
        let next = match acc.take() {
            None => leaf[0].clone(),
            Some(before) => call_on_leaf(interp, &args[0], &[before.clone(), leaf[0].clone()], path)
                .map_err(|signal| shapes_differ(interp, &before, &leaf[0], path).unwrap_or(signal))?,
        };
        acc = Some(next);
        Ok(Value::Nil)
    })?;
    acc.map_or_else(
        || {
            Err(Diagnostic::error("tree-reduce of a tree without leaves has no result")
                .help("give an initial value: (tree-reduce f tree 0)")
                .into())
        },
        Ok,
    )
}

/// The error for a leaf whose shape does not match the results of earlier leaves.
fn shapes_differ(interp: &Interp, before: &Value, leaf: &Value, path: &KeyPath) -> Option<Signal> {
    let (Value::Tensor(a), Value::Tensor(b)) = (before, leaf) else { return None };
    broadcast_shapes(a.ty(), b.ty()).err()?;
    let d = Diagnostic::error(format!(
        "the leaf {path}, {}, does not broadcast with {}, what the leaves before gave",
        b.ty(),
        a.ty()
    ))
    .help("to add up every number: (tree-reduce (fn [a x] (+ a (sum x))) tree 0)");
    Some(interp.span.map_or_else(|| d.clone(), |span| d.clone().at(span, "")).into())
}
