//! Every primitive, compiled by the pinned compiler and run by the runtime, agrees with host evaluation.

mod angles;
mod columns;
mod gpus;
mod halves;
mod random_kernels;
mod random_products;
mod random_programs;
mod random_recurrences;
mod random_reductions;
mod random_updates;
mod reductions;

use std::fmt::Write as _;
use std::time::Duration;

use sheaf_graph::graph::{Builder, Graph, evaluate};
use sheaf_graph::primitives::registry::{Random, Sample, registry};
use sheaf_graph::stablehlo::{KERNEL_FLAGS, KernelSize, Model, Module, emit};
use sheaf_graph::tensor::{DType, HostTensor, TensorType};
use sheaf_runtime::{Buffer, Device, Runtime, Target, Vmfb, sha256};
use sheaf_tests::{compile_once, download, upload, worker};
use sheaf_toolchain::{CompileError, Compiler};

/// Number of samples per program: one compilation costs far less than many.
const BATCH: usize = 24;

/// Number of samples per kernel, which has few operands.
const KERNEL_BATCH: usize = 6;

/// Limit of the compilation of a random program: the compiler never ends with some (Q43).
const TIME: Duration = Duration::from_secs(20);

/// Seeds of the operands of each sample.
const SEEDS: [u64; 3] = [21, 22, 23];

#[test]
fn kernels_agree_with_host_evaluation() {
    check(Model::Kernels(KernelSize::Small), KERNEL_BATCH, 0);
}

#[test]
fn programs_agree_with_host_evaluation() {
    check(Model::Hal, BATCH, 6);
}

/// Constants as results, joined and indexed.
#[test]
fn constants_are_filled() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut builder = Builder::new();
    let x = builder.input(TensorType::new(DType::F32, [3].as_slice()));
    let at = builder.input(TensorType::new(DType::I32, [2].as_slice()));
    let numbers = builder.constant(HostTensor::new([3].as_slice(), vec![1.0_f32, 2.0, 3.0]), false);
    let equal = builder.constant(HostTensor::filled(DType::F32, [3].as_slice(), 7.0), false);
    let scalar = builder.scalar(DType::I64, -5.0);
    let truths = builder.constant(HostTensor::new([2].as_slice(), vec![true, false]), false);
    let joined = builder.concatenate(&[numbers, x], 0);
    let more = builder.concatenate(&[equal, x, numbers], 0);
    let looked_up = builder.gather_rows(numbers, at);
    let positions = builder.iota(DType::I32, &[3], 0);
    let graph =
        builder.finish(vec![numbers, equal, scalar, truths, joined, more, looked_up, positions, x, numbers]);
    let operands = vec![
        HostTensor::new([3].as_slice(), vec![4.0_f32, 5.0, 6.0]),
        HostTensor::new([2].as_slice(), vec![2_i32, 0]),
    ];
    let expected = evaluate(&graph, &operands);
    let mut compiler = Compiler::new(worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    let device = runtime.device(Target::LocalSync).expect("a device");
    for model in [Model::Kernels(KernelSize::Small), Model::Hal] {
        let results = execute(&graph, std::slice::from_ref(&operands), &mut compiler, &device, model);
        assert_eq!(results.expect("a run")[0], expected, "{model:?}");
    }
}

