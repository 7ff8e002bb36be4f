//! Random bits: JAX's default generator, threefry2x32 in its partitionable form.
//!
//! A key is a `u32[2]`. The block cipher is the primitive `threefry`; keys split and bits become numbers as in
//! `jax.random`.

use std::sync::Arc;

use crate::eval::{Eval, Interp, bind_all, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, Data, HostTensor, element_count};
use sheaf_syntax::diagnostic::Diagnostic;

/// A value as a key.
pub(super) fn key(value: &Value) -> Eval<Tensor> {
    match value {
        Value::Tensor(t) if t.ty().dtype == DType::U32 && t.shape() == [2] => Ok(t.clone()),
        other => {
            let error = Diagnostic::error(format!("expected a key, got {}", other.describe()));
            Err(error
                .help("(random-key 42) makes a key of a seed, (random-split key) more keys of one")
                .into())
        }
    }
}

/// The two words of the block for every position of `shape`: the counter is the position, as 64 bits in two words.
fn block(interp: &Interp, key: &Tensor, shape: &[usize]) -> Eval<[Tensor; 2]> {
    if element_count(shape) as u64 > u64::from(u32::MAX) {
        return fail("more than 2^32 random numbers in one call");
    }
    let first = Tensor::host(HostTensor::filled(DType::U32, [2].as_slice(), 0.0));
    let key = interp.given_to_program(key, element_count(shape), DType::U32)?;
    encrypt(interp, &key, &first, shape)
}

/// The two words of the block for a counter and its successors.
fn encrypt(interp: &Interp, key: &Tensor, counter: &Tensor, shape: &[usize]) -> Eval<[Tensor; 2]> {
    let op: Op = Arc::new(p::Threefry { shape: shape.into() });
    let mut words = bind_all(&op, &[key, counter], interp.span)?.into_iter();
    Ok([(); 2].map(|()| words.next().expect("two words")))
}

/// 32 random bits for every position of `shape`.
pub(super) fn bits(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    if let Some(drawn) = drawn(interp, key, shape, |word| word)? {
        return Ok(drawn);
    }
    let [hi, lo] = block(interp, key, shape)?;
    interp.op(p::Binary(p::Xor), &[&hi, &lo])
}

/// Numbers computed by `f` from 32 random bits each, in one pass and without intermediate tensors; `None` unless the
/// key is known and no program draws them.
fn drawn<T: Send + Clone + Default>(
    interp: &Interp,
    key: &Tensor,
    shape: &[usize],
    f: impl Fn(u32) -> T + Sync,
) -> Eval<Option<Tensor>>
where
    Data: From<Vec<T>>,
{
    let Tensor::Concrete(key) = key else { return Ok(None) };
    let n = element_count(shape);
    if interp.is_made_by_program(n, DType::U32) {
        return Ok(None);
    }
    if n as u64 > u64::from(u32::MAX) {
        return fail("more than 2^32 random numbers in one call");
    }
    let Data::U32(key) = key.host()?.data() else { return Ok(None) };
    let key = [key[0], key[1]];
    let numbers = p::by_position(n, |position| {
        let [hi, lo] = p::threefry_block(key, [0, position as u32]);
        f(hi ^ lo)
    });
    Ok(Some(Tensor::made(HostTensor::new(shape, numbers), interp.span)))
}

/// A known `f32`.
fn known(t: &Tensor) -> Eval<Option<f32>> {
    let Tensor::Concrete(t) = t else { return Ok(None) };
    Ok(t.host()?.as_f32().and_then(|elements| elements.first().copied()))
}

/// Shift that leaves 23 random bits as the fraction of a float in [1, 2).
const FRACTION: u32 = 9;

/// A float of `[0, 1)` scaled to an interval: `x * width + low`, rounded once. XLA and IREE both contract the two
/// operations (Q41), so that numbers which are computed here must be, too, or they would not be those of JAX and of compiled
/// programs.
fn scaled(word: u32, low: f32, width: f32) -> f32 {
    let x = f32::from_bits(word >> FRACTION | 1.0_f32.to_bits()) - 1.0;
    p::maximum(low, x.mul_add(width, low))
}

/// Uniform in `[low, high)`.
pub(super) fn uniform(
    interp: &mut Interp,
    key: &Tensor,
    shape: &[usize],
    low: &Tensor,
    high: &Tensor,
) -> Eval<Tensor> {
    if let (Some(l), Some(h)) = (known(low)?, known(high)?)
        && let Some(drawn) = drawn(interp, key, shape, |word| scaled(word, l, h - l))?
    {
        return Ok(drawn);
    }
    let words = |x: u32| Tensor::host(HostTensor::filled(DType::U32, shape, f64::from(x)));
    let random = bits(interp, key, shape)?;
    let fraction = interp.op(p::Binary(p::ShiftRightLogical), &[&random, &words(FRACTION)])?;
    let float_bits = interp.op(p::Binary(p::Or), &[&fraction, &words(1.0_f32.to_bits())])?;
    let x = interp.op(p::BitcastConvert { dtype: DType::F32 }, &[&float_bits])?;
    let one = Tensor::host(HostTensor::filled(DType::F32, shape, 1.0));
    let x = interp.op(p::Binary(p::Sub), &[&x, &one])?;
    into_interval(interp, &x, low, high)
}

