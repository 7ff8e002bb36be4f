//! The cost of a call: 500 steps of gradient descent on XOR, each a call of a compiled program whose results are fed
//! back on the device, on each CPU target.
//!
//! `cargo run --release -p sheaf-runtime --example call_loop [TARGET ...]`, with a compiler as the tests want one.

use std::time::{Duration, Instant};

use sheaf_runtime::{Buffer, CallFrame, ElementType, Error, Runtime, Target, Vmfb, sha256};

#[path = "../tests/runtime/compiler.rs"]
mod compiler;

const STEP: &str = include_str!("xor_step.mlir");
const CALLS: u32 = 500;
const RUNS: usize = 21;
const PARAMETERS: usize = 4;

fn main() -> Result<(), Error> {
    if compiler::is_library_process() {
        compiler::library_process();
    }
    let chosen: Vec<String> = std::env::args().skip(1).collect();
    let runtime = Runtime::new()?;
    println!("              call    best    open    load  upload    read    VMFB      last");
    println!("target          us      us      us      us  num us  num us   bytes      loss");
    for target in Target::ALL {
        if chosen.is_empty() || chosen.contains(&target.to_string()) {
            measure(&runtime, target)?;
        }
    }
    Ok(())
}

/// Prints one line of the table; nothing if there is no compiler.
fn measure(runtime: &Runtime, target: Target) -> Result<(), Error> {
    let Some(bytes) = compiler::compile(STEP) else { return Ok(()) };
    let digest = sha256(&bytes);
    let vmfb = Vmfb::verify(bytes, &digest).expect("these bytes have just been hashed");
    let (device, open) = timed(|| runtime.device(target))?;
    let f32s = |shape: &[usize], values: &[f32]| {
        device.upload(ElementType::F32, shape, bytemuck::cast_slice(values))
    };
    let start = [f32s(&[2, 8], &W1)?, f32s(&[8], &[0.0; 8])?, f32s(&[8, 1], &W2)?, f32s(&[1], &[0.0])?];
    let (program, load) = timed(|| device.load(&vmfb))?;
    let mut frame = program.call_frame()?;
    frame.set(4, &f32s(&[4, 2], &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0])?)?;
    frame.set(5, &f32s(&[4, 1], &[0.0, 1.0, 1.0, 0.0])?)?;
    frame.set(6, &f32s(&[], &[0.7])?)?;

    let mut times = Vec::new();
    let mut loss = f32s(&[], &[f32::NAN])?;
    for _ in 0..RUNS {
        let (last, time) = timed(|| train(&mut frame, &start))?;
        times.push(time);
        loss = last;
    }
    times.sort_unstable();
    let ((), upload) = timed(|| (0..CALLS).try_for_each(|_| f32s(&[], &[0.7]).map(drop)))?;
    let mut number = [0; 4];
    let ((), read) = timed(|| (0..CALLS).try_for_each(|_| loss.read_into(&mut number)))?;

    let micros = |time: Duration, count: u32| time.as_secs_f64() * 1e6 / f64::from(count);
    println!(
        "{:10} {:7.2} {:7.2} {:7.1} {:7.1} {:7.3} {:7.3} {:7} {:9.6}",
        target.to_string(),
        micros(times[RUNS / 2], CALLS),
        micros(times[0], CALLS),
        micros(open, 1),
        micros(load, 1),
        micros(upload, CALLS),
        micros(read, CALLS),
        vmfb.bytes().len(),
        f32::from_ne_bytes(number),
    );
    Ok(())
}

fn timed<T>(work: impl FnOnce() -> Result<T, Error>) -> Result<(T, Duration), Error> {
    let begin = Instant::now();
    let value = work()?;
    Ok((value, begin.elapsed()))
}

/// Trains from `start`; returns the last loss.
fn train(frame: &mut CallFrame, start: &[Buffer; PARAMETERS]) -> Result<Buffer, Error> {
    for (index, parameter) in start.iter().enumerate() {
        frame.set(index, parameter)?;
    }
    let mut results = Vec::new();
    for _ in 0..CALLS {
        frame.invoke()?;
        results = frame.take_results()?;
        for (index, parameter) in results[..PARAMETERS].iter().enumerate() {
            frame.set(index, parameter)?;
        }
    }
    Ok(results.swap_remove(PARAMETERS))
}

/// Arbitrary initial weights that learn XOR.
const W1: [f32; 16] = [0.9, -0.7, 0.3, -1.1, 0.6, -0.4, 1.2, -0.8, -0.6, 1.0, 0.8, 0.5, -1.3, 0.7, -0.9, 0.4];
const W2: [f32; 8] = [0.8, 0.9, -0.6, -0.7, 1.1, -0.5, 0.7, 0.6];
