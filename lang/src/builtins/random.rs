//! Random numbers: JAX's default generator, threefry2x32 in its partitionable form.
//!
//! A key is a `u32[2]`. The block cipher is Threefry-2x32 with 20 rounds (Salmon et al., "Parallel random numbers:
//! as easy as 1, 2, 3", SC 2011); how keys split and how bits become numbers follows `jax.random`.

use super::create::checked_count;
use super::operands::{as_dtype, as_shape, as_size};
use super::{Builtin, Parsed, as_index};
use crate::eval::{Eval, Interp, Tensor, Value, fail};
use crate::primitives as p;
use crate::tensor::{DType, HostTensor, Shape, element_count};

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new("random-key", "(random-key seed)", "a key for random functions", (1, 1), |_, a| {
        // The low word alone, as JAX with its default of 32-bit integers.
        let seed = as_index(&a[0], "the seed")? as u32;
        Ok(Value::Tensor(Tensor::host(HostTensor::new([2].as_slice(), vec![0, seed]))))
    }),
    Builtin::new(
        "random-split",
        "(random-split key n)",
        "n independent keys, 2 by default",
        (1, 2),
        |i, a| {
            let n = a.get(1).map_or(Ok(2), |n| as_size(n, "the number of keys"))?;
            let key = key(&a[0])?;
            let [hi, lo] = block(i, &key, &[n])?;
            let (hi, lo) = (i.reshape(&hi, &[n, 1])?, i.reshape(&lo, &[n, 1])?);
            Ok(Value::Tensor(i.op(p::Concatenate { axis: 1 }, &[&hi, &lo])?))
        },
    ),
    Builtin::new(
        "random-uniform",
        "(random-uniform key shape :low l :high h)",
        "uniform in [low, high)",
        (2, 6),
        |i, a| {
            let parsed = super::parse(a, &["low", "high", "dtype"], &[])?;
            let (key, shape) = key_and_shape(&parsed)?;
            let low = bound(i, parsed.option("low"), 0)?;
            let high = bound(i, parsed.option("high"), 1)?;
            Ok(Value::Tensor(uniform(i, &key, &shape, &low, &high)?))
        },
    ),
    Builtin::new(
        "random-normal",
        "(random-normal key shape)",
        "normal with mean 0 and variance 1",
        (2, 6),
        |i, a| {
            let parsed = super::parse(a, &["dtype"], &[])?;
            let (key, shape) = key_and_shape(&parsed)?;
            // sqrt 2 * erf_inv u for u uniform in (-1, 1).
            let [low, high] = [(-1.0_f32).next_up(), 1.0].map(|x| Tensor::host(HostTensor::scalar(x)));
            let u = uniform(i, &key, &shape, &low, &high)?;
            let z = i.op(p::Unary(p::ErfInv), &[&u])?;
            let scale =
                Tensor::host(HostTensor::filled(DType::F32, shape, f64::from(std::f32::consts::SQRT_2)));
            Ok(Value::Tensor(i.op(p::Binary(p::Mul), &[&z, &scale])?))
        },
    ),
    Builtin::new(
        "random-permutation",
        "(random-permutation key n)",
        "0 to n-1, or the rows of a tensor, shuffled",
        (2, 2),
        permutation,
    ),
];

fn key(value: &Value) -> Eval<Tensor> {
    match value {
        Value::Tensor(t) if t.ty().dtype == DType::U32 && t.shape() == [2] => Ok(t.clone()),
        other => fail(format!(
            "expected a key such as (random-key 42) gives, a tensor u32[2], got {}",
            other.describe()
        )),
    }
}

fn key_and_shape(parsed: &Parsed) -> Eval<(Tensor, Shape)> {
    let [key_value, shape @ ..] = parsed.positional.as_slice() else {
        return fail("expected a key and a shape");
    };
    match parsed.option("dtype").map(as_dtype) {
        None | Some(Ok(DType::F32)) => {}
        Some(Ok(dtype)) => return fail(format!("random numbers are f32, not {dtype}: cast them")),
        Some(Err(signal)) => return Err(signal),
    }
    let shape = as_shape(shape)?;
    checked_count(&shape)?;
    Ok((key(key_value)?, shape))
}

