//! Random programs: every donation that the rules allow gives the results of the host.

use std::sync::Arc;

use sheaf_graph::graph::{Builder, Graph, Op, Var, donations, evaluate};
use sheaf_graph::primitives::registry::Random;
use sheaf_graph::primitives::{Add, Binary, DotGeneral, Max, Mul, OptimizationBarrier, Sub, Tanh, Unary};
use sheaf_graph::stablehlo::{Model, Module, emit_donating};
use sheaf_graph::tensor::{DType, HostTensor, Shape, TensorType};
use sheaf_runtime::{Device, ElementType, Runtime, Target, Vmfb, Workers, sha256};
use sheaf_toolchain::Compiler;

/// Number of programs, and number compiled as one.
const PROGRAMS: usize = 8;
const BATCH: usize = 8;

/// Several tiles per worker.
const SIDE: usize = 64;

/// Number of argument sets.
const DRAWS: u64 = 3;

#[test]
fn random_programs_give_what_the_host_computes() {
    let Some(toolchain) = sheaf_tests::toolchain() else { return };
    let mut compiler = Compiler::new(sheaf_tests::worker, toolchain);
    let runtime = Runtime::new().expect("a runtime");
    let two = Workers::Exactly(2.try_into().expect("not zero"));
    let devices = [Target::LocalSync, Target::LocalTask(two)].map(|t| runtime.device(t).expect("a device"));
    let programs = sheaf_tests::random_cases("DONATIONS", PROGRAMS);
    let mut found = 0;
    for batch in 0..programs / BATCH {
        let mut b = Builder::new();
        let mut outputs = Vec::new();
        for i in 0..BATCH {
            let mut random = Random((batch * BATCH + i) as u64);
            outputs.extend(program(&mut b, &mut random));
        }
        let graph = b.finish(outputs);
        let chosen = donations(&graph, 1);
        found += chosen.len();
        let module = emit_donating(&graph, Model::Hal, &chosen);
        let flags = sheaf_target::Target::CPU.flags_for(module.features.doubles);
        let vmfb = sheaf_tests::compile_once(&mut compiler, &module.text, &flags).expect("a program");
        let consumed: Vec<usize> = chosen.iter().map(|d| d.argument).collect();
        for device in &devices {
            check(&graph, &consumed, device, vmfb.clone(), &module, batch);
        }
    }
    println!("{found} results took the place of arguments in {programs} programs");
    assert!(found > programs, "only {found} donations: the programs test nothing");
}

/// Records a program of four arguments; its results.
fn program(b: &mut Builder, random: &mut Random) -> Vec<Var> {
    let arguments: Vec<Var> =
        (0..4).map(|_| b.input(TensorType::new(DType::F32, [SIDE, SIDE].as_slice()))).collect();
    let mut pool = arguments.clone();
    let binary: [Op; 4] =
        [Arc::new(Binary(Add)), Arc::new(Binary(Sub)), Arc::new(Binary(Mul)), Arc::new(Binary(Max))];
    for _ in 0..6 + random.below(10) {
        let pick = |random: &mut Random| pool[random.below(pool.len() as u64) as usize];
        let (x, y) = (pick(random), pick(random));
        let made = match random.below(8) {
            0 => b.apply(Unary(Tanh), &[x]),
            1 => b.transpose(x, &[1, 0]),
            2 => {
                let axes = [Shape::from_slice(&[1]), Shape::from_slice(&[0])];
                let product = b.apply(DotGeneral { contract: axes, batch: Default::default() }, &[x, y]);
                b.scale(product, 1.0 / SIDE as f64)
            }
            3 => {
                let sum = b.sum(x, &[0]);
                let mean = b.scale(sum, 1.0 / SIDE as f64);
                b.broadcast_in_dim(mean, &[SIDE, SIDE], &[1])
            }
            4 => {
                let held = b.apply_all(OptimizationBarrier, &[x, y]);
                let difference = b.sub(held[0], held[1]);
                b.apply(Unary(Tanh), &[difference])
            }
            _ => b.bind(binary[random.below(4) as usize].clone(), &[x, y]).expect("one type")[0],
        };
        pool.push(made);
    }
    // Results of a training step: arguments updated by values behind a barrier.
    let last = pool.split_off(pool.len() - 3);
    let held = b.apply_all(OptimizationBarrier, &last);
    let mut results = Vec::new();
    for (argument, held) in arguments.iter().zip(&held) {
        if random.below(4) > 0 {
            let op = binary[random.below(2) as usize].clone();
            results.push(b.bind(op, &[*argument, *held]).expect("one type")[0]);
        }
    }
    // And some intermediate values.
    results.push(pool[pool.len() - 1]);
    results
}

fn check(graph: &Graph, consumed: &[usize], device: &Device, vmfb: Vec<u8>, module: &Module, batch: usize) {
    assert!(module.constants.is_empty());
    let digest = sha256(&vmfb);
    let verified = Vmfb::verify(vmfb, &digest).expect("its digest");
    let program = device.load(&verified).expect("a program");
    let mut frame = program.call_frame().expect("a frame");
    for draw in 0..DRAWS {
        let mut random = Random(1 << 32 | draw);
        let operands: Vec<HostTensor> = graph.inputs.iter().map(|_| tensor(&mut random)).collect();
        for (i, operand) in operands.iter().enumerate() {
            let buffer = device.upload(ElementType::F32, operand.shape(), operand.bytes()).expect("a buffer");
            if consumed.contains(&i) {
                frame.donate(i, buffer).expect("nobody else has it");
            } else {
                frame.set(i, &buffer).expect("an argument");
            }
        }
        frame.invoke().expect("a call");
        let results = frame.take_results().expect("results");
        for (i, (expected, result)) in evaluate(graph, &operands).iter().zip(results).enumerate() {
            let result = HostTensor::from_bytes(&expected.ty(), &result.read().expect("elements"));
            let fault = difference(expected, &result.expect("a tensor"));
            assert!(
                fault < 1e-4,
                "batch {batch}, draw {draw}, result {i}: off by {fault} on {}",
                device.target()
            );
        }
    }
}

fn tensor(random: &mut Random) -> HostTensor {
    let numbers: Vec<f32> = (0..SIDE * SIDE).map(|_| random.uniform(-1.0, 1.0) as f32).collect();
    HostTensor::new([SIDE, SIDE].as_slice(), numbers)
}

/// The maximum difference, relative to the larger of 1 and the number.
fn difference(a: &HostTensor, b: &HostTensor) -> f64 {
    let element = |i| {
        let (x, y) = (a.element_f64(i), b.element_f64(i));
        if x == y { 0.0 } else { (x - y).abs() / x.abs().max(1.0) }
    };
    (0..a.count()).map(element).fold(0.0, |m, d| if d.is_nan() { f64::INFINITY } else { f64::max(m, d) })
}
