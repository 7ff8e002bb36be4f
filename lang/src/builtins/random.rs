//! Random numbers. Every function is pure: the same key gives the same numbers. Bits become numbers as in `jax.random`,
//! so that ported programs draw the same numbers.

use super::create::{checked_count, scalar};
use super::operands::{as_axis, as_dtype, as_shape, as_size};
use super::threefry::{self, bits, key, normal_of, split_in_two, uniform, uniform_of};
use super::{Builtin, Parsed, VARIADIC, as_index, parse};
use crate::eval::{Eval, Interp, bind_all, fail};
use crate::program::{Tensor, Value};
use sheaf_graph::graph::Op;
use sheaf_graph::primitives as p;
use sheaf_graph::tensor::{DType, HostTensor, Shape};
use sheaf_syntax::diagnostic::Diagnostic;

pub(super) const BUILTINS: &[Builtin] = &[
    Builtin::new(
        "random-key",
        "(random-key seed)",
        "a key for random functions, made of the low 32 bits of an integer. A key gives the same numbers each time: \
         split it, or fold in a count, for others",
        (1, 1),
        |i, a| threefry::seed(i, &a[0], "the seed").map(Value::Tensor),
    )
    .examples("(random-key 42) ;=> tensor u32[2] = [0 42]\n(random-key 1.5) ;=> error: whole number"),
    Builtin::new(
        "random-split",
        "(random-split key n)",
        "n independent keys, 2 by default, as the rows of a tensor",
        (1, 2),
        |i, a| {
            let n = a.get(1).map_or(Ok(2), |n| as_size(n, "the number of keys"))?;
            checked_count(&[n, 2])?;
            threefry::split(i, &key(&a[0])?, n).map(Value::Tensor)
        },
    )
    .examples("(shape (random-split (random-key 0) 3)) ;=> '[3 2]\n(let [[a b] (random-split (random-key 0))] (equal? a b)) ;=> false"),
    Builtin::new(
        "fold-in",
        "(fold-in key n)",
        "a key made of a key and an integer, such as the number of a step",
        (2, 2),
        |i, a| {
            let key = key(&a[0])?;
            let data = threefry::seed(i, &a[1], "what is folded in")?;
            threefry::fold_in(i, &key, &data).map(Value::Tensor)
        },
    )
    .examples("(shape (fold-in (random-key 0) 7)) ;=> '[2]"),
    Builtin::new(
        "random-uniform",
        "(random-uniform key shape? :low l :high h :dtype :f32)",
        "numbers drawn uniformly from low, 0 by default, up to but not including high, 1 by default; without a shape one\n\
         :minval and :maxval are other names of the bounds",
        (1, VARIADIC),
        |i, a| {
            let parsed = parse(a, &["low", "high", "minval", "maxval", "dtype"], &[])?;
            let (key, shape) = key_and_shape(&parsed)?;
            let dtype = float_dtype(&parsed)?;
            let bound = |i: &mut Interp, names: [&str; 2], default: i64| {
                let given = parsed.option(names[0]).or_else(|| parsed.option(names[1]));
                scalar(i, given.unwrap_or(&Value::Int(default)), "a bound")
            };
            let (low, high) = (bound(i, ["low", "minval"], 0)?, bound(i, ["high", "maxval"], 1)?);
            Ok(Value::Tensor(uniform_of(i, dtype, &key, &shape, [&low, &high])?))
        },
    )
    .examples("(shape (random-uniform (random-key 0) '[2 3])) ;=> '[2 3]\n(all (< (random-uniform (random-key 0) 9 :low -2 :high -1) -1)) ;=> true"),
    Builtin::new(
        "random-range",
        "(random-range key shape low high)",
        "numbers drawn uniformly from low up to but not including high",
        (4, 4),
        |i, a| {
            let parsed = parse(a, &[], &[])?;
            let [key_value, shape, low, high] = parsed.exactly()?;
            let shape = as_shape(&[shape])?;
            checked_count(&shape)?;
            let (low, high) = (scalar(i, low, "a bound")?, scalar(i, high, "a bound")?);
            Ok(Value::Tensor(uniform(i, &key(key_value)?, &shape, &low, &high)?))
        },
    )
    .examples("(shape (random-range (random-key 0) '[2 3] -1 1)) ;=> '[2 3]\n(all (>= (random-range (random-key 0) 9 3 5) 3)) ;=> true"),
    Builtin::new(
        "random-normal",
        "(random-normal key shape :dtype :f32)",
        "numbers drawn from the normal distribution with mean 0 and variance 1",
        (2, VARIADIC),
        |i, a| {
            let parsed = parse(a, &["dtype"], &[])?;
            let (key, shape) = key_and_shape(&parsed)?;
            normal_of(i, float_dtype(&parsed)?, &key, &shape).map(Value::Tensor)
        },
    )
    .examples("(shape (random-normal (random-key 0) '[2 3])) ;=> '[2 3]\n(< (abs (mean (random-normal (random-key 0) 1000))) 0.1) ;=> true"),
    Builtin::new(
        "random-randint",
        "(random-randint key shape low high :dtype :i32)",
        "integers (i32) of low up to but not including high",
        (4, 6),
        |i, a| {
            let parsed = parse(a, &["dtype"], &[])?;
            let [key_value, shape, low, high] = parsed.exactly()?;
            check_dtype(&parsed, DType::I32)?;
            let key = key(key_value)?;
            let shape = as_shape(&[shape])?;
            checked_count(&shape)?;
            let (low, high) = (i32_bound(i, low)?, i32_bound(i, high)?);
            integers(i, &key, &shape, &low, &high).map(Value::Tensor)
        },
    )
    .examples("(all (< (random-randint (random-key 0) '[100] -5 5) 5)) ;=> true\n(dtype (random-randint (random-key 0) 3 0 9)) ;=> :i32"),
    Builtin::new(
        "choice",
        "(choice key a shape? :p weights :replace true)",
        "numbers of 0 to a-1, or rows of the tensor a, drawn with the probabilities :p, by default all alike; without \
         a shape one of them. With :replace false none is drawn twice",
        (2, VARIADIC),
        choice,
    )
    .takes_whole()
    .examples("(choice (random-key 0) 5 '[2] :p [0 1 0 0 0]) ;=> [1 1]\n(sum (choice (random-key 0) 4 '[4] :replace false)) ;=> 6"),
    Builtin::new(
        "random-bernoulli",
        "(random-bernoulli key p shape?)",
        "booleans that are true with probability p, 0.5 by default; of the shape of p unless one is given",
        (1, 3),
        bernoulli,
    )
    .examples("(random-bernoulli (random-key 0) [0 1]) ;=> [false true]\n(shape (random-bernoulli (random-key 0) 0.5 '[2 3])) ;=> '[2 3]"),
    Builtin::new(
        "random-permutation",
        "(random-permutation key n)",
        "the numbers 0 to n-1, or the rows of a tensor, shuffled",
        (2, 2),
        |i, a| {
            let key = key(&a[0])?;
            let (n, rows) = population(&a[1])?;
            let order = permutation(i, &key, n)?;
            take_rows(i, rows, order).map(Value::Tensor)
        },
    )
    .examples("(sort (random-permutation (random-key 0) 4)) ;=> [0 1 2 3]\n(shape (random-permutation (random-key 0) [[1 2] [3 4] [5 6]])) ;=> '[3 2]"),
    Builtin::new(
        "random-categorical",
        "(random-categorical key logits :axis -1 :shape s)",
        "class numbers drawn with the probabilities softmax(logits) along an axis, which is removed; a shape that ends \
         in what is left draws more",
        (2, VARIADIC),
        categorical,
    )
    .examples("(random-categorical (random-key 0) [0 1000 0]) ;=> 1\n(shape (random-categorical (random-key 0) [0 1] :shape 5)) ;=> '[5]"),
];

