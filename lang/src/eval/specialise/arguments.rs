//! Arguments of a specialisation: their patterns and tracers.

use std::collections::HashMap;
use std::rc::Rc;

use ustr::Ustr;

use super::report::LeafKind;
use crate::host::Leaf;
use crate::program::{Closure, Code, Concrete, Dict, Function, Key, List, Tensor, Trace, Transform, Value};
use crate::stack::maybe_grow;
use sheaf_graph::tensor::{DType, TensorType};
use sheaf_syntax::Span;

/// Identity of a function: its code and transformations.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct FnKey {
    pub(super) code: usize,
    pub(super) transforms: Vec<Transform>,
}

/// The key of a function, with its code; `None` for builtins.
pub(super) fn fn_key(function: &Function) -> Option<(FnKey, &Rc<Code>)> {
    match function {
        Function::Closure(c) => {
            Some((FnKey { code: Rc::as_ptr(&c.code) as usize, transforms: Vec::new() }, &c.code))
        }
        Function::Transformed(transform, f) => {
            let (mut key, code) = maybe_grow(|| fn_key(f))?;
            key.transforms.push(transform.clone());
            Some((key, code))
        }
        Function::Builtin(_) => None,
    }
}

/// The compiled transformation of a function: none (empty), its value and gradient, its gradient alone, ...
pub(super) fn transform_of(function: &Function) -> &'static str {
    match function {
        Function::Transformed(transform, _) => transform.suffix(),
        _ => "",
    }
}

/// A pattern that an argument must match to fit a specialisation.
pub(super) enum Pattern {
    /// A tensor or number of this type: a parameter of the program.
    Tensor(TensorType),
    /// Exactly this value.
    Static(Value),
    List(Vec<Pattern>),
    /// Entries by position, in the order of the sorted keys.
    Dict(Vec<(usize, Key, Pattern)>),
    /// A function with this code and these captured values.
    Function(FnKey, Vec<Pattern>),
}

/// The value of a parameter of the program.
#[derive(Clone)]
pub(super) enum LeafValue {
    Tensor(Rc<Concrete>),
    Int(i64),
    /// A number that is `f32` in the program.
    Float(f64),
    /// A number that is `f64` in the program.
    Double(f64),
}

impl LeafValue {
    /// The tensor; `None` for a plain number.
    pub(super) fn tensor(&self) -> Option<&Rc<Concrete>> {
        if let LeafValue::Tensor(tensor) = self { Some(tensor) } else { None }
    }
}

impl Pattern {
    /// False if `value` certainly does not fit; a quick check that rejects most.
    pub(super) fn may_fit(&self, value: &Value) -> bool {
        match (self, value) {
            (Pattern::Static(expected), value) => same_static(expected, value),
            (Pattern::List(patterns), Value::List(list)) => patterns.len() == list.items.len(),
            (Pattern::Dict(patterns), Value::Dict(dict)) => patterns.len() == dict.len(),
            _ => true,
        }
    }

    /// True if `value` fits; appends the values of its parameters.
    pub(super) fn collect(&self, value: &Value, leaves: &mut Vec<LeafValue>) -> bool {
        match (self, value) {
            (Pattern::Tensor(ty), Value::Tensor(Tensor::Concrete(c))) => {
                let fits = c.ty() == ty;
                if fits {
                    leaves.push(LeafValue::Tensor(Rc::clone(c)));
                }
                fits
            }
            (Pattern::Tensor(ty), Value::Int(n)) => {
                leaves.push(LeafValue::Int(*n));
                ty.weak && ty.dtype == DType::I64
            }
            (Pattern::Tensor(ty), Value::Float(x)) => {
                let double = ty.dtype == DType::F64;
                leaves.push(if double { LeafValue::Double(*x) } else { LeafValue::Float(*x) });
                ty.weak && ty.dtype.is_float()
            }
            (Pattern::List(patterns), Value::List(list)) => {
                patterns.len() == list.items.len()
                    && patterns.iter().zip(&list.items).all(|(p, v)| p.collect(v, leaves))
            }
            (Pattern::Dict(patterns), Value::Dict(dict)) => {
                patterns.len() == dict.len()
                    && patterns.iter().all(|(i, key, p)| match dict.get_index(*i) {
                        Some((k, v)) => k == *key && p.collect(v, leaves),
                        None => false,
                    })
            }
            (Pattern::Function(key, patterns), Value::Function(f)) => match fn_key(f) {
                Some((k, _)) => {
                    k == *key && patterns.iter().zip(f.captured()).all(|(p, v)| p.collect(v, leaves))
                }
                None => false,
            },
            (Pattern::Static(expected), value) => same_static(expected, value),
            _ => false,
        }
    }
}

fn same_static(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Nil, Value::Nil) => true,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => a.to_bits() == b.to_bits(),
        (Value::Keyword(a), Value::Keyword(b)) | (Value::Symbol(a), Value::Symbol(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Range(a), Value::Range(b)) => a == b,
        (Value::Handle(a), Value::Handle(b)) => Rc::ptr_eq(a, b),
        (Value::Tokenizer(a), Value::Tokenizer(b)) => Rc::ptr_eq(a, b),
        (Value::Function(a), Value::Function(b)) => match (&**a, &**b) {
            (Function::Builtin(a), Function::Builtin(b)) => std::ptr::eq(*a, *b),
            _ => Rc::ptr_eq(a, b),
        },
        // A scalar tensor whose value was needed.
        (Value::Tensor(a), Value::Tensor(b)) => match (a.elements(""), b.elements("")) {
            (Ok(x), Ok(y)) => a.ty() == b.ty() && x == y,
            _ => false,
        },
        _ => false,
    }
}

