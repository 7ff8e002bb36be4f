//! Capsules: a call in which a guard was broken, with all that it needs to be run again.
//!
//! A capsule is the length of a JSON text as 8 little-endian bytes, the text, and the elements of its tensors. Its reader
//! trusts nothing: lengths are compared with what is there, nesting is limited, and values are made only of what the
//! format has. The program's texts in it are code, which a replay runs without files, network or environment.

use std::collections::HashMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use ustr::Ustr;

use crate::program::{Axes, Concrete, Dict, GradOptions, Key, List, Tensor, Transform, Value};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_syntax::Bracket;

/// The format and its version.
const FORMAT: &str = "sheaf capsule 1";

/// Maximum nesting of values: JSON readers have limits.
const MAX_NESTING: usize = 40;

/// Maximum bytes of tensors in a capsule.
const MAX_BYTES: usize = 2 << 30;

/// A call to run again.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Capsule {
    format: String,
    /// The value that broke a guard, for people.
    pub broken: String,
    /// The guards of the run.
    pub guards: Vec<String>,
    /// The file of the program.
    pub program: String,
    /// Every text that was read, by name.
    pub sources: Vec<(String, String)>,
    /// The dependencies of packages: the folder of the package that asks, the name there, and the folder.
    pub dependencies: Vec<(String, String, String)>,
    /// The package of the program, by the folder that asks: its name and the folder of its sources.
    pub own: Vec<(String, Option<String>, String)>,
    pub(crate) function: PackedFunction,
    pub(crate) arguments: Vec<Packed>,
    /// The values of definitions that the function needs.
    pub(crate) definitions: Vec<(Place, String, Packed)>,
    tensors: Vec<PackedType>,
    #[serde(skip)]
    elements: Vec<u8>,
}

/// Spans of a definition: the file, the start and the end, then those of the macro uses that made it.
pub(crate) type Place = Vec<(String, u32, u32)>;

/// A value.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Packed {
    Nil,
    Bool(bool),
    Int(i64),
    /// The bits.
    Float(u64),
    /// A position in the list of tensors.
    Tensor(usize),
    /// True for square brackets.
    List(bool, Vec<Packed>),
    /// Each key with true if it was written as a string.
    Dict(Vec<(String, bool, Packed)>),
    Keyword(String),
    Symbol(String),
    Str(String),
    Range(i64, i64),
    Function(Box<PackedFunction>),
}