fn key_and_shape(parsed: &Parsed) -> Eval<(Tensor, Shape)> {
    let [key_value, shape @ ..] = parsed.positional.as_slice() else {
        return fail("expected a key and a shape");
    };
    let shape = as_shape(shape)?;
    checked_count(&shape)?;
    Ok((key(key_value)?, shape))
}

/// The dtype of floats to draw.
fn float_dtype(parsed: &Parsed) -> Eval<DType> {
    match parsed.option("dtype").map(as_dtype).transpose()? {
        None => Ok(DType::F32),
        Some(dtype) if dtype.is_half() || dtype == DType::F32 => Ok(dtype),
        Some(dtype) => {
            Err(Diagnostic::error(format!("these random numbers are f32, f16 or bf16, not {dtype}"))
                .help(format!(
                    "leave out :dtype and convert the result: (cast (random-normal key shape) :{dtype})"
                ))
                .into())
        }
    }
}

/// Fails if another dtype is asked for than the one that is drawn.
fn check_dtype(parsed: &Parsed, drawn: DType) -> Eval<()> {
    match parsed.option("dtype").map(as_dtype).transpose()? {
        Some(dtype) if dtype != drawn => {
            Err(Diagnostic::error(format!("these random numbers are {drawn}, not {dtype}"))
                .help(format!(
                    "leave out :dtype and convert the result: (cast (random-normal key shape) :{dtype})"
                ))
                .into())
        }
        _ => Ok(()),
    }
}

