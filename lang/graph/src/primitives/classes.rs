//! Host evaluation by classes of dtypes: one line with the computation for each class.
//!
//! | class | dtypes |
//! |---|---|
//! | `float` | `f32 f64`; also `bf16 f16`, which are computed with as `f32` and rounded after each operation |
//! | `single` | `f32`, and `bf16 f16` likewise |
//! | `signed`, `unsigned`, `integer` | `i8 i16 i32 i64`, `u8 u16 u32`, all of these |
//! | `number`, `any` | all but `bool`, all; the 16-bit floats as they are |
//! | `Bool`, `F64` | one dtype, by its variant of [`Data`] |

use crate::tensor::{Data, Element, pairs};

/// Maps one operand's elements, by class of dtypes: `map_data!(x; float(a) => a.abs(), signed(a) => a.wrapping_abs())`.
/// The dtypes left out are those that the type rule refuses.
#[macro_export]
macro_rules! map_data {
    (@arms $x:expr; [$($arms:tt)*];) => {
        match $x {
            $($arms)*
            #[allow(unreachable_patterns)]
            other => unreachable!("the type rule refuses {}", other.dtype()),
        }
    };
    (@arms $x:expr; [$($arms:tt)*]; float($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*];
            F64($a) => $result, single($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; single($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [
            $($arms)*
            $crate::tensor::Data::BF16(v) => $crate::primitives::map_half(v, |$a| $result),
            $crate::tensor::Data::F16(v) => $crate::primitives::map_half(v, |$a| $result),
        ]; F32($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; any($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*]; Bool($a) => $result, number($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; number($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*]; BF16($a) => $result, F16($a) => $result, F32($a) => $result,
            F64($a) => $result, integer($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; integer($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*]; signed($a) => $result, unsigned($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; signed($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*];
            I8($a) => $result, I16($a) => $result, I32($a) => $result, I64($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; unsigned($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [$($arms)*]; U8($a) => $result, U16($a) => $result, U32($a) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; $variant:ident($a:ident) => $result:expr, $($rest:tt)*) => {
        $crate::map_data!(@arms $x; [
            $($arms)*
            $crate::tensor::Data::$variant(v) => {
                $crate::tensor::Data::from(v.iter().map(|&$a| $result).collect::<Vec<_>>())
            }
        ]; $($rest)*)
    };
    ($x:expr; $($class:ident($a:ident) => $result:expr),+ $(,)?) => {
        $crate::map_data!(@arms $x; []; $($class($a) => $result,)+)
    };
}

/// Maps two operands' elements, by class of dtypes: `zip_data!(x, y; float(a, b) => a + b)`. One element beside many goes
/// with each of them.
#[macro_export]
macro_rules! zip_data {
    (@arms $x:expr; [$($arms:tt)*];) => {
        match $x {
            $($arms)*
            #[allow(unreachable_patterns)]
            (x, y) => unreachable!("the type rule refuses {} and {}", x.dtype(), y.dtype()),
        }
    };
    (@arms $x:expr; [$($arms:tt)*]; float($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*];
            F64($a, $b) => $result, single($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; single($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [
            $($arms)*
            ($crate::tensor::Data::BF16(v), $crate::tensor::Data::BF16(w)) => {
                $crate::primitives::zip_half(v, w, |$a, $b| $result)
            }
            ($crate::tensor::Data::F16(v), $crate::tensor::Data::F16(w)) => {
                $crate::primitives::zip_half(v, w, |$a, $b| $result)
            }
        ]; F32($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; any($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*];
            Bool($a, $b) => $result, number($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; number($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*]; BF16($a, $b) => $result, F16($a, $b) => $result,
            F32($a, $b) => $result, F64($a, $b) => $result, integer($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; integer($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*];
            signed($a, $b) => $result, unsigned($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; signed($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*]; I8($a, $b) => $result, I16($a, $b) => $result,
            I32($a, $b) => $result, I64($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; unsigned($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [$($arms)*]; U8($a, $b) => $result, U16($a, $b) => $result,
            U32($a, $b) => $result, $($rest)*)
    };
    (@arms $x:expr; [$($arms:tt)*]; $variant:ident($a:ident, $b:ident) => $result:expr, $($rest:tt)*) => {
        $crate::zip_data!(@arms $x; [
            $($arms)*
            ($crate::tensor::Data::$variant(v), $crate::tensor::Data::$variant(w)) => {
                $crate::tensor::Data::from($crate::tensor::pairs(v, w, |$a, $b| $result))
            }
        ]; $($rest)*)
    };
    ($x:expr, $y:expr; $($class:ident($a:ident, $b:ident) => $result:expr),+ $(,)?) => {
        $crate::zip_data!(@arms ($x, $y); []; $($class($a, $b) => $result,)+)
    };
}

/// Gives the elements of a numeric tensor, 16-bit floats as `f32`, to an expression for any [`Ring`], and rounds the
/// results to the dtype: `accumulate!(x; v => groups.fold(v, Ring::ZERO, Ring::plus))`. Sums and products of 16-bit
/// floats are so rounded once, not after each step.
macro_rules! accumulate {
    ($x:expr; $v:ident => $result:expr) => {{
        let x: &$crate::tensor::Data = $x;
        let sums = match &x.widened() {
            $crate::tensor::Data::F32($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::F64($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I8($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I32($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I64($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U8($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U32($v) => $crate::tensor::Data::from($result),
            other => unreachable!("the type rule refuses {}", other.dtype()),
        };
        sums.narrowed(x.dtype())
    }};
}
pub(super) use accumulate;

/// Elements of sums and products: integers, which wrap around, and the floats that are not rounded up to `f32` first.
pub trait Ring: Element {
    /// 0.
    const ZERO: Self;
    /// 1.
    const ONE: Self;
    /// `self + other`.
    #[must_use]
    fn plus(self, other: Self) -> Self;
    /// `self * other`.
    #[must_use]
    fn times(self, other: Self) -> Self;
}

macro_rules! ring {
    ($zero:literal $one:literal $plus:path, $times:path; $($ty:ty),*) => {$(
        impl Ring for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;
            #[inline]
            fn plus(self, other: Self) -> Self {
                $plus(self, other)
            }
            #[inline]
            fn times(self, other: Self) -> Self {
                $times(self, other)
            }
        }
    )*};
}
ring!(0.0 1.0 std::ops::Add::add, std::ops::Mul::mul; f32, f64);
ring!(0 1 Self::wrapping_add, Self::wrapping_mul; i8, i16, i32, i64, u8, u16, u32);

/// Gives the elements of a numeric tensor to an expression whose elements have the same type.
macro_rules! with_numbers {
    ($x:expr, $v:ident => $result:expr) => {
        match $x {
            $crate::tensor::Data::Bool(_) => unreachable!("the type rule refuses bool"),
            $crate::tensor::Data::I8($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I32($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::I64($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U8($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::U32($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::BF16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::F16($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::F32($v) => $crate::tensor::Data::from($result),
            $crate::tensor::Data::F64($v) => $crate::tensor::Data::from($result),
        }
    };
}
pub(super) use with_numbers;

/// The ends of a type's numbers.
pub trait Extremes {
    /// No number is less.
    const LOWEST: Self;
    /// No number is greater.
    const HIGHEST: Self;
}

macro_rules! extremes {
    ($lowest:ident $highest:ident; $($ty:ty),*) => {$(
        impl Extremes for $ty {
            const LOWEST: Self = <$ty>::$lowest;
            const HIGHEST: Self = <$ty>::$highest;
        }
    )*};
}
extremes!(MIN MAX; i8, i16, i32, i64, u8, u16, u32);
extremes!(NEG_INFINITY INFINITY; half::bf16, half::f16, f32, f64);

/// A float of 16 bits.
pub trait Half: Copy + Into<f32> {
    /// `f32` results rounded to this type; booleans as they are.
    fn rounded(results: Data) -> Data;
}

impl Half for half::bf16 {
    fn rounded(results: Data) -> Data {
        results.narrowed(crate::tensor::DType::BF16)
    }
}

impl Half for half::f16 {
    fn rounded(results: Data) -> Data {
        results.narrowed(crate::tensor::DType::F16)
    }
}

/// `f` of each element as `f32`, rounded.
pub fn map_half<H: Half, R>(x: &[H], f: impl FnMut(f32) -> R) -> Data
where
    Data: From<Vec<R>>,
{
    H::rounded(Data::from(x.iter().map(|a| (*a).into()).map(f).collect::<Vec<_>>()))
}

/// `f` of each pair of elements as `f32`, rounded.
pub fn zip_half<H: Half, R>(x: &[H], y: &[H], mut f: impl FnMut(f32, f32) -> R) -> Data
where
    Data: From<Vec<R>>,
{
    H::rounded(Data::from(pairs(x, y, |a: H, b: H| f(a.into(), b.into()))))
}

#[cfg(test)]
mod tests {
    use half::bf16;

    use super::Ring;
    use crate::tensor::Data;

    #[test]
    fn halves_are_rounded_after_each_operation() {
        let halves = |x: &[f32]| Data::from(x.iter().map(|x| bf16::from_f32(*x)).collect::<Vec<_>>());
        // 1 + 2^-8 lies between two numbers of 8 significant bits, and is rounded to the even one.
        let (x, y) = (halves(&[1.0, 3.0]), halves(&[1.0 / 256.0, 0.5]));
        assert_eq!(zip_data!(&x, &y; float(a, b) => a + b), halves(&[1.0, 3.5]));
        assert_eq!(map_data!(&x; float(a) => a > 2.0), Data::from(vec![false, true]));
    }

    #[test]
    fn sums_of_halves_are_rounded_once() {
        let x =
            Data::from(vec![bf16::from_f32(1.0), bf16::from_f32(1.0 / 256.0), bf16::from_f32(1.0 / 256.0)]);
        let sum = accumulate!(&x; v => vec![v.iter().copied().fold(Ring::ZERO, Ring::plus)]);
        assert_eq!(sum, Data::from(vec![bf16::from_f32(1.0 + 1.0 / 128.0)]));
    }
}
