//! Scalars in registers.
//!
//! A [`Value`] is returned through memory, which stalls the processor: it is written in two words and read as one. A
//! [`Scalar`] is returned in two registers, so that a chain of scalar operations touches memory only to read variables;
//! it takes half the time.

use super::value::Value;

/// A number or a boolean. The payload is always one word, so it stays in registers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `false`
    False,
    /// `true`
    True,
    /// A weak integer.
    Int(i64),
    /// A weak float.
    Float(Bits),
}

/// The bits of an `f64`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bits(u64);

impl Bits {
    #[inline]
    pub(crate) fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Scalar {
    /// The value as a scalar; `None` if it is none.
    #[inline]
    pub fn of(value: &Value) -> Option<Scalar> {
        match value {
            Value::Int(n) => Some(Scalar::Int(*n)),
            Value::Float(x) => Some(Scalar::from(*x)),
            Value::Bool(b) => Some(Scalar::from(*b)),
            _ => None,
        }
    }

    /// The number as `f32`, its dtype on the device; `None` for a boolean.
    #[inline]
    pub fn single(self) -> Option<f32> {
        match self {
            Scalar::Int(n) => Some(n as f32),
            Scalar::Float(bits) => Some(bits.value() as f32),
            Scalar::False | Scalar::True => None,
        }
    }
}

impl From<f64> for Scalar {
    #[inline]
    fn from(x: f64) -> Scalar {
        Scalar::Float(Bits(x.to_bits()))
    }
}

impl From<bool> for Scalar {
    #[inline]
    fn from(b: bool) -> Scalar {
        if b { Scalar::True } else { Scalar::False }
    }
}

impl From<Scalar> for Value {
    #[inline]
    fn from(scalar: Scalar) -> Value {
        match scalar {
            Scalar::False => Value::Bool(false),
            Scalar::True => Value::Bool(true),
            Scalar::Int(n) => Value::Int(n),
            Scalar::Float(bits) => Value::Float(bits.value()),
        }
    }
}

/// The result of an operation on two scalars; `None` for other operands.
pub type OnNumbers = fn(Scalar, Scalar) -> Option<Scalar>;