/// An integer bound, possibly traced; a known one must fit `i32`.
fn i32_bound(interp: &mut Interp, value: &Value) -> Eval<Tensor> {
    match value {
        Value::Tensor(t) if t.ty().rank() == 0 && t.ty().dtype.is_integer() => interp.convert(t, DType::I32),
        other => {
            let bound = as_index(other, "a bound")?;
            match i32::try_from(bound) {
                Ok(n) => Ok(Tensor::host(HostTensor::scalar(n))),
                Err(_) => fail(format!("a bound must be an i32, {bound} is none")),
            }
        }
    }
}

/// As `jax.random.randint`: 64 random bits modulo the width of the interval, in 32-bit arithmetic. An empty interval
/// gives `low`.
fn integers(interp: &mut Interp, key: &Tensor, shape: &[usize], low: &Tensor, high: &Tensor) -> Eval<Tensor> {
    let [high_key, low_key] = split_in_two(interp, key)?;
    let (high_bits, low_bits) = (bits(interp, &high_key, shape)?, bits(interp, &low_key, shape)?);
    let width = interp.op(p::Binary(p::Sub), &[high, low])?;
    let width = interp.convert(&width, DType::U32)?;
    let word = |x: f64| Tensor::host(HostTensor::filled(DType::U32, Shape::new(), x));
    let empty = interp.op(p::Compare { direction: p::Direction::Le }, &[high, low])?;
    let width = interp.op(p::Select, &[&empty, &word(1.0), &width])?;
    let rem = |i: &mut Interp, x: &Tensor, y: &Tensor| i.op(p::Binary(p::Rem), &[x, y]);
    // 2^32 modulo the width, by (a b) mod n = ((a mod n) (b mod n)) mod n.
    let half = rem(interp, &word(65536.0), &width)?;
    let multiplier = interp.op(p::Binary(p::Mul), &[&half, &half])?;
    let multiplier = rem(interp, &multiplier, &width)?;
    let (multiplier, width) = (interp.broadcast_to(&multiplier, shape)?, interp.broadcast_to(&width, shape)?);
    let upper = rem(interp, &high_bits, &width)?;
    let upper = interp.op(p::Binary(p::Mul), &[&upper, &multiplier])?;
    let lower = rem(interp, &low_bits, &width)?;
    let offset = interp.op(p::Binary(p::Add), &[&upper, &lower])?;
    let offset = rem(interp, &offset, &width)?;
    let offset = interp.convert(&offset, DType::I32)?;
    let low = interp.broadcast_to(low, shape)?;
    interp.op(p::Binary(p::Add), &[&low, &offset])
}

/// A population size, or a tensor with that many rows.
fn population(value: &Value) -> Eval<(usize, Option<Tensor>)> {
    match value {
        Value::Tensor(t) if t.ty().rank() > 0 => Ok((t.shape()[0], Some(t.clone()))),
        other => Ok((as_size(other, "the count")?, None)),
    }
}

fn take_rows(interp: &mut Interp, rows: Option<Tensor>, indices: Tensor) -> Eval<Tensor> {
    match rows {
        None => Ok(indices),
        Some(t) => interp.op(p::GatherRows, &[&t, &indices]),
    }
}

fn positions(interp: &Interp, n: usize) -> Eval<Tensor> {
    interp.iota(p::Iota { dtype: DType::I32, shape: [n].as_slice().into(), dimension: 0 })
}

