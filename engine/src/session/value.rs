//! Values that go into programs and come out of them.

use std::fmt;
use std::rc::Rc;

use sheaf_graph::tensor::{DType, Data, Element, HostTensor};
use sheaf_lang::program;
use sheaf_lang::program::Dict;

use ustr::Ustr;

use super::Error;

/// A value of a program: a number, a text, a tensor, a function, or a nested list or dictionary of values (a pytree).
///
/// A clone shares the memory of the original. Tensors that a compiled function gave are on the device until their elements
/// are asked for; passed on to another call, they stay there.
#[derive(Clone, Debug)]
pub struct Value(pub(super) program::Value);

impl Value {
    /// A tensor with these elements, the last axis varying fastest.
    ///
    /// # Panics
    ///
    /// The number of elements is not that of the shape.
    pub fn tensor<T: Element>(shape: &[usize], elements: &[T]) -> Value
    where
        Data: From<Vec<T>>,
    {
        assert_eq!(
            elements.len(),
            shape.iter().product::<usize>(),
            "elements of a tensor of shape {shape:?}"
        );
        Value(program::Value::Tensor(program::Tensor::host(HostTensor::new(shape, elements.to_vec()))))
    }

    /// A dictionary with these entries, in this order; its keys are keywords.
    pub fn dict<K: AsRef<str>>(entries: impl IntoIterator<Item = (K, Value)>) -> Value {
        let mut dict = Dict::with_capacity(0);
        for (key, value) in entries {
            dict.insert(Ustr::from(key.as_ref()), value.0);
        }
        Value(program::Value::Dict(Rc::new(dict)))
    }

    /// A list.
    pub fn list(items: impl IntoIterator<Item = Value>) -> Value {
        Value(program::Value::vector(items.into_iter().map(|item| item.0).collect()))
    }

    /// The entry of a dictionary.
    pub fn get(&self, key: &str) -> Option<Value> {
        match &self.0 {
            program::Value::Dict(dict) => dict.get(&key.into()).cloned().map(Value),
            _ => None,
        }
    }

    /// The items of a list.
    pub fn items(&self) -> Option<Vec<Value>> {
        match &self.0 {
            program::Value::List(list) => Some(list.items.iter().cloned().map(Value).collect()),
            _ => None,
        }
    }

    /// The entries of a dictionary, in its order.
    pub fn entries(&self) -> Option<Vec<(String, Value)>> {
        match &self.0 {
            program::Value::Dict(dict) => {
                Some(dict.iter().map(|(key, value)| (key.name.to_string(), Value(value.clone()))).collect())
            }
            _ => None,
        }
    }

    /// The shape of a tensor.
    pub fn shape(&self) -> Option<&[usize]> {
        match &self.0 {
            program::Value::Tensor(tensor) => Some(tensor.shape()),
            _ => None,
        }
    }

    /// The dtype of a tensor.
    pub fn dtype(&self) -> Option<DType> {
        match &self.0 {
            program::Value::Tensor(tensor) => Some(tensor.ty().dtype),
            _ => None,
        }
    }

    /// The elements of a tensor, the last axis varying fastest; they are fetched from the device once.
    ///
    /// # Errors
    ///
    /// The value is no tensor of elements `T`, a check of the program that computed it failed, or the device did.
    pub fn elements<T: Element>(&self) -> Result<&[T], Error> {
        let wrong = || Error::plain(format!("expected a tensor of {}, got {}", T::DTYPE, self.0.describe()));
        let program::Value::Tensor(tensor) = &self.0 else { return Err(wrong()) };
        let host = tensor.elements("its elements").map_err(Error::of_signal)?;
        T::elements(host.data()).ok_or_else(wrong)
    }

    /// The number that the value is, or the only element of the tensor that it is.
    ///
    /// # Errors
    ///
    /// The value is neither, or as [`Value::elements`].
    pub fn to_f64(&self) -> Result<f64, Error> {
        match &self.0 {
            program::Value::Int(n) => Ok(*n as f64),
            program::Value::Float(x) => Ok(*x),
            program::Value::Tensor(tensor) if tensor.ty().count() == 1 => {
                let host = tensor.elements("its element").map_err(Error::of_signal)?;
                Ok(host.element(0).as_f64())
            }
            other => Err(Error::plain(format!("expected a number, got {}", other.describe()))),
        }
    }

    /// The text that the value is.
    pub fn as_str(&self) -> Option<&str> {
        match &self.0 {
            program::Value::Str(text) => Some(text),
            _ => None,
        }
    }
}

impl From<i64> for Value {
    fn from(n: i64) -> Value {
        Value(program::Value::Int(n))
    }
}

impl From<f64> for Value {
    fn from(x: f64) -> Value {
        Value(program::Value::Float(x))
    }
}

impl From<bool> for Value {
    fn from(truth: bool) -> Value {
        Value(program::Value::Bool(truth))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value(program::Value::text(text))
    }
}

/// The value as the language prints it, in one line; the elements of tensors are not shown.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.describe())
    }
}