/// Normal with mean 0 and variance 1: √2 times the inverse error function of a number uniform in (-1, 1).
pub(super) fn normal(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    let (low, high) = ((-1.0_f32).next_up(), 1.0_f32);
    let one = |word| p::erf_inv(scaled(word, low, high - low)) * std::f32::consts::SQRT_2;
    if let Some(drawn) = drawn(interp, key, shape, one)? {
        return Ok(drawn);
    }
    let [low, high] = [low, high].map(|x| Tensor::host(HostTensor::scalar(x)));
    let u = uniform(interp, key, shape, &low, &high)?;
    let z = interp.op(p::Unary(p::ErfInv), &[&u])?;
    let scale = Tensor::host(HostTensor::filled(DType::F32, shape, f64::from(std::f32::consts::SQRT_2)));
    interp.op(p::Binary(p::Mul), &[&z, &scale])
}

/// Number of random bits for a 16-bit float, and the number of those in its mantissa, as in `jax.random`.
fn half_bits(dtype: DType) -> [u32; 2] {
    if dtype == DType::BF16 { [8, 7] } else { [16, 10] }
}

/// Uniform in `[low, high)`, as floats of `dtype`: 16-bit floats take the random bits that `jax.random` takes for them,
/// and are rounded after each operation.
pub(super) fn uniform_of(
    interp: &mut Interp,
    dtype: DType,
    key: &Tensor,
    shape: &[usize],
    [low, high]: [&Tensor; 2],
) -> Eval<Tensor> {
    if !dtype.is_half() {
        return uniform(interp, key, shape, low, high);
    }
    let words = |x: u32| Tensor::host(HostTensor::filled(DType::U32, shape, f64::from(x)));
    let [width, mantissa] = half_bits(dtype);
    let word = bits(interp, key, shape)?;
    let word = interp.op(p::Binary(p::And), &[&word, &words((1 << width) - 1)])?;
    let word = interp.op(p::Binary(p::ShiftRightLogical), &[&word, &words(width - mantissa)])?;
    let x = interp.convert(&word, dtype)?;
    let unit = Tensor::host(HostTensor::filled(dtype, shape, 0.5_f64.powi(mantissa as i32)));
    let x = interp.op(p::Binary(p::Mul), &[&x, &unit])?;
    let [low, high] = [interp.convert(low, dtype)?, interp.convert(high, dtype)?];
    into_interval(interp, &x, &low, &high)
}

/// A float of `[0, 1)` scaled to `[low, high)`.
fn into_interval(interp: &mut Interp, x: &Tensor, low: &Tensor, high: &Tensor) -> Eval<Tensor> {
    let width = interp.op(p::Binary(p::Sub), &[high, low])?;
    let (width, low) = (interp.broadcast_to(&width, x.shape())?, interp.broadcast_to(low, x.shape())?);
    let product = interp.op(p::Binary(p::Mul), &[x, &width])?;
    let x = interp.op(p::Binary(p::Add), &[&product, &low])?;
    interp.op(p::Binary(p::Max), &[&low, &x])
}

/// [`normal`] for floats of `dtype`, like [`uniform_of`].
pub(super) fn normal_of(interp: &mut Interp, dtype: DType, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    if !dtype.is_half() {
        return normal(interp, key, shape);
    }
    let filled = |shape: &[usize], x: f64| Tensor::host(HostTensor::filled(dtype, shape, x));
    // The number after -1.
    let low = 0.5_f64.powi(half_bits(dtype)[1] as i32 + 1) - 1.0;
    let u = uniform_of(interp, dtype, key, shape, [&filled(&[], low), &filled(&[], 1.0)])?;
    let z = interp.op(p::Unary(p::ErfInv), &[&u])?;
    interp.op(p::Binary(p::Mul), &[&z, &filled(shape, std::f64::consts::SQRT_2)])
}

/// The key of a seed or of data to fold in: its low 32 bits, as in JAX with 32-bit integers by default.
pub(super) fn seed(interp: &mut Interp, value: &Value, wanted: &str) -> Eval<Tensor> {
    let t = match value {
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_integer() => {
            interp.convert(t, DType::U32)?
        }
        other => Tensor::host(HostTensor::scalar(super::as_index(other, wanted)? as u32)),
    };
    let low = interp.reshape(&t, &[1])?;
    let high = Tensor::host(HostTensor::filled(DType::U32, [1].as_slice(), 0.0));
    interp.op(p::Concatenate { axis: 0 }, &[&high, &low])
}

/// `key` folded with data, itself in key form.
pub(super) fn fold_in(interp: &mut Interp, key: &Tensor, data: &Tensor) -> Eval<Tensor> {
    let [hi, lo] = encrypt(interp, key, data, &[])?;
    let (hi, lo) = (interp.reshape(&hi, &[1])?, interp.reshape(&lo, &[1])?);
    interp.op(p::Concatenate { axis: 0 }, &[&hi, &lo])
}

/// `n` keys split from one, as the rows of a tensor.
pub(super) fn split(interp: &mut Interp, key: &Tensor, n: usize) -> Eval<Tensor> {
    let [hi, lo] = block(interp, key, &[n])?;
    let (hi, lo) = (interp.reshape(&hi, &[n, 1])?, interp.reshape(&lo, &[n, 1])?);
    interp.op(p::Concatenate { axis: 1 }, &[&hi, &lo])
}

/// Two keys split from one.
pub(super) fn split_in_two(interp: &mut Interp, key: &Tensor) -> Eval<[Tensor; 2]> {
    let rows = split(interp, key, 2)?;
    let mut row = |i: i64| {
        let row = interp.slice_axis(&rows, 0, i, i + 1)?;
        interp.reshape(&row, &[2])
    };
    Ok([row(0)?, row(1)?])
}