/// `tensors` sorted by the first.
fn sort(interp: &mut Interp, tensors: &[&Tensor]) -> Eval<Tensor> {
    let op: Op = std::sync::Arc::new(p::Sort { axis: 0 });
    Ok(bind_all(&op, tensors, interp.span)?.pop().expect("one result for each operand"))
}

/// As `jax.random.permutation`: sorts by random words, in enough rounds that ties are unlikely to matter.
fn permutation(interp: &mut Interp, key: &Tensor, n: usize) -> Eval<Tensor> {
    checked_count(&[n])?;
    let rounds = (3.0 * (n.max(1) as f64).ln() / f64::from(u32::MAX).ln()).ceil() as usize;
    let (mut key, mut order) = (key.clone(), positions(interp, n)?);
    for _ in 0..rounds {
        let [next, sub] = split_in_two(interp, &key)?;
        key = next;
        let words = bits(interp, &sub, &[n])?;
        order = sort(interp, &[&words, &order])?;
    }
    Ok(order)
}

/// As `jax.random.choice` along axis 0.
fn choice(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["p", "replace"], &[])?;
    let [key_value, from, shape @ ..] = parsed.positional.as_slice() else {
        return fail("choice wants a key and what to choose from");
    };
    let key = key(key_value)?;
    let (n, rows) = population(from)?;
    let shape = if shape.is_empty() { Shape::new() } else { as_shape(shape)? };
    let draws = checked_count(&shape)?;
    let replace = match parsed.option("replace") {
        None => true,
        Some(Value::Bool(b)) => *b,
        Some(other) => return fail(format!(":replace is true or false, not {}", other.describe())),
    };
    if n == 0 && draws > 0 {
        return fail("there is nothing to choose from");
    }
    if !replace && draws > n {
        return Err(Diagnostic::error(format!("{draws} cannot be drawn from {n} without drawing one twice"))
            .help("leave :replace false away, or ask for a smaller shape")
            .into());
    }
    let weights = match parsed.option("p").filter(|v| !matches!(v, Value::Nil)) {
        None => None,
        Some(value) => {
            let p = interp.float(value)?;
            if p.shape() != [n] {
                return fail(format!(":p wants a probability for each of the {n}, got {}", value.describe()));
            }
            Some(p)
        }
    };
    let indices = match (weights, replace) {
        (None, true) => {
            let bound = |n: usize| Tensor::host(HostTensor::scalar(n as i32));
            integers(interp, &key, &shape, &bound(0), &bound(n))?
        }
        (None, false) => {
            let order = permutation(interp, &key, n)?;
            first(interp, &order, draws, &shape)?
        }
        (Some(p), true) => weighted(interp, &key, &p, &shape)?,
        // The largest of log p + Gumbel noise (Kool et al., "Stochastic beams and where to find them", 2019).
        (Some(p), false) => {
            let logits = interp.op(p::Unary(p::Log), &[&p])?;
            let noise = gumbel(interp, &key, &[n])?;
            let noisy = interp.op(p::Binary(p::Add), &[&noise, &logits])?;
            let descending = interp.op(p::Unary(p::Neg), &[&noisy])?;
            let order = positions(interp, n)?;
            let order = sort(interp, &[&descending, &order])?;
            first(interp, &order, draws, &shape)?
        }
    };
    take_rows(interp, rows, indices).map(Value::Tensor)
}

fn first(interp: &mut Interp, order: &Tensor, n: usize, shape: &[usize]) -> Eval<Tensor> {
    let first = interp.slice_axis(order, 0, 0, n as i64)?;
    interp.reshape(&first, shape)
}

