//! Trials of donating programs: each is used only after its results were those of the plain one, and it wrote to nothing
//! that it does not consume. Programs with loops as blocks are tried likewise, since calls of some fail (Q37).
//!
//! A program with little memory is tried on numbers that are always the same ([`agrees`]). For one with much, there would
//! be no room beside what the program has already; it is tried in a call ([`OnTrial`]), on the call's own arguments.

use std::cell::RefCell;
use std::hash::{DefaultHasher, Hasher};
use std::rc::{Rc, Weak};

use sheaf_graph::graph::evaluate;
use sheaf_graph::primitives::{Convert, Primitive};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_lang::host::{Buffer, HostError, Leaf, Placement, Program, Unit};
use sheaf_runtime::{Device, Error};

use super::CompileRun;
use super::caches::Caches;
use sheaf_loader::{DeviceBuffer, Job, Loaded, all_owned, runtime_error, upload};

/// Inputs on which both programs must agree.
const TRIALS: u64 = 2;

/// The relative difference that results may have: the compiler may sum up in another order.
const TOLERANCE: f64 = 1e-4;

/// The relative change of a program's arguments that shows how far its results depend on rounding: sixteen units in the
/// last place of an `f32`.
const NUDGE: f64 = 1e-6;

/// The distance of results, as a multiple of that which the nudge makes, that is still rounding.
const AMPLIFIED: f64 = 8.0;

/// Largest distance that the nudge may make, relative to the largest number of a result: beyond it the result says nothing.
const CHAOS: f64 = 1e-2;

/// Programs whose arguments take more bytes are tried in a call.
const MUCH: usize = 32 << 20;

/// Bytes of a buffer that are compared at a time.
const PIECE: usize = 1 << 20;

/// True if the unit's program is tried in a call.
pub fn takes_much(unit: &Unit) -> bool {
    unit.inputs.iter().map(|leaf| leaf.ty.count() * leaf.ty.dtype.byte_width()).sum::<usize>() > MUCH
}

/// True if a donating program gives the results of the plain one, for numbers that are always the same, and leaves
/// alone what it does not consume.
///
/// At one time there are the arguments and results of one call on the device, the results of another, and one tensor in
/// host memory.
pub fn agrees(device: &Device, unit: &Unit, plain: &Loaded, donating: &Loaded) -> Result<bool, Error> {
    agree(device, unit, [plain, donating], same)
}

/// True if two programs give the same results for numbers that are always the same: no number of a result differs by more than
/// `tolerance` times the largest of it.
pub fn agrees_within(
    device: &Device,
    unit: &Unit,
    programs: [&Loaded; 2],
    tolerance: f64,
) -> Result<bool, Error> {
    agree(device, unit, programs, |a, b| is_within(a, b, tolerance))
}

fn is_within(a: &HostTensor, b: &HostTensor, tolerance: f64) -> bool {
    let finite = |t: &HostTensor, i: usize| Some(t.element_f64(i)).filter(|x| x.is_finite());
    let largest = (0..a.count()).filter_map(|i| finite(a, i)).fold(0.0, |most: f64, x| most.max(x.abs()));
    a.dtype().is_float()
        && (0..a.count()).all(|i| match (finite(a, i), finite(b, i)) {
            (Some(x), Some(y)) => (x - y).abs() <= tolerance * largest,
            _ => a.element_f64(i).total_cmp(&b.element_f64(i)).is_eq(),
        })
}

fn agree(
    device: &Device,
    unit: &Unit,
    [plain, other]: [&Loaded; 2],
    near: impl Fn(&HostTensor, &HostTensor) -> bool,
) -> Result<bool, Error> {
    for trial in 0..TRIALS {
        let Some(expected) = results(device, unit, plain, trial)? else { return Ok(false) };
        let Some(given) = results(device, unit, other, trial)? else { return Ok(false) };
        for ((a, b), ty) in expected.iter().zip(&given).zip(&plain.results) {
            if !are_near(a, b, ty, &near)? {
                return Ok(false);
            }
        }
    }
    Ok(true)
}

/// True if a program gives the results of its graph on the host, for numbers that are always the same, and leaves alone
/// what it does not consume.
///
/// A loop amplifies rounding: after a hundred steps of a training the fourth digit is another one. Such results must be as
/// near as those of the host for arguments that differ in the last places.
pub fn is_right(device: &Device, unit: &Unit, program: &Loaded) -> Result<bool, Error> {
    let Some(buffers) = results(device, unit, program, 0)? else { return Ok(false) };
    let mut given = Vec::with_capacity(buffers.len());
    for (buffer, ty) in buffers.iter().zip(&program.results) {
        let Some(tensor) = HostTensor::from_bytes(ty, &buffer.read()?) else { return Ok(false) };
        given.push(tensor);
    }
    let inputs: Vec<HostTensor> =
        unit.inputs.iter().enumerate().map(|(i, leaf)| sample(leaf, i as u64)).collect();
    let expected = evaluate(&unit.graph, &inputs);
    if expected.iter().zip(&given).all(|(a, b)| same(a, b)) {
        return Ok(true);
    }
    let nudged: Vec<HostTensor> = inputs.iter().map(nudge).collect();
    let moved = evaluate(&unit.graph, &nudged);
    Ok(expected.iter().zip(&given).zip(&moved).all(|((a, b), moved)| same(a, b) || is_rounding(a, b, moved)))
}