/// True if there is an `f64` tensor among the values: plain floats combined with it keep all their digits.
pub(super) fn has_doubles(mut values: &mut dyn Iterator<Item = &Value>) -> bool {
    Iterator::any(&mut values, |value| match value {
        Value::Tensor(t) => t.ty().dtype == DType::F64 && !t.ty().weak,
        Value::List(list) => has_doubles(&mut list.items.iter()),
        Value::Dict(dict) => has_doubles(&mut dict.values()),
        Value::Function(f) => has_doubles(&mut f.captured().iter()),
        _ => false,
    })
}

/// The name of a parameter in paths.
pub(super) fn parameter_path(code: &Code, i: usize) -> String {
    code.params.get(i).map_or_else(|| format!("arg{i}"), |p| p.name.to_string())
}

/// The use of a number whose value the body needed, and its span.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub wanted: String,
    pub place: Option<Span>,
}

/// Makes traced arguments and their patterns.
pub(super) struct Abstraction<'a> {
    pub(super) trace: &'a Rc<Trace>,
    /// By the path of the leaf.
    pub(super) statics: &'a HashMap<String, Asked>,
    /// The dtype in which plain floats are traced.
    pub(super) float: DType,
    pub(super) inputs: Vec<(Leaf, Tensor)>,
    pub(super) static_values: Vec<(String, String)>,
    /// All leaves, for reports.
    pub(super) leaves: Vec<(String, LeafKind)>,
}

/// Maximum characters of a constant in reports.
const SHOWN: usize = 40;

/// A constant in reports.
fn constant(text: &str) -> LeafKind {
    LeafKind::Constant(match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    })
}

impl Abstraction<'_> {
    pub(super) fn value(&mut self, value: &Value, path: &str) -> (Value, Pattern) {
        let number = |ty| (ty, path.to_string());
        let (ty, path) = match value {
            Value::List(list) => {
                if list.items.is_empty() {
                    self.leaves.push((path.to_string(), constant("an empty list")));
                }
                let (items, patterns): (Vec<Value>, _) =
                    list.items.iter().enumerate().map(|(i, v)| self.value(v, &format!("{path}.{i}"))).unzip();
                let list = List { bracket: list.bracket, items: items.into(), origin: list.origin };
                return (Value::List(Rc::new(list)), Pattern::List(patterns));
            }
            Value::Dict(dict) => {
                if dict.is_empty() {
                    self.leaves.push((path.to_string(), constant("an empty dictionary")));
                }
                let mut out: Dict = (**dict).clone();
                let mut patterns = Vec::with_capacity(dict.len());
                for (i, key, v) in dict.sorted() {
                    let (v, pattern) = self.value(v, &format!("{path}.{key}"));
                    out.insert(key, v);
                    patterns.push((i, key, pattern));
                }
                return (Value::Dict(Rc::new(out)), Pattern::Dict(patterns));
            }
            Value::Function(f) if fn_key(f).is_some() => {
                self.leaves.push((path.to_string(), constant(&value.describe())));
                let (f, key, patterns) = self.function(f, path);
                return (Value::Function(f), Pattern::Function(key, patterns));
            }
            Value::Tensor(t) => number(t.ty().clone()),
            Value::Int(_) => number(TensorType::weak(DType::I64)),
            Value::Float(_) => number(TensorType::weak(self.float)),
            other => {
                self.leaves.push((path.to_string(), constant(&crate::builtins::repr(other))));
                self.static_values.push((path.to_string(), crate::builtins::show(other)));
                return (other.clone(), Pattern::Static(other.clone()));
            }
        };
        if self.statics.contains_key(&path) {
            let shown = crate::builtins::show(value);
            self.leaves.push((path.clone(), LeafKind::Number(shown.clone())));
            self.static_values.push((path, shown));
            return (value.clone(), Pattern::Static(value.clone()));
        }
        let origin = if let Value::Tensor(t) = value { t.origin() } else { None };
        let tensor = self.trace.input(ty.clone(), None, origin);
        self.leaves.push((path.clone(), LeafKind::Any(ty.clone())));
        self.inputs.push((Leaf { path, ty: ty.clone() }, tensor.clone()));
        (Value::Tensor(tensor), Pattern::Tensor(ty))
    }

    /// The function with its captured values traced.
    pub(super) fn function(&mut self, f: &Rc<Function>, path: &str) -> (Rc<Function>, FnKey, Vec<Pattern>) {
        let (key, _) = fn_key(f).expect("checked by the caller");
        match &**f {
            Function::Closure(c) => {
                let names: Vec<Ustr> = c.code.captures.borrow().iter().map(|(_, n)| *n).collect();
                let prefix = if path.is_empty() { String::new() } else { format!("{path}.") };
                let (captured, patterns) = c
                    .captured
                    .iter()
                    .zip(names)
                    .map(|(v, name)| self.value(v, &format!("{prefix}{name}")))
                    .unzip();
                (Rc::new(Function::Closure(Closure { code: Rc::clone(&c.code), captured })), key, patterns)
            }
            Function::Transformed(transform, inner) => {
                let (inner, _, patterns) = self.function(inner, path);
                (Rc::new(Function::Transformed(transform.clone(), inner)), key, patterns)
            }
            Function::Builtin(_) => (Rc::clone(f), key, Vec::new()),
        }
    }
}
