//! Pytrees: nested dictionaries and lists over leaves. Leaves are ordered depth first, dictionary keys sorted.

use std::fmt;
use std::rc::Rc;

use ustr::Ustr;

use super::signal::{Eval, Signal, fail};
use crate::program::{Dict, Key, List, Value};
use crate::stack::maybe_grow;
use sheaf_syntax::Bracket;
use sheaf_syntax::diagnostic::Diagnostic;

/// The structure of a pytree without its leaves.
#[derive(Clone, Debug)]
pub enum Tree {
    /// Anything that is neither a list nor a dictionary.
    Leaf,
    /// A list.
    List(Bracket, Vec<Tree>),
    /// A dictionary, in insertion order.
    Dict(Vec<(Key, Tree)>),
}

impl Tree {
    /// The structure of `value`.
    pub fn of(value: &Value) -> Tree {
        match value {
            Value::List(list) => {
                Tree::List(list.bracket, maybe_grow(|| list.items.iter().map(Tree::of).collect()))
            }
            Value::Dict(dict) => {
                Tree::Dict(maybe_grow(|| dict.iter().map(|(k, v)| (k, Tree::of(v))).collect()))
            }
            _ => Tree::Leaf,
        }
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        match self {
            Tree::Leaf => {}
            Tree::List(_, items) => maybe_grow(|| items.clear()),
            Tree::Dict(entries) => maybe_grow(|| entries.clear()),
        }
    }
}

/// The positions of dictionary entries in the order of their keys.
fn sorted_order(keys: impl Iterator<Item = Key>) -> Vec<usize> {
    let mut order: Vec<(Key, usize)> = keys.zip(0..).collect();
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
        Value::List(list) => maybe_grow(|| list.items.iter().for_each(|v| push_leaves(v, leaves))),
        Value::Dict(dict) => {
            dict.sorted().into_iter().for_each(|(_, _, v)| maybe_grow(|| push_leaves(v, leaves)));
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
            let items =
                maybe_grow(|| items.iter().map(|t| unflatten(t, leaves)).collect::<Eval<Vec<Value>>>())?;
            Ok(Value::List(Rc::new(List { bracket: *bracket, items: items.into(), origin: None })))
        }
        Tree::Dict(entries) => {
            let mut dict: Dict = entries.iter().map(|(k, _)| (*k, Value::Nil)).collect();
            for i in sorted_order(entries.iter().map(|(k, _)| *k)) {
                let (key, tree) = &entries[i];
                dict.insert(*key, maybe_grow(|| unflatten(tree, leaves))?);
            }
            Ok(Value::Dict(Rc::new(dict)))
        }
    }
}

/// Key path of a leaf: keys and positions from the root, shown as `get-in` takes them.
#[derive(Clone, Debug, Default)]
pub struct KeyPath(Vec<Step>);

#[derive(Clone, Debug)]
enum Step {
    Item(usize),
    Key(Ustr),
}

impl KeyPath {
    /// True if the tree itself is a leaf.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// The path below its first step.
    #[must_use]
    pub fn below_first(mut self) -> KeyPath {
        self.0.drain(..self.0.len().min(1));
        self
    }
}

/// `[:l1 0 :W]`; the root is `[]`.
impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, step) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            match step {
                Step::Item(i) => write!(f, "{i}")?,
                Step::Key(key) => write!(f, ":{key}")?,
            }
        }
        f.write_str("]")
    }
}

/// Applies `f` to the leaves of trees of one structure, matched by key path, in the order of [`flatten`]; the result
/// has the first tree's order.
pub fn map_trees(trees: &[Value], f: &mut impl FnMut(&KeyPath, &[Value]) -> Eval<Value>) -> Eval<Value> {
    map_below(trees, &mut KeyPath::default(), f)
}

