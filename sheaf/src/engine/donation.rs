//! Programs whose calls consume arguments: a result takes the place of each.
//!
//! IREE 3.13 has computed wrong numbers in such programs. By the rules of [`sheaf_lang::graph::donations`] it should not;
//! to be sure, a program is used only after its results were those of the plain one, and nothing else was written to.

use std::rc::Rc;

use sheaf_lang::graph::{Donation, donations};
use sheaf_lang::host::{Buffer, Donating, Leaf, Unit};
use sheaf_lang::primitives::{Convert, Primitive};
use sheaf_lang::tensor::{DType, HostTensor};
use sheaf_runtime::{Device, Model, Target};

use super::Loaded;
use super::buffer::{DeviceBuffer, upload};

/// When arguments are consumed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Donate {
    /// Where it saves enough memory to be worth a second compilation.
    #[default]
    Auto,
    /// Wherever it can be done.
    Always,
    /// Nowhere.
    Never,
}

/// Tensors of fewer bytes are not worth it.
const LEAST_TENSOR: usize = 4 << 10;

/// Programs that could save fewer bytes are not compiled a second time.
const LEAST_PROGRAM: usize = 1 << 20;

/// Programs are not compiled a second time before as many calls could have saved so many bytes in all. What is written
/// in place saves about 30 ms for a gigabyte (0.11 to 0.18 ms for 4 MB in training steps), a compilation takes seconds.
const PAID_BYTES: usize = 64 << 30;

/// Programs that are called less often are not compiled a second time, whatever they save.
const LEAST_CALLS: u64 = 8;

/// Inputs on which both programs must agree.
const TRIALS: u64 = 2;

/// The relative difference that results may have: the compiler may sum up in another order.
const TOLERANCE: f64 = 1e-4;

/// What a call of the unit may consume on a target.
pub fn donating(policy: Donate, unit: &Unit, target: Target) -> Option<Donating> {
    // Without a device there are no barriers, which the rules rest on; and the work is little there.
    if policy == Donate::Never || target.model() == Model::Inline {
        return None;
    }
    let (tensor, program) = match policy {
        Donate::Always => (1, 1),
        _ => (LEAST_TENSOR, LEAST_PROGRAM),
    };
    let donations = donations(&unit.graph, tensor);
    let bytes = |d: &Donation| {
        let ty = &unit.inputs[d.argument].ty;
        ty.count() * ty.dtype.byte_width()
    };
    let saved: usize = donations.iter().map(bytes).sum();
    if donations.is_empty() || saved < program {
        return None;
    }
    let after = match policy {
        Donate::Always => 0,
        _ => calls_to_pay(saved),
    };
    Some(Donating { donations, after })
}

/// After how many calls that could each save so many bytes a second compilation pays.
fn calls_to_pay(saved: usize) -> u64 {
    LEAST_CALLS.max((PAID_BYTES / saved.max(1)) as u64)
}

/// Whether a donating program gives what the plain one gives, and leaves alone what it does not consume.
pub fn agrees(
    device: &Device,
    unit: &Unit,
    plain: &Loaded,
    donating: &Loaded,
) -> Result<bool, sheaf_runtime::Error> {
    for trial in 0..TRIALS {
        let arguments: Vec<HostTensor> =
            unit.inputs.iter().enumerate().map(|(i, leaf)| sample(leaf, trial << 32 | i as u64)).collect();
        let expected = results(device, plain, &arguments, &[])?;
        let consumed: Vec<usize> = donating.donations.iter().map(|d| d.argument).collect();
        let given = results(device, donating, &arguments, &consumed)?;
        let Some((expected, given)) = expected.zip(given) else { return Ok(false) };
        if !expected.iter().zip(&given).all(|(a, b)| same(a, b)) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The results of a call; `None` if it wrote to an argument that it does not consume.
fn results(
    device: &Device,
    program: &Loaded,
    arguments: &[HostTensor],
    consumed: &[usize],
) -> Result<Option<Vec<HostTensor>>, sheaf_runtime::Error> {
    let mut frame = program.frame.borrow_mut();
    let mut kept = Vec::new();
    for (i, argument) in arguments.iter().enumerate() {
        let buffer = upload(device, argument)?;
        if consumed.contains(&i) {
            frame.donate(i, buffer)?;
        } else {
            frame.set(i, &buffer)?;
            kept.push((buffer, argument));
        }
    }
    frame.invoke()?;
    let mut all = Vec::new();
    for (i, ty) in program.results.iter().enumerate() {
        all.extend(HostTensor::from_bytes(ty, &frame.result(i)?.read()?));
    }
    (0..arguments.len()).for_each(|i| frame.unset(i));
    for (buffer, argument) in kept {
        if buffer.read()? != argument.bytes() {
            return Ok(None);
        }
    }
    Ok((all.len() == program.results.len()).then_some(all))
}

/// Numbers between 0 and 1, or small integers, that are always the same.
pub fn sample(leaf: &Leaf, seed: u64) -> HostTensor {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        // xorshift64*, Vigna 2016: good enough to tell elements apart.
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 40
    };
    let ty = &leaf.ty;
    let number = |n: u64| match ty.dtype {
        d if d.is_float() => (n as f32 + 0.5) / (1 << 24) as f32,
        DType::Bool => (n & 1) as f32,
        _ => (n % 3) as f32,
    };
    let numbers: Vec<f32> = (0..ty.count()).map(|_| number(next())).collect();
    let to = Convert { dtype: ty.dtype, weak: false };
    to.evaluate(&[&HostTensor::new(ty.shape.clone(), numbers)]).swap_remove(0)
}

/// Whether two tensors have the same elements, to the rounding of sums.
pub fn same(a: &HostTensor, b: &HostTensor) -> bool {
    if a.bytes() == b.bytes() {
        return true;
    }
    if !a.dtype().is_float() {
        return false;
    }
    let elements = |t: &HostTensor| (0..t.count()).map(|i| t.element_f64(i)).collect::<Vec<f64>>();
    let (a, b) = (elements(a), elements(b));
    let largest = a.iter().filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let near = |x: f64, y: f64| {
        x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= TOLERANCE * (x.abs() + 1e-2 * largest)
    };
    a.iter().zip(&b).all(|(x, y)| near(*x, *y))
}

/// Whether nobody else holds any of the arguments that a call consumes.
pub fn all_owned(arguments: &[Buffer], donations: &[Donation]) -> bool {
    donations.iter().all(|d| {
        let argument = &arguments[d.argument];
        Rc::strong_count(argument) == 1 && DeviceBuffer::of(argument).is_ok_and(is_unshared_soon)
    })
}

/// How often to look again, giving way to the threads that have yet to let go of a buffer.
const LOOKS: usize = 1000;

fn is_unshared_soon(buffer: &sheaf_runtime::Buffer) -> bool {
    (0..LOOKS).any(|_| {
        let unshared = buffer.is_unshared();
        if !unshared {
            std::thread::yield_now();
        }
        unshared
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_little_in_each_call_waits_for_more_calls() {
        // A perceptron of 200,000 parameters with Adam; a model of a billion.
        assert_eq!(calls_to_pay(2_400_000), 28_633);
        assert_eq!(calls_to_pay(12_000_000_000), LEAST_CALLS);
    }
}
