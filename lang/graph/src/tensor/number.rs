//! One element of any dtype, and the conversions between element types.
//!
//! Floats convert to integers by truncation and saturation, NaN to 0; integers wrap; anything but zero is true.
//! Conversions to 16-bit floats round to `f32` first, as compilers do.

use half::{bf16, f16};

/// An element of a tensor, exact.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// A boolean or an integer.
    Int(i64),
    /// A float.
    Float(f64),
}

impl Number {
    /// As a float, rounding large integers.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(n) => n as f64,
            Number::Float(x) => x,
        }
    }

    /// As an integer, truncating floats.
    pub fn as_i64(self) -> i64 {
        match self {
            Number::Int(n) => n,
            Number::Float(x) => x as i64,
        }
    }

    /// As `f32`, rounded once.
    pub fn as_f32(self) -> f32 {
        match self {
            Number::Int(n) => n as f32,
            Number::Float(x) => x as f32,
        }
    }
}

/// An element type that every number converts to.
pub trait FromNumber {
    /// The number as this type.
    fn from_number(number: Number) -> Self;
}

macro_rules! integers {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Number {
            fn from(n: $ty) -> Number {
                Number::Int(n as i64)
            }
        }

        impl FromNumber for $ty {
            fn from_number(number: Number) -> Self {
                match number {
                    Number::Int(n) => n as $ty,
                    Number::Float(x) => x as $ty,
                }
            }
        }
    )*};
}
integers!(i8, i16, i32, i64, u8, u16, u32);

macro_rules! floats {
    ($($ty:ty: $x:ident => $narrow:expr),*) => {$(
        impl From<$ty> for Number {
            fn from(x: $ty) -> Number {
                Number::Float(x.into())
            }
        }

        impl FromNumber for $ty {
            fn from_number($x: Number) -> Self {
                $narrow
            }
        }
    )*};
}
floats!(
    bf16: x => bf16::from_f32(x.as_f32()),
    f16: x => f16::from_f32(x.as_f32()),
    f32: x => x.as_f32(),
    f64: x => x.as_f64()
);

impl From<bool> for Number {
    fn from(truth: bool) -> Number {
        Number::Int(i64::from(truth))
    }
}

impl FromNumber for bool {
    fn from_number(number: Number) -> Self {
        number.as_f64() != 0.0
    }
}