fn map_below(
    trees: &[Value],
    path: &mut KeyPath,
    f: &mut impl FnMut(&KeyPath, &[Value]) -> Eval<Value>,
) -> Eval<Value> {
    if let Some((i, other)) = trees.iter().enumerate().find(|(_, tree)| !alike(&trees[0], tree)) {
        return Err(differ(path, &trees[0], i, other));
    }
    match &trees[0] {
        Value::List(first) => {
            let mut items = Vec::with_capacity(first.items.len());
            for i in 0..first.items.len() {
                items.push(maybe_grow(|| map_child(trees, Step::Item(i), path, f))?);
            }
            Ok(Value::List(Rc::new(List { bracket: first.bracket, items: items.into(), origin: None })))
        }
        Value::Dict(first) => {
            let mut out: Dict = (**first).clone();
            for (_, key, _) in first.sorted() {
                out.insert(key, maybe_grow(|| map_child(trees, Step::Key(key.name), path, f))?);
            }
            Ok(Value::Dict(Rc::new(out)))
        }
        _ => f(path, trees),
    }
}

fn map_child(
    trees: &[Value],
    step: Step,
    path: &mut KeyPath,
    f: &mut impl FnMut(&KeyPath, &[Value]) -> Eval<Value>,
) -> Eval<Value> {
    let child = |tree: &Value| match (tree, &step) {
        (Value::List(list), Step::Item(i)) => list.items[*i].clone(),
        (Value::Dict(dict), Step::Key(key)) => dict[key].clone(),
        _ => unreachable!("the trees are alike"),
    };
    let row: Vec<Value> = trees.iter().map(child).collect();
    path.0.push(step);
    let result = map_below(&row, path, f);
    path.0.pop();
    result
}

/// True if two trees have the same structure at their roots.
fn alike(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) => a.items.len() == b.items.len(),
        (Value::Dict(a), Value::Dict(b)) => a.len() == b.len() && a.keys().all(|k| b.contains_key(&k)),
        (Value::List(_) | Value::Dict(_), _) | (_, Value::List(_) | Value::Dict(_)) => false,
        _ => true,
    }
}

/// The first structural difference of two trees: its path and both values.
pub fn first_difference<'a>(a: &'a Value, b: &'a Value) -> Option<(KeyPath, &'a Value, &'a Value)> {
    let mut path = KeyPath::default();
    let (a, b) = parted(a, b, &mut path)?;
    Some((path, a, b))
}

fn parted<'a>(a: &'a Value, b: &'a Value, path: &mut KeyPath) -> Option<(&'a Value, &'a Value)> {
    if !alike(a, b) {
        return Some((a, b));
    }
    let mut below = |step, a, b| {
        path.0.push(step);
        let found = maybe_grow(|| parted(a, b, path));
        if found.is_none() {
            path.0.pop();
        }
        found
    };
    match (a, b) {
        (Value::List(a), Value::List(b)) => {
            let pairs = a.items.iter().zip(&b.items).enumerate();
            pairs.into_iter().find_map(|(i, (a, b))| below(Step::Item(i), a, b))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            let mut entries = a.sorted().into_iter();
            entries.find_map(|(_, key, value)| below(Step::Key(key.name), value, &b[&key]))
        }
        _ => None,
    }
}

/// The message for trees whose structures differ at `path`.
fn differ(path: &KeyPath, first: &Value, position: usize, other: &Value) -> Signal {
    let place = if path.is_root() { "at the root".into() } else { format!("at {path}") };
    let d = Diagnostic::error(format!(
        "the trees differ {place}: the first has {}, tree {} has {}",
        first.describe(),
        position + 1,
        other.describe()
    ));
    let (Value::Dict(a), Value::Dict(b)) = (first, other) else { return d.into() };
    let missing = |from: &Dict, of: &Dict| {
        let keys: Vec<String> =
            of.keys().filter(|k| !from.contains_key(k)).map(|k| k.form().to_string()).collect();
        keys.join(" ")
    };
    let (lacks, adds) = (missing(b, a), missing(a, b));
    let mut facts = Vec::new();
    if !lacks.is_empty() {
        facts.push(format!("lacks {lacks}"));
    }
    if !adds.is_empty() {
        facts.push(format!("has {adds} besides"));
    }
    d.note(format!("tree {} {}", position + 1, facts.join(" and "))).into()
}
