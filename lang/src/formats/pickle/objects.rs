//! The objects of a pickle, and the value that they are.

use std::ops::{Index, IndexMut};
use std::rc::Rc;
use std::sync::Arc;

use super::Fault;
use super::numpy::{Array, Dtype, Global};
use crate::formats::names::MAX_DEPTH;
use crate::program::{Dict, Key, Tensor, Value};
use sheaf_graph::tensor::{DType, FilePart, HostTensor, TensorType};

/// Maximum objects of a pickle.
const MAX_OBJECTS: usize = 1 << 24;
/// Maximum objects of a value when each is counted wherever it occurs: a pickle may contain one object many times.
const MAX_EXPANDED: u64 = 1 << 26;

/// The position of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Id(u32);

pub(super) enum Object {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(String),
    /// A string of Python 2: text or bytes.
    Native(Vec<u8>),
    Bytes(FilePart),
    /// A list, a tuple or a set.
    List(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Global(Global),
    Dtype(Dtype),
    Array(Array),
}

#[derive(Default)]
pub(super) struct Objects(Vec<Object>);

impl Index<Id> for Objects {
    type Output = Object;

    fn index(&self, id: Id) -> &Object {
        &self.0[id.0 as usize]
    }
}

impl IndexMut<Id> for Objects {
    fn index_mut(&mut self, id: Id) -> &mut Object {
        &mut self.0[id.0 as usize]
    }
}

impl Objects {
    pub fn add(&mut self, object: Object) -> Result<Id, Fault> {
        if self.0.len() == MAX_OBJECTS {
            return Err(Fault::Broken(format!("it has more than {MAX_OBJECTS} objects")));
        }
        self.0.push(object);
        Ok(Id(self.0.len() as u32 - 1))
    }

    /// The items of a list or a tuple.
    pub fn items(&self, id: Id) -> Option<&[Id]> {
        if let Object::List(items) = &self[id] { Some(items) } else { None }
    }

    /// The bytes of an object: bytes of Python 3, or a string of Python 2.
    pub fn bytes(&self, id: Id) -> Option<FilePart> {
        match &self[id] {
            Object::Bytes(part) => Some(part.clone()),
            Object::Native(bytes) => Some(FilePart { range: 0..bytes.len(), file: Arc::new(bytes.clone()) }),
            _ => None,
        }
    }

    pub fn text(&self, id: Id) -> Option<&str> {
        match &self[id] {
            Object::Text(text) => Some(text),
            Object::Native(bytes) => std::str::from_utf8(bytes).ok(),
            _ => None,
        }
    }

    /// The value that an object is.
    pub fn value(&self, root: Id) -> Result<Value, Fault> {
        let mut made = Made { known: vec![Progress::New; self.0.len()] };
        Ok(made.value(self, root, 0)?.0)
    }
}

/// Values of the objects so far: an object that occurs several times is one value.
struct Made {
    known: Vec<Progress>,
}

#[derive(Clone)]
enum Progress {
    New,
    /// Its parts are being made; if it occurs among them, it contains itself.
    Begun,
    /// Its value and its size.
    Done(Value, u64),
}

impl Made {
    /// The value of an object, and the number of values in it.
    fn value(&mut self, objects: &Objects, id: Id, depth: usize) -> Result<(Value, u64), Fault> {
        if depth > MAX_DEPTH {
            return Err(Fault::Broken(format!("its data are nested more than {MAX_DEPTH} deep")));
        }
        match &self.known[id.0 as usize] {
            Progress::Done(value, size) => return Ok((value.clone(), *size)),
            Progress::Begun => {
                return Err(Fault::Broken("it has a list or a dictionary that contains itself".into()));
            }
            Progress::New => {}
        }
        self.known[id.0 as usize] = Progress::Begun;
        let mut size = 1_u64;
        let value = match &objects[id] {
            Object::List(items) => {
                let mut list = Vec::with_capacity(items.len());
                for item in items {
                    let (value, inner) = self.value(objects, *item, depth + 1)?;
                    size = size.saturating_add(inner);
                    list.push(value);
                }
                Value::list(list)
            }
            Object::Dict(entries) => {
                let mut dict = Dict::default();
                for (key, value) in entries {
                    let (value, inner) = self.value(objects, *value, depth + 1)?;
                    size = size.saturating_add(inner);
                    dict.insert(key_of(objects, *key)?, value);
                }
                Value::Dict(Rc::new(dict))
            }
            leaf => leaf_value(leaf)?,
        };
        if size > MAX_EXPANDED {
            return Err(Fault::Broken(format!(
                "it contains the same data so often that they are more than {MAX_EXPANDED} values"
            )));
        }
        self.known[id.0 as usize] = Progress::Done(value.clone(), size);
        Ok((value, size))
    }
}

fn key_of(objects: &Objects, id: Id) -> Result<Key, Fault> {
    match (&objects[id], objects.text(id)) {
        (_, Some(text)) => Ok(Key::quoted(text)),
        (Object::Int(n), _) => Ok(Key::quoted(&n.to_string())),
        _ => Err(Fault::Broken("it has a dictionary whose keys are neither text nor whole numbers".into())),
    }
}

fn leaf_value(object: &Object) -> Result<Value, Fault> {
    Ok(match object {
        Object::None => Value::Nil,
        Object::Bool(b) => Value::Bool(*b),
        Object::Int(n) => Value::Int(*n),
        Object::Float(x) => Value::Float(*x),
        Object::Text(text) => Value::text(text),
        Object::Native(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Value::text(text),
            Err(_) => numbers(FilePart { range: 0..bytes.len(), file: Arc::new(bytes.clone()) })?,
        },
        Object::Bytes(part) => numbers(part.clone())?,
        Object::Array(array) => array.value()?,
        Object::Global(_) | Object::Dtype(_) => {
            return Err(Fault::Broken("it has a function or a type among its data".into()));
        }
        Object::List(_) | Object::Dict(_) => unreachable!("no leaf"),
    })
}

/// Bytes as numbers.
fn numbers(part: FilePart) -> Result<Value, Fault> {
    let ty = TensorType::new(DType::U8, [part.range.len()].as_slice());
    let tensor = HostTensor::in_files(&ty, vec![part]).ok_or_else(|| "bytes that are none".to_owned())?;
    Ok(Value::Tensor(Tensor::host(tensor)))
}
