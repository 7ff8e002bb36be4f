//! Pytrees.

use super::{Builtin, MANY};
use crate::eval::{Value, flatten, map_trees};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "tree-map",
        "(tree-map f t ...)",
        "f of each leaf, or of the leaves of several trees",
        (2, MANY),
        |i, a| {
            let f = a[0].clone();
            map_trees(&a[1..], &mut |_, leaves| i.call(&f, leaves.iter().cloned().collect()))
        },
    ),
    Builtin::new("flatten", "(flatten tree)", "the list of leaves, keys sorted", (1, 1), |_, a| {
        Ok(Value::list(flatten(&a[0])))
    }),
    Builtin::new("tree-reduce", "(tree-reduce f tree init?)", "folds the leaves with f", (2, 3), |i, a| {
        let mut leaves = flatten(&a[1]).into_iter();
        let Some(first) = a.get(2).cloned().or_else(|| leaves.next()) else { return Ok(Value::Nil) };
        leaves.try_fold(first, |acc, leaf| i.call(&a[0], [acc, leaf].into_iter().collect()))
    }),
];
