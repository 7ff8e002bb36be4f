//! Value trees as tensors with dotted names and a description of all else, so that loading gives back what was saved: weak
//! numbers, strings, keywords, lists, the order of keys. Other tools see the tensors and the numbers.
//!
//! The description lists the leaves in order, each with its path: `["t", ":params", ":l1", ":W"]`. A step is a key,
//! `:name` or `"name"` as it was written, or a position in a list.

use std::collections::HashMap;
use std::rc::Rc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use ustr::Ustr;

use super::broken;
use super::names::{MAX_DEPTH, refuse_dot, shortened};
use crate::eval::{Eval, Interp, Signal};
use crate::program::{Dict, Key, Tensor, Value};
use sheaf_graph::tensor::{DType, HostTensor};
use sheaf_syntax::diagnostic::Diagnostic;

/// Version of the description.
const VERSION: u32 = 1;

/// A tree as tensors with dotted names, and the rest.
pub(super) struct Saved {
    pub tensors: Vec<(String, Tensor)>,
    /// The description, as JSON.
    pub described: String,
}

#[derive(Serialize, Deserialize)]
struct Description {
    version: u32,
    /// The leaves, and the lists and dictionaries without any, in order.
    leaves: Vec<Leaf>,
}

#[derive(Serialize, Deserialize)]
struct Leaf {
    path: Vec<Step>,
    #[serde(flatten)]
    kind: Kind,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
enum Step {
    /// A position in a list.
    At(usize),
    /// A key: `:name`, or `"name` for one written as a string.
    Key(String),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(tag = "is", content = "value", rename_all = "lowercase")]
enum Kind {
    /// A tensor of the file, by the dotted path.
    Tensor,
    /// A weak integer, a weak float, a boolean: tensors of rank 0 in the file.
    Int,
    Float,
    Bool,
    Nil,
    String(String),
    Keyword(String),
    Symbol(String),
    /// Without items.
    List,
    /// Without entries.
    Dict,
}

/// The tensors and the description of a tree.
pub(super) fn saved(interp: &mut Interp, path: &str, value: &Value) -> Eval<Saved> {
    if !matches!(value, Value::Dict(_) | Value::List(_)) {
        return Err(Diagnostic::error(format!(
            "a .safetensors file holds a dictionary or a list, not {}",
            value.describe()
        ))
        .help("give it a name: {:x x}; a .npy file holds one tensor")
        .into());
    }
    let mut saving = Saving::new(interp, path);
    saving.add(value)?;
    let Saving { leaves, tensors, .. } = saving;
    let description = Description { version: VERSION, leaves };
    let described =
        serde_json::to_string(&description).map_err(|e| broken(path, e, "the value must be JSON"))?;
    Ok(Saved { tensors, described })
}

/// The tensors and numbers of a tree that has nothing else, by dotted names.
pub(super) fn tensors(interp: &mut Interp, path: &str, value: &Value) -> Eval<Vec<(String, Tensor)>> {
    if !matches!(value, Value::Dict(_) | Value::List(_)) {
        return Err(Diagnostic::error(format!(
            "a .npz holds a dictionary of tensors, not {}",
            value.describe()
        ))
        .help("give it a name: {:x x}; a .npy file holds one tensor")
        .into());
    }
    let mut saving = Saving { tensors_alone: true, ..Saving::new(interp, path) };
    saving.add(value)?;
    Ok(saving.tensors)
}

struct Saving<'a> {
    interp: &'a mut Interp,
    file: &'a str,
    steps: Vec<Step>,
    leaves: Vec<Leaf>,
    tensors: Vec<(String, Tensor)>,
    /// True if the format holds nothing else.
    tensors_alone: bool,
}