/// A bound of an interval, a scalar.
fn bound(interp: &mut Interp, value: Option<&Value>, default: i64) -> Eval<Tensor> {
    let value = value.cloned().unwrap_or(Value::Int(default));
    let t = interp.float(&value)?;
    if t.ty().rank() > 0 {
        return fail(format!("a bound is a number, not {}", value.describe()));
    }
    interp.convert(&t, DType::F32)
}

/// The two words of the block for every position of `shape`: the counter is the position, as 64 bits in two words.
fn block(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<[Tensor; 2]> {
    const ROTATIONS: [[u32; 4]; 2] = [[13, 15, 26, 6], [17, 29, 16, 24]];
    const PARITY: u32 = 0x1BD1_1BDA;
    let n = element_count(shape);
    if n as u64 > u64::from(u32::MAX) {
        return fail("more than 2^32 random numbers in one call");
    }
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
    let low: Vec<u32> = (0..n as u32).collect();
    let low = Tensor::host(HostTensor::new(Shape::from_slice(shape), low));
    let mut x0 = add(interp, &full(0), &schedule[0])?;
    let mut x1 = add(interp, &low, &schedule[1])?;
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

/// 32 random bits for every position of `shape`.
fn bits(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    let [hi, lo] = block(interp, key, shape)?;
    interp.op(p::Binary(p::Xor), &[&hi, &lo])
}

/// Uniform in `[low, high)`: 23 random bits are the fraction of a float in [1, 2).
fn uniform(interp: &mut Interp, key: &Tensor, shape: &[usize], low: &Tensor, high: &Tensor) -> Eval<Tensor> {
    let words = |x: u32| Tensor::host(HostTensor::filled(DType::U32, shape, f64::from(x)));
    let random = bits(interp, key, shape)?;
    let fraction = interp.op(p::Binary(p::ShiftRightLogical), &[&random, &words(9)])?;
    let float_bits = interp.op(p::Binary(p::Or), &[&fraction, &words(1.0_f32.to_bits())])?;
    let x = interp.op(p::BitcastConvert { dtype: DType::F32 }, &[&float_bits])?;
    let one = Tensor::host(HostTensor::filled(DType::F32, shape, 1.0));
    let x = interp.op(p::Binary(p::Sub), &[&x, &one])?;
    let width = interp.op(p::Binary(p::Sub), &[high, low])?;
    let (width, low) = (interp.broadcast_to(&width, shape)?, interp.broadcast_to(low, shape)?);
    let x = interp.op(p::Binary(p::Mul), &[&x, &width])?;
    let x = interp.op(p::Binary(p::Add), &[&x, &low])?;
    interp.op(p::Binary(p::Max), &[&low, &x])
}

/// As `jax.random.permutation`: sorts by random words, as often as makes equal words unlikely to matter.
fn permutation(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let mut key = key(&args[0])?;
    let rows = match &args[1] {
        Value::Tensor(t) if t.ty().rank() > 0 => Some(t.clone()),
        _ => None,
    };
    let n = match &rows {
        Some(t) => t.shape()[0],
        None => as_size(&args[1], "the count")?,
    };
    let rounds = (3.0 * (n.max(1) as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize;
    let positions: Vec<i32> = (0..n as i32).collect();
    let mut order = Tensor::host(HostTensor::new([n].as_slice(), positions));
    for _ in 0..rounds {
        let [hi, lo] = block(interp, &key, &[2])?;
        let mut row = |i: i64| -> Eval<Tensor> {
            let (a, b) = (interp.slice_axis(&hi, 0, i, i + 1)?, interp.slice_axis(&lo, 0, i, i + 1)?);
            interp.op(p::Concatenate { axis: 0 }, &[&a, &b])
        };
        let (next, sub) = (row(0)?, row(1)?);
        key = next;
        let words = bits(interp, &sub, &[n])?;
        let sorted = crate::eval::bind_all(
            &(std::sync::Arc::new(p::Sort { axis: 0 }) as crate::graph::Op),
            &[&words, &order],
            interp.span,
        )?;
        order = sorted[1].clone();
    }
    match rows {
        None => Ok(Value::Tensor(order)),
        Some(t) => Ok(Value::Tensor(interp.op(p::GatherRows, &[&t, &order])?)),
    }
}
