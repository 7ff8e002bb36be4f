//! Random bits: JAX's default generator, threefry2x32 in its partitionable form.
//!
//! A key is a `u32[2]`. The block cipher is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers:
//! as easy as 1, 2, 3", SC 2011); how keys split and how bits become numbers follows `jax.random`.

use crate::diagnostic::Diagnostic;
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::primitives as p;
use crate::tensor::{DType, Data, HostTensor, Shape, element_count};

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

/// The cipher: two words of text, of one shape, under a key.
fn encrypt(interp: &mut Interp, key: &Tensor, text: [&Tensor; 2]) -> Eval<[Tensor; 2]> {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1BD1_1BDA;
    let shape = text[0].shape();
    let full = |x: u32| Tensor::host(HostTensor::filled(DType::U32, shape, f64::from(x)));
    let mut word = |i: i64| -> Eval<Tensor> {
        let w = interp.slice_axis(key, 0, i, i + 1)?;
        let w = interp.reshape(&w, &[])?;
        interp.broadcast_to(&w, shape)
    };
    let (k0, k1) = (word(0)?, word(1)?);
    let add = |i: &mut Interp, a: &Tensor, b: &Tensor| i.op(p::Binary(p::Add), &[a, b]);
    let xor = |i: &mut Interp, a: &Tensor, b: &Tensor| i.op(p::Binary(p::Xor), &[a, b]);
    let k2 = xor(interp, &k0, &k1)?;
    let k2 = xor(interp, &k2, &full(PARITY))?;
    let schedule = [k0, k1, k2];
    let mut x0 = add(interp, text[0], &schedule[0])?;
    let mut x1 = add(interp, text[1], &schedule[1])?;
    for round in 0..5 {
        for rotation in ROTATIONS[round % 2] {
            x0 = add(interp, &x0, &x1)?;
            let left = interp.op(p::Binary(p::ShiftLeft), &[&x1, &full(rotation)])?;
            let right = interp.op(p::Binary(p::ShiftRightLogical), &[&x1, &full(32 - rotation)])?;
            let turned = interp.op(p::Binary(p::Or), &[&left, &right])?;
            x1 = xor(interp, &x0, &turned)?;
        }
        x0 = add(interp, &x0, &schedule[(round + 1) % 3])?;
        x1 = add(interp, &x1, &schedule[(round + 2) % 3])?;
        x1 = add(interp, &x1, &full(round as u32 + 1))?;
    }
    Ok([x0, x1])
}

/// The two words of the block for every position of `shape`: the counter is the position, as 64 bits in two words.
fn block(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<[Tensor; 2]> {
    let n = element_count(shape);
    if n as u64 > u64::from(u32::MAX) {
        return fail("more than 2^32 random numbers in one call");
    }
    let low: Vec<u32> = (0..n as u32).collect();
    let low = Tensor::host(HostTensor::new(Shape::from_slice(shape), low));
    let high = Tensor::host(HostTensor::filled(DType::U32, shape, 0.0));
    encrypt(interp, key, [&high, &low])
}

/// 32 random bits for every position of `shape`.
pub(super) fn bits(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    let [hi, lo] = block(interp, key, shape)?;
    interp.op(p::Binary(p::Xor), &[&hi, &lo])
}

/// Uniform in `[low, high)`: 23 random bits are the fraction of a float in [1, 2).
pub(super) fn uniform(
    interp: &mut Interp,
    key: &Tensor,
    shape: &[usize],
    low: &Tensor,
    high: &Tensor,
) -> Eval<Tensor> {
    let words = |x: u32| Tensor::host(HostTensor::filled(DType::U32, shape, f64::from(x)));
    let random = bits(interp, key, shape)?;
    let fraction = interp.op(p::Binary(p::ShiftRightLogical), &[&random, &words(9)])?;
    let float_bits = interp.op(p::Binary(p::Or), &[&fraction, &words(1.0_f32.to_bits())])?;
    let x = interp.op(p::BitcastConvert { dtype: DType::F32 }, &[&float_bits])?;
    let one = Tensor::host(HostTensor::filled(DType::F32, shape, 1.0));
    let x = interp.op(p::Binary(p::Sub), &[&x, &one])?;
    let width = interp.op(p::Binary(p::Sub), &[high, low])?;
    let (width, low) = (interp.broadcast_to(&width, shape)?, interp.broadcast_to(low, shape)?);
    let x = scaled(interp, &x, &width, &low)?;
    interp.op(p::Binary(p::Max), &[&low, &x])
}

/// `x * width + low`, rounded once: XLA and IREE both contract the two operations, so that numbers which are computed
/// here must be, too, or they would not be those of JAX and of compiled programs.
fn scaled(interp: &mut Interp, x: &Tensor, width: &Tensor, low: &Tensor) -> Eval<Tensor> {
    if let (Tensor::Concrete(a), Tensor::Concrete(b), Tensor::Concrete(c)) = (x, width, low) {
        let (a, b, c) = (a.host()?, b.host()?, c.host()?);
        if let (Data::F32(xs), Data::F32(widths), Data::F32(lows)) = (a.data(), b.data(), c.data()) {
            let all = xs.iter().zip(widths.iter()).zip(lows.iter());
            let sums: Vec<f32> = all.map(|((x, width), low)| x.mul_add(*width, *low)).collect();
            return Ok(Tensor::host(HostTensor::new(a.shape(), sums)));
        }
    }
    let product = interp.op(p::Binary(p::Mul), &[x, width])?;
    interp.op(p::Binary(p::Add), &[&product, low])
}

/// The key of a seed or of data to fold in: its low 32 bits, as JAX has it with its default of 32-bit integers.
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

/// A key made of a key and data, itself written as a key.
pub(super) fn fold_in(interp: &mut Interp, key: &Tensor, data: &Tensor) -> Eval<Tensor> {
    let high = interp.slice_axis(data, 0, 0, 1)?;
    let low = interp.slice_axis(data, 0, 1, 2)?;
    let [hi, lo] = encrypt(interp, key, [&high, &low])?;
    interp.op(p::Concatenate { axis: 0 }, &[&hi, &lo])
}

/// `n` keys made of one, as the rows of a tensor.
pub(super) fn split(interp: &mut Interp, key: &Tensor, n: usize) -> Eval<Tensor> {
    let [hi, lo] = block(interp, key, &[n])?;
    let (hi, lo) = (interp.reshape(&hi, &[n, 1])?, interp.reshape(&lo, &[n, 1])?);
    interp.op(p::Concatenate { axis: 1 }, &[&hi, &lo])
}

/// Two keys made of one.
pub(super) fn split_in_two(interp: &mut Interp, key: &Tensor) -> Eval<[Tensor; 2]> {
    let rows = split(interp, key, 2)?;
    let mut row = |i: i64| {
        let row = interp.slice_axis(&rows, 0, i, i + 1)?;
        interp.reshape(&row, &[2])
    };
    Ok([row(0)?, row(1)?])
}
