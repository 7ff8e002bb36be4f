//! Functions of `f32` that take a C library about ten nanoseconds, in branchless arithmetic of `f64`, which the
//! compiler makes vectors of. Results differ from the exact ones by less than 0.501 units in the last place, and are
//! the same with every C library.

#![expect(clippy::inline_always, reason = "a loop with a call in it is no vector")]

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

/// Size of an argument below which a difference from 1 has lost digits that `f32` holds, and a series has them.
const SMALL: f64 = 1.0 / 8192.0;

/// Number of bits of the mantissa of an `f64`.
const MANTISSA: u32 = f64::MANTISSA_DIGITS - 1;

/// Hyperbolic tangent: `-m / (2 + m)` with `m = e^(-2|x|) - 1`, with the sign of `x`.
#[inline(always)]
pub fn tanh(x: f32) -> f32 {
    let x = f64::from(x);
    let less_one = exp_minus_one(-2.0 * x.abs());
    (-less_one / (2.0 + less_one)).copysign(x) as f32
}

/// `e^x - 1`.
#[inline(always)]
pub fn exp_m1(x: f32) -> f32 {
    exp_minus_one(x.into()) as f32
}

/// `log(1 + x)`.
#[inline(always)]
pub fn ln_1p(x: f32) -> f32 {
    let x = f64::from(x);
    let log = ln(1.0 + x);
    let log = if x > -1.0 { log } else { f64::NAN };
    let log = if x == -1.0 { f64::NEG_INFINITY } else { log };
    let log = if x == f64::INFINITY { x } else { log };
    let series = x * (1.0 - x * (0.5 - x * (1.0 / 3.0)));
    (if x.abs() < SMALL { series } else { log }) as f32
}

/// `e^x - 1` to the digits of an `f32`.
#[inline(always)]
fn exp_minus_one(x: f64) -> f64 {
    // Beyond these an `f32` has -1 and infinity. Comparisons keep what is no number.
    let x = if x > 128.0 { 128.0 } else { x };
    let x = if x < -128.0 { -128.0 } else { x };
    let series = x * (1.0 + x * (0.5 + x * (1.0 / 6.0)));
    if x.abs() < SMALL { series } else { exp(x) - 1.0 }
}

/// `e^x` of `|x| <= 128` with an error of 2^-37: `2^k e^r` with a whole `k`, and Taylor's series for `|r| <= log(2) / 2`.
#[inline(always)]
fn exp(x: f64) -> f64 {
    const SERIES: [f64; 10] = [
        1.0 / 362_880.0,
        1.0 / 40_320.0,
        1.0 / 5_040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
        1.0,
        1.0,
    ];
    // A sum with 1.5 * 2^52 has the nearest whole number in its last bits.
    const ROUND: f64 = (3_u64 << (MANTISSA - 1)) as f64;
    let shifted = x * LOG2_E + ROUND;
    let rest = x - (shifted - ROUND) * LN_2;
    let power = f64::from_bits((shifted.to_bits() << MANTISSA).wrapping_add(1.0_f64.to_bits()));
    horner(&SERIES, rest) * power
}

/// The logarithm of a positive, finite, normal number with an error of 2^-34: `e log(2) + 2 artanh(s)` for the number
/// `2^e m` with `m` from `sqrt(1/2)` to `sqrt(2)` and `s = (m - 1) / (m + 1)`, by the series of `artanh(s) / s` in `s^2`.
#[inline(always)]
fn ln(x: f64) -> f64 {
    const SERIES: [f64; 6] = [1.0 / 11.0, 1.0 / 9.0, 1.0 / 7.0, 1.0 / 5.0, 1.0 / 3.0, 1.0];
    const BIAS: u64 = 1 << 11;
    // 2^52, whose last bits count ones.
    const COUNT: f64 = (1_u64 << MANTISSA) as f64;
    let least = (SQRT_2 / 2.0).to_bits();
    let above = x.to_bits().wrapping_sub(least);
    let exponent = f64::from_bits((above >> MANTISSA).wrapping_add(BIAS) & (2 * BIAS - 1) | COUNT.to_bits());
    let exponent = exponent - (COUNT + BIAS as f64);
    let mantissa = f64::from_bits((above & ((1 << MANTISSA) - 1)).wrapping_add(least));
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    2.0 * s * horner(&SERIES, s * s) + exponent * LN_2
}

/// A polynomial by Horner's rule; the coefficient of the highest power first.
#[inline(always)]
fn horner(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, c| sum * x + c)
}

#[cfg(test)]
mod tests {
    /// The largest difference of `f32` results from those of `f64`, in units in the last place, over one in 4,001 of
    /// all `f32`s.
    fn error(function: fn(f32) -> f32, exact: fn(f64) -> f64) -> f64 {
        let (mut largest, mut bits) = (0.0_f64, 0_u32);
        loop {
            let x = f32::from_bits(bits);
            let (found, right) = (function(x), exact(x.into()));
            let rounded = right as f32;
            if rounded.is_finite() {
                let size = rounded.abs().max(f32::MIN_POSITIVE);
                let unit = f64::from(size.next_up()) - f64::from(size);
                largest = largest.max((f64::from(found) - right).abs() / unit);
                assert_eq!(found.is_sign_negative(), right.is_sign_negative(), "of {x}");
            } else {
                assert!(found == rounded || found.is_nan() && rounded.is_nan(), "of {x}: {found}, {rounded}");
            }
            let Some(next) = bits.checked_add(4_001) else { return largest };
            bits = next;
        }
    }

    #[test]
    fn results_are_rounded_to_nearest_but_for_ties() {
        assert!(error(super::tanh, f64::tanh) < 0.501);
        assert!(error(super::exp_m1, f64::exp_m1) < 0.501);
        assert!(error(super::ln_1p, f64::ln_1p) < 0.501);
    }

    #[test]
    fn ends_of_the_range_are_those_of_ieee_754() {
        let special = [
            0.0,
            -0.0,
            1e-45,
            -1e-45,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
            -1.0,
            -1.000_000_1,
            f32::MAX,
            f32::MIN,
        ];
        for x in special {
            for (found, right) in
                [(super::tanh(x), x.tanh()), (super::exp_m1(x), x.exp_m1()), (super::ln_1p(x), x.ln_1p())]
            {
                assert!(
                    found.to_bits() == right.to_bits() || found.is_nan() && right.is_nan(),
                    "of {x}: {found}, {right}"
                );
            }
        }
    }
}