/// Positions drawn with probabilities `p`: the number of cumulative sums below a uniform number.
fn weighted(interp: &mut Interp, key: &Tensor, p: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    let n = p.shape()[0];
    let sums = interp.op(p::Cumsum { axis: 0, reverse: false }, &[p])?;
    let total = interp.slice_axis(&sums, 0, n as i64 - 1, n as i64)?;
    let total = interp.reshape(&total, &[])?;
    let [zero, one] = [0.0_f32, 1.0].map(|x| Tensor::host(HostTensor::scalar(x)));
    let u = uniform(interp, key, shape, &zero, &one)?;
    let one = interp.broadcast_to(&one, shape)?;
    let u = interp.op(p::Binary(p::Sub), &[&one, &u])?;
    let total = interp.broadcast_to(&total, shape)?;
    let drawn = interp.op(p::Binary(p::Mul), &[&total, &u])?;
    let mut table: Shape = shape.into();
    table.push(n);
    checked_count(&table)?;
    let last = shape.len();
    let sums =
        interp.op(p::BroadcastInDim { shape: table.clone(), dims: Shape::from_elem(last, 1) }, &[&sums])?;
    let drawn = interp.op(p::BroadcastInDim { shape: table, dims: (0..last).collect() }, &[&drawn])?;
    let below = interp.op(p::Compare { direction: p::Direction::Lt }, &[&sums, &drawn])?;
    let below = interp.convert(&below, DType::I32)?;
    interp.op(p::ReduceSum { axes: Shape::from_elem(last, 1) }, &[&below])
}

/// Gumbel noise: -log(-log u) for u uniform in (0, 1).
fn gumbel(interp: &mut Interp, key: &Tensor, shape: &[usize]) -> Eval<Tensor> {
    let [low, high] = [f32::MIN_POSITIVE, 1.0].map(|x| Tensor::host(HostTensor::scalar(x)));
    let mut x = uniform(interp, key, shape, &low, &high)?;
    for _ in 0..2 {
        x = interp.op(p::Unary(p::Log), &[&x])?;
        x = interp.op(p::Unary(p::Neg), &[&x])?;
    }
    Ok(x)
}

fn bernoulli(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let key = key(&args[0])?;
    let p = interp.float(args.get(1).unwrap_or(&Value::Float(0.5)))?;
    let p = interp.strong(&p)?;
    let shape = match args.get(2) {
        Some(shape) => as_shape(&[shape])?,
        None => p.shape().into(),
    };
    checked_count(&shape)?;
    let [zero, one] = [0.0_f32, 1.0].map(|x| Tensor::host(HostTensor::scalar(x)));
    let u = uniform(interp, &key, &shape, &zero, &one)?;
    let p = interp.broadcast_to(&p, &shape)?;
    Ok(Value::Tensor(interp.op(p::Compare { direction: p::Direction::Lt }, &[&u, &p])?))
}

/// The argmax of logits + Gumbel noise, as in `jax.random.categorical`.
fn categorical(interp: &mut Interp, args: &[Value]) -> Eval<Value> {
    let parsed = parse(args, &["axis", "shape"], &[])?;
    let [key_value, logits] = parsed.positional.as_slice() else {
        return Err(Diagnostic::error("random-categorical wants a key and logits")
            .help("a shape is given as :shape '[2 3]")
            .into());
    };
    let key = key(key_value)?;
    let logits = interp.tensor(logits)?;
    // The noise has no more digits.
    let logits = interp.convert(&logits, DType::F32)?;
    if logits.ty().rank() == 0 {
        return fail("random-categorical wants logits along an axis, got a number");
    }
    let axis = parsed.option("axis").map_or(Ok(-1), |v| as_index(v, ":axis"))?;
    let axis = as_axis(axis, logits.ty().rank(), logits.ty())?;
    if logits.shape()[axis] == 0 {
        return fail(format!("logits {} have no classes to choose from", logits.ty()));
    }
    let mut batch: Shape = logits.shape().into();
    batch.remove(axis);
    let shape = parsed.option("shape").map_or(Ok(batch.clone()), |s| as_shape(&[s]))?;
    let Some(prefix) = shape.strip_suffix(batch.as_slice()) else {
        return fail(format!(":shape must end in {batch:?}, what is left of the logits {}", logits.ty()));
    };
    let mut table = Shape::from_slice(prefix);
    table.extend_from_slice(logits.shape());
    checked_count(&table)?;
    let noise = gumbel(interp, &key, &table)?;
    let logits = interp.broadcast_to(&logits, &table)?;
    let noisy = interp.op(p::Binary(p::Add), &[&noise, &logits])?;
    let axis = prefix.len() + axis;
    Ok(Value::Tensor(interp.op(p::ArgReduce { axis, extreme: p::Extreme::Max }, &[&noisy])?))
}