/// A function.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PackedFunction {
    Builtin(String),
    /// The place of its code, and the values it captured.
    Code(Place, Vec<Packed>),
    Transformed(PackedTransform, Box<PackedFunction>),
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PackedTransform {
    Grad { wrt: Vec<usize>, wrt_list: bool, aux: bool, value: bool },
    Jvp,
    Jacobian,
    Vmap(PackedAxes),
    Checkpoint,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum PackedAxes {
    Every(Option<i64>),
    Items(Vec<PackedAxes>),
    Entries(Vec<(String, PackedAxes)>),
}

#[derive(Serialize, Deserialize)]
struct PackedType {
    dtype: String,
    shape: Vec<usize>,
    weak: bool,
    /// Position of the first byte.
    at: usize,
}

impl Capsule {
    /// An empty capsule of a program.
    pub(crate) fn new(program: String, function: PackedFunction) -> Capsule {
        Capsule {
            format: FORMAT.into(),
            broken: String::new(),
            guards: Vec::new(),
            program,
            sources: Vec::new(),
            dependencies: Vec::new(),
            own: Vec::new(),
            function,
            arguments: Vec::new(),
            definitions: Vec::new(),
            tensors: Vec::new(),
            elements: Vec::new(),
        }
    }

    /// The bytes; `None` if it cannot be written.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let text = serde_json::to_vec(self).ok()?;
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text);
        bytes.extend(&self.elements);
        Some(bytes)
    }

    /// The capsule in `bytes`; the error says what is wrong with them.
    pub fn read(bytes: &[u8]) -> Result<Capsule, String> {
        let cut = || "it is cut off".to_owned();
        let (length, rest) = bytes.split_first_chunk::<8>().ok_or_else(cut)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| cut())?;
        let (text, elements) = rest.split_at_checked(length).ok_or_else(cut)?;
        let mut capsule: Capsule =
            serde_json::from_slice(text).map_err(|e| format!("its text is wrong: {e}"))?;
        if capsule.format != FORMAT {
            return Err(format!("it is of the format {:?}, and this Sheaf reads {FORMAT:?}", capsule.format));
        }
        capsule.elements = elements.to_vec();
        Ok(capsule)
    }

    /// The value; the error says what is wrong with it.
    pub(crate) fn unpacked(
        &self,
        packed: &Packed,
        function: &dyn Fn(&PackedFunction) -> Result<Value, String>,
    ) -> Result<Value, String> {
        Ok(match packed {
            Packed::Nil => Value::Nil,
            Packed::Bool(truth) => Value::Bool(*truth),
            Packed::Int(n) => Value::Int(*n),
            Packed::Float(bits) => Value::Float(f64::from_bits(*bits)),
            Packed::Tensor(position) => Value::Tensor(self.tensor(*position)?),
            Packed::List(square, items) => {
                let items =
                    items.iter().map(|item| self.unpacked(item, function)).collect::<Result<Vec<_>, _>>()?;
                let bracket = if *square { Bracket::Square } else { Bracket::Round };
                Value::List(Rc::new(List { bracket, items: items.into(), origin: None }))
            }
            Packed::Dict(entries) => {
                let mut dict = Dict::with_capacity(entries.len());
                for (key, quoted, value) in entries {
                    let key = Key { name: Ustr::from(key), quoted: *quoted };
                    dict.insert(key, self.unpacked(value, function)?);
                }
                Value::Dict(Rc::new(dict))
            }
            Packed::Keyword(name) => Value::Keyword(Ustr::from(name)),
            Packed::Symbol(name) => Value::Symbol(Ustr::from(name)),
            Packed::Str(text) => Value::text(text),
            Packed::Range(start, end) => Value::Range(Rc::new(*start..*end)),
            Packed::Function(packed) => function(packed)?,
        })
    }

    fn tensor(&self, position: usize) -> Result<Tensor, String> {
        let wrong = |what: &str| Err(format!("its tensor {position} {what}"));
        let Some(packed) = self.tensors.get(position) else { return wrong("is missing") };
        let Ok(dtype) = DType::named(&packed.dtype) else { return wrong("has an unknown dtype") };
        let bytes = packed.shape.iter().try_fold(dtype.byte_width(), |n, extent| n.checked_mul(*extent));
        let end = bytes.and_then(|bytes| packed.at.checked_add(bytes));
        let Some(elements) = end.and_then(|end| self.elements.get(packed.at..end)) else {
            return wrong("is cut off");
        };
        let ty = TensorType::new(dtype, packed.shape.as_slice());
        let Some(host) = HostTensor::from_bytes(&ty, elements) else { return wrong("has a wrong element") };
        Ok(Tensor::Concrete(Concrete::from_host(host, packed.weak && packed.shape.is_empty())))
    }
}

/// Packs values; tensors with the same elements once.
#[derive(Default)]
pub(crate) struct Packer {
    tensors: Vec<PackedType>,
    elements: Vec<u8>,
    known: HashMap<usize, usize>,
    nesting: usize,
}

impl Packer {
    /// Gives the tensors to their capsule.
    pub fn finish(self, capsule: &mut Capsule) {
        (capsule.tensors, capsule.elements) = (self.tensors, self.elements);
    }

    /// The value; `None` if it cannot be packed, or is too large.
    pub fn value(
        &mut self,
        value: &Value,
        function: &mut dyn FnMut(&mut Packer, &crate::program::Function) -> Option<PackedFunction>,
    ) -> Option<Packed> {
        self.nesting += 1;
        let packed = if self.nesting > MAX_NESTING { None } else { self.inner(value, function) };
        self.nesting -= 1;
        packed
    }