/// Compiles and runs every twelfth sample from one position on, or all of them in `make nightly`; lists the failing ones.
fn check(model: Model, size: usize, from: usize) {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    let device = runtime.device(Target::LocalSync).expect("a device");
    let mut samples = registry();
    if !sheaf_tests::nightly() && std::env::var_os("PRIMITIVES").is_none() {
        samples = samples.into_iter().skip(from).step_by(12).collect();
    }
    // `PRIMITIVES=f64` runs the samples with that in their name or operands.
    if let Ok(wanted) = std::env::var("PRIMITIVES") {
        samples.retain(|sample| wanted.split(',').any(|part| sample.to_string().contains(part)));
    }
    let mut failures = String::new();
    for batch in samples.chunks(size) {
        let result = run(batch, &mut compiler, &device, model);
        if result.is_ok() {
            continue;
        }
        // Alone, each sample shows its own faults only.
        let before = failures.len();
        for sample in batch {
            if let Err(fault) = run(std::slice::from_ref(sample), &mut compiler, &device, model) {
                let fault = format!("{sample}:\n  {}", fault.replace('\n', "\n  "));
                eprintln!("{fault}");
                let _ = writeln!(failures, "{fault}");
            }
        }
        if failures.len() == before {
            // All pass alone: drop samples whose absence does not remove the fault.
            let mut guilty = batch.to_vec();
            let mut fault = String::new();
            for i in (0..batch.len()).rev() {
                let mut fewer = guilty.clone();
                fewer.remove(i);
                if let Err(error) = run(&fewer, &mut compiler, &device, model) {
                    (guilty, fault) = (fewer, error);
                }
            }
            let names: Vec<_> = guilty.iter().map(ToString::to_string).collect();
            let _ = writeln!(failures, "together:\n  {}\n  {fault}", names.join("\n  "));
        }
    }
    assert!(failures.is_empty(), "compiled as {model:?} in another way than evaluated:\n{failures}");
}

/// Compiles the samples as one program and compares its results with those of the host, for each seed.
fn run(batch: &[Sample], compiler: &mut Compiler, device: &Device, model: Model) -> Result<(), String> {
    let graph = join(batch);
    let draw = |seed: u64| batch.iter().flat_map(|sample| sample.draw(seed)).collect();
    let draws: Vec<Vec<HostTensor>> = SEEDS.into_iter().map(draw).collect();
    let results = execute(&graph, &draws, compiler, device, model)?;
    for ((seed, operands), results) in SEEDS.iter().zip(&draws).zip(results) {
        let expected = evaluate(&graph, operands);
        let mut pairs = expected.iter().zip(&results);
        for sample in batch {
            for (host, compiled) in pairs.by_ref().take(sample.graph().outputs.len()) {
                // GPUs add up in `f32`.
                let least = if model == Model::Cuda { 1e-5 } else { 0.0 };
                agree(host, compiled, sample.tolerance.max(least))
                    .map_err(|fault| format!("{sample}, seed {seed}: {fault}"))?;
            }
        }
    }
    Ok(())
}

/// Asserts that programs, of seeds 0, 1000, 2000, .., give what the host gives. There are `usual` of them, or as many as the
/// environment variable `number` says. The compiler may reject one of `rejected` of them: such programs have another form.
fn check_programs(
    number: &str,
    usual: usize,
    rejected: Option<usize>,
    model: Model,
    shapes: &[&[usize]],
    further: &[HostTensor],
    program: impl Fn(u64) -> Graph,
) {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(worker, toolchain).with_time(Some(TIME));
    let device = Runtime::new().expect("a runtime").device(Target::LocalSync).expect("a device");
    let count = if usual == 1 { 1 } else { sheaf_tests::random_cases(number, usual) };
    let mut random = Random(5);
    let mut tensor = |shape: &&[usize]| {
        let numbers: Vec<f32> =
            (0..shape.iter().product()).map(|_| random.uniform(-1.0, 1.0) as f32).collect();
        HostTensor::new(*shape, numbers)
    };
    let operands: Vec<HostTensor> = shapes.iter().map(&mut tensor).chain(further.iter().cloned()).collect();
    let mut faults = Vec::new();
    let mut left = rejected.map_or(0, |one_of| count / one_of);
    for seed in 0..count as u64 {
        let graph = program(1000 * seed);
        let calls = std::slice::from_ref(&operands);
        let expected = evaluate(&graph, &operands);
        let compiled = compile(&graph, &mut compiler, model);
        if left > 0 && matches!(compiled, Err(CompileError::Rejected { .. })) {
            left -= 1;
            continue;
        }
        let result = compiled.map_err(|e| e.to_string()).and_then(|program| {
            let results = call(&graph, &program, calls, &device)?;
            let mut pairs = expected.iter().zip(&results[0]);
            pairs.try_for_each(|(host, compiled)| agree(host, compiled, 1e-5))
        });
        faults.extend(result.err().map(|fault| format!("program {seed}: {fault}\n{graph}")));
    }
    assert!(faults.is_empty(), "{} of {count}:\n{}", faults.len(), faults.join("\n"));
}

