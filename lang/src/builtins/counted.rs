//! Evenly spaced numbers computed by a program, equal to those computed while tracing.

use crate::eval::{Eval, Interp};
use crate::program::Tensor;
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};

/// Maximum count that an `f32` represents exactly.
const EXACT: f64 = (1 << f32::MANTISSA_DIGITS) as f64;

/// `start + i step` for `i` in 0..n; `None` if the host computes them at once, as it does those beyond `i32`.
pub(super) fn integers(
    interp: &mut Interp,
    n: usize,
    start: i64,
    step: i64,
    dtype: DType,
) -> Eval<Option<Tensor>> {
    let last = i128::from(start) + (n as i128 - 1) * i128::from(step);
    let fits = |x: i128| i32::try_from(x).is_ok();
    if !interp.is_made_by_program(n, DType::I32) || ![start.into(), step.into(), last].into_iter().all(fits) {
        return Ok(None);
    }
    let number = |x: i64| Tensor::host(HostTensor::filled(DType::I32, [n].as_slice(), x as f64));
    let mut x = positions(interp, n, DType::I32)?;
    if step != 1 {
        x = interp.op(p::Binary(p::Mul), &[&x, &number(step)])?;
    }
    if start != 0 {
        x = interp.op(p::Binary(p::Add), &[&x, &number(start)])?;
    }
    interp.convert(&x, dtype).map(Some)
}

/// [`integers`] for floats, computed in `f64`, or in `f32` if that is exact.
pub(super) fn floats(
    interp: &mut Interp,
    n: usize,
    start: f64,
    step: f64,
    dtype: DType,
) -> Eval<Option<Tensor>> {
    if !interp.is_made_by_program(n, DType::F32) || i32::try_from(n).is_err() {
        return Ok(None);
    }
    let precise = if is_exact(n, start, step) && dtype == DType::F32 { DType::F32 } else { DType::F64 };
    let number = |x: f64| Tensor::host(HostTensor::filled(precise, [n].as_slice(), x));
    let x = positions(interp, n, DType::I32)?;
    let x = interp.convert(&x, precise)?;
    let mut x = interp.op(p::Binary(p::Mul), &[&x, &number(step)])?;
    if precise == DType::F64 {
        x = rounded(interp, &x)?;
    }
    let x = interp.op(p::Binary(p::Add), &[&x, &number(start)])?;
    interp.convert(&x, dtype).map(Some)
}

/// `product` behind a barrier: the compiler must not fuse it with a sum into an FMA, which rounds once.
pub(super) fn rounded(interp: &mut Interp, product: &Tensor) -> Eval<Tensor> {
    interp.op(p::OptimizationBarrier, &[product])
}

fn positions(interp: &Interp, n: usize, dtype: DType) -> Eval<Tensor> {
    interp.iota(p::Iota { dtype, shape: Shape::from_slice(&[n]), dimension: 0 })
}

/// True if `start + i step` is exact in `f32`: all are small multiples of one power of two.
fn is_exact(n: usize, start: f64, step: f64) -> bool {
    let unit = unit(start).min(unit(step));
    let way = step * n as f64;
    unit >= f64::from(f32::MIN_POSITIVE)
        && [n as f64, start / unit, way / unit, (start + way) / unit].iter().all(|x| x.abs() < EXACT)
}

/// The largest power of two that divides `x`.
fn unit(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY;
    }
    let bits = x.to_bits();
    let exponent = (bits >> (f64::MANTISSA_DIGITS - 1) & 0x7ff) as i32 - 1023;
    let fraction = bits & ((1 << (f64::MANTISSA_DIGITS - 1)) - 1) | 1 << (f64::MANTISSA_DIGITS - 1);
    2_f64.powi(exponent - (f64::MANTISSA_DIGITS as i32 - 1) + fraction.trailing_zeros() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_powers_of_two() {
        for (x, power) in [
            (1.0, 1.0),
            (-3.0, 1.0),
            (0.25, 0.25),
            (0.75, 0.25),
            (40.0, 8.0),
            (1e-3_f32.into(), 2_f64.powi(-33)),
        ] {
            assert_eq!(unit(x), power, "{x}");
        }
    }

    #[test]
    fn what_is_exact_is_the_same_in_both_precisions() {
        for (n, start, step) in
            [(20_000, 0.0, 1.0), (20_000, -7.5, 0.25), (1 << 23, 0.0, 0.5), (100, 1e6, -3.0)]
        {
            assert!(is_exact(n, start, step), "{n} {start} {step}");
            for i in [1, n / 3, n - 1] {
                let (i64, i32) = (i as f64, i as f32);
                assert_eq!((start + i64 * step) as f32, start as f32 + i32 * step as f32);
            }
        }
        for (n, start, step) in [(20_000, 0.0, 0.1), (1 << 24, 0.0, 1.0), (100, 1e9, 0.5), (100, 0.0, 1e-40)]
        {
            assert!(!is_exact(n, start, step), "{n} {start} {step}");
        }
    }
}