/// A tensor of floats whose elements are larger and smaller by turns, by [`NUDGE`].
fn nudge(x: &HostTensor) -> HostTensor {
    if !x.dtype().is_float() {
        return x.clone();
    }
    let factor = |i: usize| if i.is_multiple_of(2) { 1.0 + NUDGE } else { 1.0 - NUDGE };
    let numbers: Vec<f64> = (0..x.count()).map(|i| x.element_f64(i) * factor(i)).collect();
    let to = Convert { dtype: x.dtype(), weak: false };
    to.evaluate(&[&HostTensor::new(x.shape(), numbers)]).swap_remove(0)
}

/// True if two results are no further apart than rounding explains: `moved` is the first for nudged arguments.
fn is_rounding(expected: &HostTensor, given: &HostTensor, moved: &HostTensor) -> bool {
    if !expected.dtype().is_float() {
        return false;
    }
    let largest = (0..expected.count()).map(|i| expected.element_f64(i).abs()).fold(0.0, f64::max);
    // NaN is no distance.
    let apart = |other: &HostTensor| {
        let distances = (0..expected.count()).map(|i| (expected.element_f64(i) - other.element_f64(i)).abs());
        distances.fold(0.0, |most: f64, d| if d.is_nan() { f64::INFINITY } else { most.max(d) })
    };
    let explained = apart(moved);
    explained <= CHAOS * largest && apart(given) <= AMPLIFIED * explained
}

