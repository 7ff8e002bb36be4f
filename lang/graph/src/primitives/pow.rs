//! `power`: `x^y`. Floats as IEEE 754 `pow`, so a negative base has powers with whole exponents; integers wrap, and
//! negative exponents give `1 / x^-y`, truncated.

use super::{BinaryRule, Direction, Log, Unary};
use crate::graph::{Builder, Var};
use crate::stablehlo::{Lowering, quirks};
use crate::tensor::{DType, Data};
use crate::zip_data;

/// Element-wise power.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pow;

// A root takes less time than a power; those of -0 and of minus infinity are not what IEEE 754 has for `pow`.
macro_rules! float_power {
    ($a:expr, $b:expr) => {
        if $b == 0.5 && $a > -1.0 / 0.0 { ($a + 0.0).sqrt() } else { $a.powf($b) }
    };
}

macro_rules! integer_power {
    ($a:expr, $b:expr) => {
        match ($a, $b) {
            (1, _) => 1,
            (-1, b) => 1 - 2 * (b & 1),
            (_, b) if b < 0 => 0,
            // Powers wrap with a period, but the exponent must be taken bit by bit: it may exceed 32 bits.
            (a, b) => wrapping_power(a as u64, b as u64) as _,
        }
    };
}

impl BinaryRule for Pow {
    const NAME: &'static str = "pow";
    const OPERATION: &'static str = "stablehlo.power";

    fn accepts(self, dtype: DType) -> bool {
        dtype != DType::Bool
    }

    fn evaluate(self, x: &Data, y: &Data) -> Data {
        zip_data!(x, y; 
            float(a, b) => float_power!(a, b),
            signed(a, b) => integer_power!(a, b),
            U8(a, b) => wrapping_power(a.into(), b.into()) as u8,
            U16(a, b) => wrapping_power(a.into(), b.into()) as u16,
            U32(a, b) => wrapping_power(a.into(), b.into()) as u32)
    }

    fn steep(self, _: [bool; 2]) -> bool {
        true
    }

    // d(x^y) = y x^(y-1) dx + log(x) x^y dy, with 0 where y = 0 and where x = 0, as in JAX.
    fn partial(self, b: &mut Builder, side: usize, [x, y]: [Var; 2], out: Var, t: Var) -> Option<Var> {
        let (zero, one) = (b.full_like(x, 0.0), b.full_like(x, 1.0));
        let at_zero = b.compare(Direction::Eq, if side == 0 { y } else { x }, zero);
        let slope = if side == 0 {
            let exponent = b.sub(y, one);
            let exponent = b.select(at_zero, one, exponent);
            let power = b.apply(super::Binary(Pow), &[x, exponent]);
            b.mul(y, power)
        } else {
            let base = b.select(at_zero, one, x);
            let log = b.apply(Unary(Log), &[base]);
            b.mul(log, out)
        };
        let slope = b.select(at_zero, zero, slope);
        Some(b.mul(t, slope))
    }

    fn stablehlo(self, to: &mut Lowering<'_>) {
        if to.result_type(0).dtype.is_float() {
            quirks::power(to);
        } else {
            to.elementwise(Self::OPERATION);
        }
    }
}

fn wrapping_power(mut base: u64, mut exponent: u64) -> u64 {
    let mut power = 1_u64;
    while exponent > 0 {
        if exponent & 1 == 1 {
            power = power.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent >>= 1;
    }
    power
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_are_those_of_pow() {
        let numbers = [-0.0, 0.0, 4.0, 2.0, 1e-40, -1.0, f32::NEG_INFINITY, f32::INFINITY, f32::NAN];
        let Data::F32(roots) = Pow.evaluate(&numbers.to_vec().into(), &vec![0.5_f32].into()) else {
            panic!("another dtype")
        };
        for (x, root) in numbers.iter().zip(roots.iter()) {
            let right = x.powf(0.5);
            assert!(root.to_bits() == right.to_bits() || root.is_nan() && right.is_nan(), "{x}: {root}");
        }
    }
}