/// Compiles a graph and calls it with each set of operands, without donation.
fn execute(
    graph: &Graph,
    calls: &[Vec<HostTensor>],
    compiler: &mut Compiler,
    device: &Device,
    model: Model,
) -> Result<Vec<Vec<HostTensor>>, String> {
    let program = compile(graph, compiler, model).map_err(|e| e.to_string())?;
    call(graph, &program, calls, device)
}

/// Compiles a graph: its text, and the program.
fn compile(graph: &Graph, compiler: &mut Compiler, model: Model) -> Result<(Module, Vec<u8>), CompileError> {
    let module = emit(graph, model);
    let flags = sheaf_target::Target::CPU.flags_for(module.features.doubles);
    let flags = if module.features.kernels {
        flags.into_iter().chain(KERNEL_FLAGS.map(str::to_owned)).collect()
    } else {
        flags
    };
    let tiled = model == Model::Cuda;
    let text = if tiled { gpus::without_tiles(&module.text) } else { module.text.clone() };
    let vmfb = compile_once(compiler, &text, &flags)?;
    Ok((module, vmfb))
}

/// Calls a program with each set of operands.
fn call(
    graph: &Graph,
    (module, vmfb): &(Module, Vec<u8>),
    calls: &[Vec<HostTensor>],
    device: &Device,
) -> Result<Vec<Vec<HostTensor>>, String> {
    let vmfb = Vmfb::verify(vmfb.clone(), &sha256(vmfb)).map_err(|e| e.to_string())?;
    let program = device.load(&vmfb).map_err(|e| e.to_string())?;
    let mut frame = program.call_frame().map_err(|e| e.to_string())?;
    let mut call = |operands: &Vec<HostTensor>| {
        let arguments: Vec<&HostTensor> = operands.iter().chain(&module.constants).collect();
        let buffers: Vec<Buffer> = arguments.iter().map(|tensor| upload(device, tensor)).collect();
        for (i, buffer) in buffers.iter().enumerate() {
            frame.set(i, buffer).map_err(|e| e.to_string())?;
        }
        frame.invoke().map_err(|e| e.to_string())?;
        for (i, (tensor, buffer)) in arguments.iter().zip(&buffers).enumerate() {
            if buffer.read().map_err(|e| e.to_string())? != tensor.bytes() {
                return Err(format!("argument {i} was written over"));
            }
        }
        let result = |(i, var)| download(&frame.result(i).map_err(|e| e.to_string())?, graph.ty(var));
        graph.outputs.iter().copied().enumerate().map(result).collect()
    };
    calls.iter().map(&mut call).collect()
}

/// A graph with the parameters and results of all samples.
fn join(batch: &[Sample]) -> Graph {
    let graphs: Vec<Graph> = batch.iter().map(Sample::graph).collect();
    let mut builder = Builder::new();
    let parameters: Vec<Vec<_>> = graphs
        .iter()
        .map(|graph| graph.inputs.iter().map(|var| builder.input(graph.ty(*var).clone())).collect())
        .collect();
    let mut results = Vec::new();
    for (graph, parameters) in graphs.iter().zip(&parameters) {
        results.extend(builder.inline(graph, parameters));
    }
    builder.finish(results)
}

/// Floats agree up to the tolerance, relative to the larger of 1 and the host's result, and are infinite or not
/// numbers together; all else agrees exactly.
fn agree(host: &HostTensor, compiled: &HostTensor, tolerance: f64) -> Result<(), String> {
    if !host.dtype().is_float() || host.ty() != compiled.ty() {
        return if host == compiled { Ok(()) } else { Err(format!("host {host:?}, compiled {compiled:?}")) };
    }
    for i in 0..host.count() {
        let (x, y) = (host.element_f64(i), compiled.element_f64(i));
        let near = (x - y).abs() <= tolerance * x.abs().max(1.0);
        if !(near || x == y || x.is_nan() && y.is_nan()) {
            return Err(format!("element {i} is {x:?} on the host, {y:?} compiled, tolerance {tolerance:?}"));
        }
    }
    Ok(())
}
