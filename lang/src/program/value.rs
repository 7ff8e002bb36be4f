//! Values of programs.

use std::ops::Range;
use std::rc::Rc;

use arcstr::ArcStr;
use ustr::Ustr;

use super::dict::{Dict, Key};
use super::expr::Code;
use super::handle::Handle;
use super::items::Items;
use super::tensor::Tensor;
use super::tokenizer::Tokenizer;
use super::transform::Transform;
use crate::builtins::Builtin;
use sheaf_syntax::{Bracket, Span};

/// Any value.
#[derive(Clone, Debug)]
pub enum Value {
    /// `nil`
    Nil,
    /// A known boolean.
    Bool(bool),
    /// A weak integer, as of a number literal without a point.
    Int(i64),
    /// A weak float. Arithmetic rounds it to `f32`; a literal keeps its digits until it is combined with a tensor.
    Float(f64),
    /// A tensor, concrete or traced.
    Tensor(Tensor),
    /// A list.
    List(Rc<List>),
    /// A dictionary.
    Dict(Rc<Dict>),
    /// `:name`
    Keyword(Ustr),
    /// A quoted name.
    Symbol(Ustr),
    /// Text.
    Str(ArcStr),
    /// A half-open range used as an index.
    Range(Rc<Range<i64>>),
    /// A function.
    Function(Rc<Function>),
    /// A sequence that is read when its items are asked for.
    Handle(Rc<Handle>),
    /// A tokenizer of text.
    Tokenizer(Rc<Tokenizer>),
}

/// An immutable list.
#[derive(Clone, Debug)]
pub struct List {
    /// The brackets of quoted code; matters to macros.
    pub bracket: Bracket,
    /// Its items.
    pub items: Items,
    /// The source span of quoted code.
    pub origin: Option<Span>,
}

/// A function.
#[derive(Debug)]
pub enum Function {
    /// A function of the program.
    Closure(Closure),
    /// A function written in Rust.
    Builtin(&'static Builtin),
    /// `(grad f)`, `(vmap f)`, ...
    Transformed(Transform, Rc<Function>),
}

/// A function with the values of its free variables.
#[derive(Debug)]
pub struct Closure {
    /// Its code.
    pub code: Rc<Code>,
    /// Values of the free variables, in the order of [`Code::captures`].
    pub captured: Vec<Value>,
}

impl Value {
    /// A list as made by functions: a call, if a macro returns it as code.
    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(List { bracket: Bracket::Round, items: items.into(), origin: None }))
    }

    /// A list as made by a vector literal.
    pub fn vector(items: Vec<Value>) -> Value {
        Value::List(Rc::new(List { bracket: Bracket::Square, items: items.into(), origin: None }))
    }

    /// A text.
    pub fn text(text: impl AsRef<str>) -> Value {
        Value::Str(ArcStr::from(text.as_ref()))
    }

    /// A builtin or closure as a value.
    pub fn function(function: Function) -> Value {
        Value::Function(Rc::new(function))
    }

    /// The kind of value in messages, with the shape for tensors.
    pub fn describe(&self) -> String {
        match self {
            Value::Nil => "nil".into(),
            Value::Bool(b) => format!("the boolean {b}"),
            Value::Int(n) => format!("the number {n}"),
            Value::Float(x) => format!("the number {}", sheaf_graph::tensor::format_float(*x as f32)),
            Value::Tensor(t) => format!("a tensor {}", t.ty()),
            Value::List(l) => format!("a list of {} items", l.items.len()),
            Value::Dict(d) if d.is_empty() => "an empty dictionary".into(),
            Value::Dict(d) => {
                let keys: Vec<String> = d.keys().take(6).map(|k| k.form().to_string()).collect();
                let more = if d.len() > 6 { " ..." } else { "" };
                format!("a dictionary with keys {}{more}", keys.join(" "))
            }
            Value::Keyword(k) => format!("the keyword :{k}"),
            Value::Symbol(s) => format!("the symbol {s}"),
            Value::Str(_) => "a string".into(),
            Value::Range(r) => format!("the range {}:{}", r.start, r.end),
            Value::Function(f) if matches!(&**f, Function::Closure(c) if c.code.name.is_none()) => {
                "a function".into()
            }
            Value::Function(f) => format!("the function {}", f.name()),
            Value::Handle(handle) => format!("the handle {}", handle.text()),
            Value::Tokenizer(tokenizer) => format!("the tokenizer {}", tokenizer.name),
        }
    }

    /// Sets the call or literal as the origin of a tensor, unless it is known.
    pub(crate) fn made_at(&self, place: Span) {
        if let Value::Tensor(Tensor::Concrete(tensor)) = self {
            tensor.made_at(Some(place));
        }
    }

    /// The dictionary key named by this value.
    pub fn as_key(&self) -> Option<Key> {
        match self {
            Value::Keyword(k) | Value::Symbol(k) => Some(Key::from(*k)),
            Value::Str(s) => Some(Key::quoted(s)),
            _ => None,
        }
    }
}

impl Function {
    /// The name in messages.
    pub fn name(&self) -> String {
        self.name_within(8)
    }

    /// The name; transformations nested deeper than `levels` are left out.
    fn name_within(&self, levels: usize) -> String {
        match self {
            Function::Closure(c) => c.code.display_name(),
            Function::Builtin(b) => b.name.into(),
            Function::Transformed(transform, _) if levels == 0 => format!("({} ...)", transform.name()),
            Function::Transformed(transform, f) => {
                format!("({} {})", transform.name(), f.name_within(levels - 1))
            }
        }
    }

    /// Number of transformations of the function.
    pub(crate) fn transforms(&self) -> usize {
        if let Function::Transformed(_, f) = self { 1 + f.transforms() } else { 0 }
    }

    /// The code of a program's function, transformed or not.
    pub(crate) fn code(&self) -> Option<&Rc<Code>> {
        match self {
            Function::Closure(c) => Some(&c.code),
            Function::Transformed(_, f) => f.code(),
            Function::Builtin(_) => None,
        }
    }

    /// The captured values.
    pub(crate) fn captured(&self) -> &[Value] {
        match self {
            Function::Closure(c) => &c.captured,
            Function::Transformed(_, f) => f.captured(),
            Function::Builtin(_) => &[],
        }
    }
}

macro_rules! value_from {
    ($($ty:ty => $variant:ident),*) => {$(
        impl From<$ty> for Value {
            fn from(x: $ty) -> Value {
                Value::$variant(x.into())
            }
        }
    )*};
}
value_from!(bool => Bool, i64 => Int, f64 => Float, Rc<List> => List, Rc<Dict> => Dict, Handle => Handle, &str => Str);

impl From<Items> for Value {
    /// A list as made by functions.
    fn from(items: Items) -> Value {
        Value::List(Rc::new(List { bracket: Bracket::Round, items, origin: None }))
    }
}

impl From<Tensor> for Value {
    /// Weak scalars in host memory become plain numbers; all else stays a tensor.
    fn from(t: Tensor) -> Value {
        if let Tensor::Concrete(c) = &t
            && c.ty().weak
            && let Some(host) = c.host_if_there()
        {
            return if c.ty().dtype.is_float() {
                Value::Float(host.element_f64(0))
            } else {
                Value::Int(host.element_i64(0))
            };
        }
        Value::Tensor(t)
    }
}
