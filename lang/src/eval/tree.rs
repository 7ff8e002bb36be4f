//! Pytrees: nested dictionaries and lists over leaves. Leaves are ordered depth first, dictionary keys sorted.

use std::rc::Rc;

use ustr::Ustr;

use super::signal::{Eval, fail};
use super::value::{Dict, List, Value};
use crate::syntax::Bracket;

/// The structure of a pytree without its leaves.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Anything that is neither a list nor a dictionary.
    Leaf,
    /// A list.
    List(Bracket, Vec<Tree>),
    /// A dictionary, in insertion order.
    Dict(Vec<(Ustr, Tree)>),
}

impl Tree {
    /// The structure of `value`.
    pub fn of(value: &Value) -> Tree {
        match value {
            Value::List(list) => Tree::List(list.bracket, list.items.iter().map(Tree::of).collect()),
            Value::Dict(dict) => Tree::Dict(dict.iter().map(|(k, v)| (*k, Tree::of(v))).collect()),
            _ => Tree::Leaf,
        }
    }
}

/// The positions of dictionary entries in the order of their keys.
pub fn sorted_order(keys: impl Iterator<Item = Ustr>) -> Vec<usize> {
    let mut order: Vec<(Ustr, usize)> = keys.zip(0..).collect();
    order.sort_unstable_by(|a, b| a.0.as_str().cmp(b.0.as_str()));
    order.into_iter().map(|(_, i)| i).collect()
}

/// The leaves of `value`, in order.
pub fn flatten(value: &Value) -> Vec<Value> {
    let mut leaves = Vec::new();
    push_leaves(value, &mut leaves);
    leaves
}

fn push_leaves(value: &Value, leaves: &mut Vec<Value>) {
    match value {
        Value::List(list) => list.items.iter().for_each(|v| push_leaves(v, leaves)),
        Value::Dict(dict) => {
            for i in sorted_order(dict.keys().copied()) {
                push_leaves(&dict[i], leaves);
            }
        }
        leaf => leaves.push(leaf.clone()),
    }
}

/// The pytree of structure `tree` with these leaves, taken in order; fails if there are too few.
pub fn unflatten(tree: &Tree, leaves: &mut impl Iterator<Item = Value>) -> Eval<Value> {
    match tree {
        Tree::Leaf => match leaves.next() {
            Some(leaf) => Ok(leaf),
            None => fail("the structure has more leaves than were given"),
        },
        Tree::List(bracket, items) => {
            let items = items.iter().map(|t| unflatten(t, leaves)).collect::<Eval<Vec<Value>>>()?;
            Ok(Value::List(Rc::new(List { bracket: *bracket, items, origin: None })))
        }
        Tree::Dict(entries) => {
            let mut dict: Dict = entries.iter().map(|(k, _)| (*k, Value::Nil)).collect();
            for i in sorted_order(entries.iter().map(|(k, _)| *k)) {
                dict[i] = unflatten(&entries[i].1, leaves)?;
            }
            Ok(Value::Dict(Rc::new(dict)))
        }
    }
}

/// Applies `f` to the leaves of trees of one structure, matched by key path, in the order of [`flatten`]; the result
/// has the first tree's order.
pub fn map_trees(trees: &[Value], f: &mut impl FnMut(&[Value]) -> Eval<Value>) -> Eval<Value> {
    match &trees[0] {
        Value::List(first) => {
            let mut items = Vec::with_capacity(first.items.len());
            for i in 0..first.items.len() {
                let row =
                    trees.iter().map(|t| child_item(t, i, first.items.len())).collect::<Eval<Vec<_>>>()?;
                items.push(map_trees(&row, f)?);
            }
            Ok(Value::List(Rc::new(List { bracket: first.bracket, items, origin: None })))
        }
        Value::Dict(first) => {
            let mut out: Dict = (**first).clone();
            for i in sorted_order(first.keys().copied()) {
                let key = *first.get_index(i).expect("a position of a key").0;
                let row = trees.iter().map(|t| child_entry(t, key, first)).collect::<Eval<Vec<_>>>()?;
                out[i] = map_trees(&row, f)?;
            }
            Ok(Value::Dict(Rc::new(out)))
        }
        _ => f(trees),
    }
}

fn child_item(tree: &Value, i: usize, len: usize) -> Eval<Value> {
    match tree {
        Value::List(list) if list.items.len() == len => Ok(list.items[i].clone()),
        other => fail(format!(
            "the trees differ: one has a list of {len} items where another has {}",
            other.describe()
        )),
    }
}

fn child_entry(tree: &Value, key: Ustr, first: &Dict) -> Eval<Value> {
    match tree {
        Value::Dict(dict) if dict.len() == first.len() && dict.contains_key(&key) => Ok(dict[&key].clone()),
        other => fail(format!(
            "the trees differ: one has {} where another has {}",
            Value::Dict(Rc::new(first.clone())).describe(),
            other.describe()
        )),
    }
}