impl<'a> Saving<'a> {
    fn new(interp: &'a mut Interp, file: &'a str) -> Saving<'a> {
        Saving {
            interp,
            file,
            steps: Vec::new(),
            leaves: Vec::new(),
            tensors: Vec::new(),
            tensors_alone: false,
        }
    }

    fn add(&mut self, value: &Value) -> Eval<()> {
        if self.steps.len() > MAX_DEPTH {
            let help = format!("dictionaries and lists nest at most {MAX_DEPTH} deep in a file");
            return Err(broken(self.file, "the value is nested too deep", help));
        }
        let kind = match value {
            Value::List(list) if !list.items.is_empty() => {
                for (i, item) in list.items.iter().enumerate() {
                    self.below(Step::At(i), item)?;
                }
                return Ok(());
            }
            Value::Dict(dict) if !dict.is_empty() => {
                for (key, value) in dict.iter() {
                    refuse_dot(&key, self.file)?;
                    self.below(Step::of(&key), value)?;
                }
                return Ok(());
            }
            Value::List(_) => Kind::List,
            Value::Dict(_) => Kind::Dict,
            Value::Nil => Kind::Nil,
            Value::Str(text) => Kind::String(text.to_string()),
            Value::Keyword(name) => Kind::Keyword(name.to_string()),
            Value::Symbol(name) => Kind::Symbol(name.to_string()),
            Value::Int(n) => self.tensor(Kind::Int, Tensor::host(HostTensor::scalar(*n))),
            Value::Float(x) => self.tensor(Kind::Float, Tensor::host(HostTensor::scalar(*x))),
            Value::Bool(b) => self.tensor(Kind::Bool, Tensor::host(HostTensor::scalar(*b))),
            Value::Tensor(t) if t.ty().weak => {
                let number = t.elements("what io is given")?.clone();
                return self.add(&Value::from(Tensor::weak(number)));
            }
            Value::Tensor(t) => self.tensor(Kind::Tensor, t.clone()),
            Value::Handle(handle) if handle.rows().is_some() => {
                let whole = self.interp.whole(handle)?;
                self.tensor(Kind::Tensor, whole)
            }
            Value::Handle(_) | Value::Tokenizer(_) | Value::Function(_) | Value::Range(_) => {
                return Err(self.refused(value));
            }
        };
        if self.tensors_alone && !matches!(kind, Kind::Tensor | Kind::Int | Kind::Float | Kind::Bool) {
            return Err(self.refused(value));
        }
        self.leaves.push(Leaf { path: self.steps.clone(), kind });
        Ok(())
    }

    fn below(&mut self, step: Step, value: &Value) -> Eval<()> {
        self.steps.push(step);
        self.add(value)?;
        self.steps.pop();
        Ok(())
    }

    fn tensor(&mut self, kind: Kind, tensor: Tensor) -> Kind {
        self.tensors.push((name_of(&self.steps), tensor));
        kind
    }

    fn refused(&self, value: &Value) -> Signal {
        let what = format!("{} at {} cannot be saved", value.describe(), name_of(&self.steps));
        let help = if self.tensors_alone {
            "arrays of NumPy are tensors, numbers and booleans; a .safetensors file holds strings, keywords and empty lists too"
        } else {
            "a file holds tensors, numbers, booleans, strings, keywords, lists and dictionaries"
        };
        broken(self.file, what, help)
    }
}

impl Step {
    fn of(key: &Key) -> Step {
        Step::Key(format!("{}{}", if key.quoted { '"' } else { ':' }, key.name))
    }

    /// The key of a dictionary; `None` for a position, or if there is no such key.
    fn key(&self) -> Option<Key> {
        let Step::Key(text) = self else { return None };
        let name = text.strip_prefix(':').or_else(|| text.strip_prefix('"'))?;
        Some(Key { name: name.into(), quoted: text.starts_with('"') })
    }
}

/// The dotted name of a path.
fn name_of(steps: &[Step]) -> String {
    let part = |step: &Step| match step {
        Step::At(i) => i.to_string(),
        Step::Key(text) => text[1..].to_owned(),
    };
    steps.iter().map(part).collect::<Vec<_>>().join(".")
}

/// A tree that is being put together.
enum Node {
    Leaf(Value),
    List(Vec<Node>),
    Dict(IndexMap<Ustr, (Key, Node)>),
}

