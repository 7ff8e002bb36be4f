//! Dotted names of the leaves of a tree: `layers.0.W` is the entry `:W` of the entry `"0"` of the entry `:layers`.

use std::rc::Rc;

use indexmap::IndexMap;
use indexmap::map::Entry;

use super::broken;
use crate::eval::{Eval, Signal};
use crate::program::{Key, Value};

/// Maximum nesting of dictionaries and lists in a file.
pub(super) const MAX_DEPTH: usize = 200;

enum Node {
    Leaf(Value),
    Inner(IndexMap<String, Node>),
}

/// Nested dictionaries of values with dotted names.
pub(super) fn nested(path: &str, entries: impl IntoIterator<Item = (String, Value)>) -> Eval<Value> {
    let mut root = IndexMap::new();
    for (name, value) in entries {
        insert(path, &mut root, &name, value)?;
    }
    Ok(dictionary(root))
}

fn insert(path: &str, root: &mut IndexMap<String, Node>, name: &str, value: Value) -> Eval<()> {
    let steps: Vec<&str> = name.split('.').collect();
    if steps.len() > MAX_DEPTH {
        let what = format!("the name of a tensor has {} parts: {}...", steps.len(), shortened(name));
        return Err(broken(path, what, format!("dictionaries nest at most {MAX_DEPTH} deep")));
    }
    let mut node = root;
    for (i, step) in steps[..steps.len() - 1].iter().enumerate() {
        let next = node.entry((*step).to_owned()).or_insert_with(|| Node::Inner(IndexMap::new()));
        match next {
            Node::Inner(inner) => node = inner,
            Node::Leaf(_) => return Err(clash(path, &steps[..=i].join("."), name)),
        }
    }
    match node.entry(steps[steps.len() - 1].to_owned()) {
        Entry::Vacant(place) => {
            place.insert(Node::Leaf(value));
            Ok(())
        }
        Entry::Occupied(taken) => Err(match taken.get() {
            Node::Leaf(_) => broken(
                path,
                format!("there are two tensors {}", shortened(name)),
                "each tensor has a name of its own; load files with common names one by one",
            ),
            Node::Inner(_) => clash(path, name, &format!("{name}.{}", first_below(taken.get()))),
        }),
    }
}

/// The name of the first leaf below a node.
fn first_below(node: &Node) -> String {
    match node {
        Node::Inner(inner) => match inner.first() {
            Some((name, Node::Leaf(_))) => name.clone(),
            Some((name, node)) => format!("{name}.{}", first_below(node)),
            None => String::new(),
        },
        Node::Leaf(_) => String::new(),
    }
}

fn clash(path: &str, outer: &str, inner: &str) -> Signal {
    let (outer, inner) = (shortened(outer), shortened(inner));
    broken(
        path,
        format!("{outer} and {inner} are both tensors"),
        "dots divide names into nested dictionaries, in which an entry is either a tensor or a dictionary: rename one",
    )
}

/// A name of a hostile length, cut off.
pub(super) fn shortened(name: &str) -> String {
    const SHOWN: usize = 80;
    match name.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", name[..end].escape_debug()),
        None => name.escape_debug().to_string(),
    }
}

fn dictionary(entries: IndexMap<String, Node>) -> Value {
    let entries = entries.into_iter().map(|(name, node)| {
        let value = match node {
            Node::Leaf(value) => value,
            Node::Inner(inner) => dictionary(inner),
        };
        (key(&name), value)
    });
    Value::Dict(Rc::new(entries.collect()))
}

/// A keyword for a name that can be written as one, else a string.
fn key(name: &str) -> Key {
    let letters = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '/' | '+' | '*');
    let word = name.starts_with(|c: char| c.is_alphabetic() || c == '_') && name.chars().all(letters);
    Key { name: name.into(), quoted: !word }
}

/// The keys of a dictionary that cannot be part of a dotted name.
pub(super) fn refuse_dot(key: &Key, of: &str) -> Eval<()> {
    if !key.contains('.') {
        return Ok(());
    }
    Err(broken(
        of,
        format!("the key {} has a dot, which divides the names of nested dictionaries", key.form()),
        "rename the key, or save the dictionary as .json",
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::builtins::repr;
    use crate::eval::Stop;

    fn nest(names: &[&str]) -> String {
        let entries = names.iter().zip(1..).map(|(name, n)| ((*name).to_owned(), Value::Int(n)));
        match nested("f", entries) {
            Ok(value) => repr(&value),
            Err(signal) => match *signal {
                Stop::Error(d) => d.message,
                Stop::Trace(_) => unreachable!(),
            },
        }
    }

    #[test]
    fn names_become_dictionaries() {
        assert_eq!(nest(&["a.b.c", "x", "a.b.0", "a.d-e"]), "{:a {:b {:c 1 \"0\" 3} :d-e 4} :x 2}");
        assert_eq!(nest(&["", "a..b"]), "{\"\" 1 :a {\"\" {:b 2}}}");
        assert_eq!(nest(&[]), "{}");
    }

    #[test]
    fn clashes_are_errors() {
        assert_eq!(nest(&["a", "a.b"]), "f: a and a.b are both tensors");
        assert_eq!(nest(&["a.b.c", "a"]), "f: a and a.b.c are both tensors");
        assert_eq!(nest(&["a", "a"]), "f: there are two tensors a");
        let long = "a.".repeat(1000);
        assert!(nest(&[&long]).starts_with("f: the name of a tensor has 1001 parts: a.a."));
    }
}