/// The results of a call on the samples of a trial; `None` if it wrote to an argument that it does not consume.
fn results(
    device: &Device,
    unit: &Unit,
    program: &Loaded,
    trial: u64,
) -> Result<Option<Vec<sheaf_runtime::Buffer>>, Error> {
    let argument = |i: usize| sample(&unit.inputs[i], trial << 32 | i as u64);
    let mut frame = program.frame.borrow_mut();
    let mut kept = Vec::new();
    for i in 0..unit.inputs.len() {
        let buffer = upload(device, &argument(i))?;
        if program.consumes(i) {
            frame.donate(i, buffer)?;
        } else {
            frame.set(i, &buffer)?;
            kept.push((i, buffer));
        }
    }
    frame.invoke()?;
    let all = frame.take_results()?;
    drop(frame);
    // Arguments that the frame holds no more must not be taken for set by the next call.
    program.release();
    for (i, buffer) in kept {
        let argument = argument(i);
        if !all_pieces(&buffer, |start, piece| Ok(argument.bytes()[start..].starts_with(piece)))? {
            return Ok(None);
        }
    }
    Ok(Some(all))
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

/// True if two tensors have the same elements, to the rounding of sums.
pub fn same(a: &HostTensor, b: &HostTensor) -> bool {
    if a.bytes() == b.bytes() {
        return true;
    }
    if !a.dtype().is_float() {
        return false;
    }
    let elements = |t: &HostTensor| {
        let t = t.clone();
        (0..t.count()).map(move |i| t.element_f64(i))
    };
    let largest = elements(a).filter(|x| x.is_finite()).fold(0.0, |m: f64, x| m.max(x.abs()));
    let near = |x: f64, y: f64| {
        x == y || x.is_nan() && y.is_nan() || (x - y).abs() <= TOLERANCE * (x.abs() + 1e-2 * largest)
    };
    elements(a).zip(elements(b)).all(|(x, y)| near(x, y))
}

/// True if buffers of that type are equal or `near`. They are brought to the host only if they are not equal.
fn are_near(
    a: &sheaf_runtime::Buffer,
    b: &sheaf_runtime::Buffer,
    ty: &TensorType,
    near: impl Fn(&HostTensor, &HostTensor) -> bool,
) -> Result<bool, Error> {
    if are_equal(a, b)? {
        return Ok(true);
    }
    let tensor =
        |buffer: &sheaf_runtime::Buffer| buffer.read().map(|bytes| HostTensor::from_bytes(ty, &bytes));
    Ok(tensor(a)?.zip(tensor(b)?).is_some_and(|(a, b)| near(&a, &b)))
}

/// True if two buffers have the same bytes.
fn are_equal(a: &sheaf_runtime::Buffer, b: &sheaf_runtime::Buffer) -> Result<bool, Error> {
    if a.byte_len() != b.byte_len() {
        return Ok(false);
    }
    let mut other = vec![0; PIECE.min(b.byte_len())];
    all_pieces(a, |start, piece| {
        let other = &mut other[..piece.len()];
        b.read_part(start, other)?;
        Ok(piece == other)
    })
}

/// A number that is another one once something has been written to a buffer.
fn digest(buffer: &sheaf_runtime::Buffer) -> Result<u64, Error> {
    let mut hasher = DefaultHasher::new();
    all_pieces(buffer, |_, piece| {
        hasher.write(piece);
        Ok(true)
    })?;
    Ok(hasher.finish())
}

/// True if `f` is true of the pieces of a buffer, each with the byte at which it starts, one after the other.
fn all_pieces(
    buffer: &sheaf_runtime::Buffer,
    mut f: impl FnMut(usize, &[u8]) -> Result<bool, Error>,
) -> Result<bool, Error> {
    let length = buffer.byte_len();
    let mut piece = vec![0; PIECE.min(length)];
    for start in (0..length).step_by(PIECE) {
        let piece = &mut piece[..PIECE.min(length - start)];
        buffer.read_part(start, piece)?;
        if !f(start, piece)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// A program on trial: in the first call that owns all it consumes, both programs are called, the plain one first. The
/// results of that are the call's, so a trial takes the memory of a plain call, and the time of two.
///
/// Results must be equal to the last bit, and each argument that is consumed must have been another than what takes its
/// place: on the samples of [`agrees`] every mistake is large, but a step of a training may change little.
pub struct OnTrial {
    plain: Rc<Loaded>,
    donating: Rc<Loaded>,
    stage: RefCell<Stage>,
    /// The place that keeps it once it was right.
    caches: Weak<Caches>,
}

enum Stage {
    Untried(Box<Fresh>),
    Right,
    Wrong,
}

/// The compiler's result.
pub struct Fresh {
    pub job: Job,
    pub bytes: Vec<u8>,
    pub run: CompileRun,
}

impl OnTrial {
    /// A trial of `donating` beside `plain`.
    pub fn new(plain: &Rc<Loaded>, donating: Loaded, fresh: Fresh, caches: &Rc<Caches>) -> OnTrial {
        OnTrial {
            plain: Rc::clone(plain),
            donating: donating.beside(plain),
            stage: RefCell::new(Stage::Untried(Box::new(fresh))),
            caches: Rc::downgrade(caches),
        }
    }

    /// Makes a call with both programs. `None` if that showed nothing: an argument still had another reference.
    fn try_out(
        &self,
        arguments: &mut Vec<Buffer>,
        results: &mut Vec<Buffer>,
    ) -> Result<Option<bool>, HostError> {
        let first = results.len();
        self.plain.call(&mut arguments.clone(), results)?;
        self.plain.release();
        let expected = &results[first..];
        let (donations, consumes) = (&self.donating.donations, |i: &usize| self.donating.consumes(*i));
        let mut kept = Vec::new();
        for i in (0..arguments.len()).filter(|i| !consumes(i)) {
            kept.push((Rc::clone(&arguments[i]), buffer_digest(&arguments[i])?));
        }
        for d in donations {
            if are_same(&arguments[d.argument], &expected[d.output])? {
                return Ok(Some(false));
            }
        }
        if !all_owned(arguments, donations) {
            return Ok(None);
        }
        let mut given = Vec::new();
        if self.donating.call(arguments, &mut given).is_err() {
            return Ok(Some(false));
        }
        for (a, b) in expected.iter().zip(&given) {
            if !are_same(a, b)? {
                return Ok(Some(false));
            }
        }
        for (argument, before) in kept {
            if buffer_digest(&argument)? != before {
                return Ok(Some(false));
            }
        }
        Ok(Some(true))
    }
}

impl Program for OnTrial {
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError> {
        let mut stage = self.stage.borrow_mut();
        match &*stage {
            Stage::Right => self.donating.call(arguments, results),
            Stage::Untried(fresh) if all_owned(arguments, &self.donating.donations) => {
                let verdict = self.try_out(arguments, results);
                arguments.clear();
                match verdict? {
                    Some(true) => {
                        if let Some(caches) = self.caches.upgrade() {
                            caches.keep(&fresh.job, &fresh.bytes, fresh.run);
                            caches.folder.record(&fresh.job, &fresh.bytes, fresh.run.alternative);
                        }
                        *stage = Stage::Right;
                    }
                    Some(false) => *stage = Stage::Wrong,
                    None => {}
                }
                Ok(())
            }
            Stage::Untried(_) | Stage::Wrong => self.plain.call(arguments, results),
        }
    }

    fn placement(&self) -> Placement {
        match &*self.stage.borrow() {
            Stage::Right => self.donating.placement(),
            Stage::Untried(_) | Stage::Wrong => self.plain.placement(),
        }
    }
}

fn are_same(a: &Buffer, b: &Buffer) -> Result<bool, HostError> {
    are_equal(DeviceBuffer::of(a)?, DeviceBuffer::of(b)?).map_err(runtime_error)
}

fn buffer_digest(buffer: &Buffer) -> Result<u64, HostError> {
    digest(DeviceBuffer::of(buffer)?).map_err(runtime_error)
}