/// The tree that was saved with this description.
pub(super) fn restored(path: &str, described: &str, tensors: Vec<(String, Value)>) -> Eval<Value> {
    let wrong = |what: String| {
        broken(
            path,
            what,
            "the metadata \"sheaf\" is damaged, or the file was changed by another tool: remove it there",
        )
    };
    let description: Description = serde_json::from_str(described)
        .map_err(|e| wrong(format!("its description of the saved value cannot be read: {e}")))?;
    if description.version != VERSION {
        let found = description.version;
        return Err(broken(
            path,
            format!("its description of the saved value has version {found}, and this Sheaf knows {VERSION}"),
            "use the Sheaf that saved it",
        ));
    }
    let mut tensors: HashMap<String, Value> = tensors.into_iter().collect();
    let mut root = None;
    for leaf in description.leaves {
        let valid = leaf.path.len() <= MAX_DEPTH + 1
            && leaf.path.iter().all(|step| matches!(step, Step::At(_)) || step.key().is_some());
        if !valid {
            return Err(wrong("its description of the saved value has a path that is none".into()));
        }
        let name = name_of(&leaf.path);
        let value = match leaf.kind {
            Kind::Nil => Value::Nil,
            Kind::String(text) => Value::text(text),
            Kind::Keyword(name) => Value::Keyword(name.as_str().into()),
            Kind::Symbol(name) => Value::Symbol(name.as_str().into()),
            Kind::List => Value::list(Vec::new()),
            Kind::Dict => Value::Dict(Rc::new(Dict::default())),
            kind => {
                let Some(tensor) = tensors.remove(&name) else {
                    return Err(wrong(format!(
                        "the saved value has a tensor {}, and the file does not",
                        shortened(&name)
                    )));
                };
                number(&kind, tensor).ok_or_else(|| {
                    wrong(format!("{} has not the type that the saved value has there", shortened(&name)))
                })?
            }
        };
        if !place(&mut root, &leaf.path, value) {
            return Err(wrong(format!("the saved value has {} twice, or out of order", shortened(&name))));
        }
    }
    if let Some(name) = tensors.keys().min() {
        return Err(wrong(format!(
            "the file has a tensor {}, and the saved value does not",
            shortened(name)
        )));
    }
    Ok(root.map_or_else(|| Value::Dict(Rc::new(Dict::default())), whole))
}

/// A tensor of the file as the leaf that it stands for.
fn number(kind: &Kind, tensor: Value) -> Option<Value> {
    let Value::Tensor(t) = &tensor else { return None };
    let scalar = |value: &Value| match value {
        Value::Tensor(t) if t.ty().rank() == 0 => t.elements("").ok().cloned(),
        _ => None,
    };
    let (wanted, host) = match kind {
        Kind::Int => (DType::I64, scalar(&tensor)?),
        Kind::Float => (DType::F64, scalar(&tensor)?),
        Kind::Bool => (DType::Bool, scalar(&tensor)?),
        _ => return Some(tensor),
    };
    if t.ty().dtype != wanted {
        return None;
    }
    Some(match kind {
        Kind::Int => Value::Int(host.element_i64(0)),
        Kind::Float => Value::Float(host.element_f64(0)),
        _ => Value::Bool(host.element_i64(0) != 0),
    })
}

/// Puts a leaf at a path. False if something else is there, or items of a list are not in order.
fn place(root: &mut Option<Node>, path: &[Step], value: Value) -> bool {
    let Some((last, inner)) = path.split_last() else {
        return root.replace(Node::Leaf(value)).is_none();
    };
    let container = |step: &Step| match step {
        Step::At(_) => Node::List(Vec::new()),
        Step::Key(_) => Node::Dict(IndexMap::new()),
    };
    let mut node = root.get_or_insert_with(|| container(&path[0]));
    for (i, step) in inner.iter().enumerate() {
        let Some(next) = child(node, step, || container(&path[i + 1])) else { return false };
        node = next;
    }
    match (node, last) {
        (Node::List(items), Step::At(i)) if items.len() == *i => items.push(Node::Leaf(value)),
        (Node::Dict(entries), step) => {
            let Some(key) = step.key() else { return false };
            return entries.insert(key.name, (key, Node::Leaf(value))).is_none();
        }
        _ => return false,
    }
    true
}

/// The node below `node` at a step: the last one, or a new one. `None` if that is out of order.
fn child<'n>(node: &'n mut Node, step: &Step, new: impl FnOnce() -> Node) -> Option<&'n mut Node> {
    match (node, step) {
        (Node::List(items), Step::At(i)) => {
            if items.len() == *i {
                items.push(new());
            }
            (items.len() == i + 1).then(|| items.last_mut()).flatten()
        }
        (Node::Dict(entries), step) => {
            let key = step.key()?;
            Some(&mut entries.entry(key.name).or_insert_with(|| (key, new())).1)
        }
        _ => None,
    }
}

fn whole(node: Node) -> Value {
    match node {
        Node::Leaf(value) => value,
        Node::List(items) => Value::list(items.into_iter().map(whole).collect()),
        Node::Dict(entries) => {
            Value::Dict(Rc::new(entries.into_values().map(|(key, node)| (key, whole(node))).collect()))
        }
    }
}