    fn inner(
        &mut self,
        value: &Value,
        function: &mut dyn FnMut(&mut Packer, &crate::program::Function) -> Option<PackedFunction>,
    ) -> Option<Packed> {
        Some(match value {
            Value::Nil => Packed::Nil,
            Value::Bool(truth) => Packed::Bool(*truth),
            Value::Int(n) => Packed::Int(*n),
            Value::Float(x) => Packed::Float(x.to_bits()),
            Value::Tensor(tensor) => Packed::Tensor(self.tensor(tensor)?),
            Value::List(list) => {
                let items =
                    list.items.iter().map(|item| self.value(item, function)).collect::<Option<_>>()?;
                Packed::List(list.bracket == Bracket::Square, items)
            }
            Value::Dict(dict) => {
                let entries = dict.iter();
                let entries = entries
                    .map(|(key, item)| Some((key.name.to_string(), key.quoted, self.value(item, function)?)));
                Packed::Dict(entries.collect::<Option<_>>()?)
            }
            Value::Keyword(name) => Packed::Keyword(name.to_string()),
            Value::Symbol(name) => Packed::Symbol(name.to_string()),
            Value::Str(text) => Packed::Str(text.to_string()),
            Value::Range(range) => Packed::Range(range.start, range.end),
            Value::Function(f) => Packed::Function(Box::new(function(self, f)?)),
            // Their files may be elsewhere, or other ones, where the capsule is replayed.
            Value::Handle(_) | Value::Tokenizer(_) => return None,
        })
    }

    fn tensor(&mut self, tensor: &Tensor) -> Option<usize> {
        let concrete = tensor.concrete()?;
        let address = Rc::as_ptr(concrete) as usize;
        if let Some(position) = self.known.get(&address) {
            return Some(*position);
        }
        let host = concrete.peek()?;
        if self.elements.len() + host.byte_len() > MAX_BYTES {
            return None;
        }
        let ty = concrete.ty();
        let (dtype, shape) = (ty.dtype.to_string(), ty.shape.to_vec());
        self.tensors.push(PackedType { dtype, shape, weak: ty.weak, at: self.elements.len() });
        self.elements.extend_from_slice(&host.copied_bytes());
        self.known.insert(address, self.tensors.len() - 1);
        Some(self.tensors.len() - 1)
    }
}

impl PackedTransform {
    pub fn of(transform: &Transform) -> PackedTransform {
        match transform {
            Transform::Grad(GradOptions { wrt, wrt_list, aux, value }) => {
                PackedTransform::Grad { wrt: wrt.clone(), wrt_list: *wrt_list, aux: *aux, value: *value }
            }
            Transform::Jvp => PackedTransform::Jvp,
            Transform::Jacobian => PackedTransform::Jacobian,
            Transform::Vmap(axes) => PackedTransform::Vmap(PackedAxes::of(axes)),
            Transform::Checkpoint => PackedTransform::Checkpoint,
        }
    }

    pub fn unpacked(&self) -> Transform {
        match self {
            PackedTransform::Grad { wrt, wrt_list, aux, value } => Transform::Grad(GradOptions {
                wrt: wrt.clone(),
                wrt_list: *wrt_list,
                aux: *aux,
                value: *value,
            }),
            PackedTransform::Jvp => Transform::Jvp,
            PackedTransform::Jacobian => Transform::Jacobian,
            PackedTransform::Vmap(axes) => Transform::Vmap(axes.unpacked()),
            PackedTransform::Checkpoint => Transform::Checkpoint,
        }
    }
}

impl PackedAxes {
    fn of(axes: &Axes) -> PackedAxes {
        match axes {
            Axes::Every(axis) => PackedAxes::Every(*axis),
            Axes::Items(items) => PackedAxes::Items(items.iter().map(PackedAxes::of).collect()),
            Axes::Entries(entries) => PackedAxes::Entries(
                entries.iter().map(|(key, axes)| (key.to_string(), PackedAxes::of(axes))).collect(),
            ),
        }
    }

    fn unpacked(&self) -> Axes {
        match self {
            PackedAxes::Every(axis) => Axes::Every(*axis),
            PackedAxes::Items(items) => Axes::Items(items.iter().map(PackedAxes::unpacked).collect()),
            PackedAxes::Entries(entries) => {
                let entries = entries.iter().map(|(key, axes)| (Ustr::from(key), axes.unpacked()));
                Axes::Entries(entries.collect())
            }
        }
    }
}
