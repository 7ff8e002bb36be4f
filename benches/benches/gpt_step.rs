//! The GPT training step of `examples/nanogpt`, compiled with and without simplification, the barrier of
//! `value-and-grad`, donation, and index checks: the time of a call and the peak memory of its buffers. The runs
//! alternate, so that other load on the machine affects all.

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Instant;

use sheaf_benches::{median_of, paired_ratio, without_barriers};
use sheaf_graph::graph::{Donation, Graph, donations};
use sheaf_graph::stablehlo::{Model, emit_donating};
use sheaf_graph::tensor::{DType, HostTensor};
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use sheaf_runtime::{Buffer, CallFrame, Device, ElementType, Runtime, Target, Vmfb, Workers, sha256};
use sheaf_toolchain::Compiler;
use std::sync::Arc;

/// Calls of each program.
const ROUNDS: usize = 41;

/// Minimum bytes of donated tensors, as in the engine.
const LEAST_TENSOR: usize = 4 << 10;

const STEP: &str = "train-step";

const SETUP: &str = "
(use ./model.shf)
(def state (init-state (init-params (random-key 0) 73 config)))
(def ids (int (zeros [12 64])))
(train-step state ids ids 0.001)
";

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let environment = |name: &str| std::env::var(name).ok();
    let home = sheaf_project::Home::locate(environment).expect("a home folder");
    let toolchain = sheaf_toolchain::locate(home.data()).expect("an installed compiler: run a program once");
    let mut compiler = sheaf_benches::compiler(toolchain);
    let simplified = graph(Options::default());
    let traced = graph(Options { unsimplified: true, ..Options::default() });
    let unchecked = graph(Options { no_bounds_check: true, ..Options::default() });
    let donated = donations(&simplified, LEAST_TENSOR);
    let mut variants = [
        ("all", &simplified, &donated[..]),
        ("without donation", &simplified, &[]),
        ("without donation and barrier", &without_barriers(&simplified), &[]),
        ("without donation and simplification", &traced, &[]),
        ("without donation and checks", &unchecked, &[]),
    ]
    .map(|(name, graph, donations)| Variant::new(name, graph, donations, &donated, &mut compiler));
    for round in 0..=ROUNDS {
        for variant in &mut variants {
            let start = Instant::now();
            variant.call();
            if round > 0 {
                variant.times.push(start.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    let reference = variants[1].times.clone();
    println!(
        "GPT training step, {} arguments donated; medians of {ROUNDS} calls, and of the ratios within each round",
        donated.len()
    );
    for variant in &variants {
        println!(
            "  {:37} {:6.2} ms, {:4.2} of the time without donation, {:5.1} MB at most, {} equations, compiled in {:.1} s",
            variant.name,
            median_of(variant.times.clone()),
            paired_ratio(&variant.times, &reference),
            variant.peak as f64 / 1e6,
            variant.equations,
            variant.compilation,
        );
    }
}

/// The graph of the step.
fn graph(options: Options) -> Graph {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join("nanogpt");
    let program = folder.join("bench.shf").display().to_string();
    let taken = Rc::new(RefCell::new(None));
    let options = Options { jit: Jit::Always, ..options };
    let backend = Taker(Rc::clone(&taken));
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), Some(Box::new(backend)), options);
    let module = Interp::program(&program);
    let ended = interp.run_text(&module, "bench", SETUP);
    taken.take().unwrap_or_else(|| panic!("no step: {ended:?}"))
}

/// Stores the step, and ends the run.
struct Taker(Rc<RefCell<Option<Graph>>>);

impl Backend for Taker {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        if unit.function != STEP {
            return Ok(None);
        }
        *self.0.borrow_mut() = Some(unit.graph.clone());
        Err(HostError { message: "taken".into(), help: None })
    }

    fn upload(&mut self, _: &HostTensor) -> Result<sheaf_lang::host::Buffer, HostError> {
        unreachable!("nothing runs")
    }
}

/// A variant of the compiled step, on a device of its own.
struct Variant {
    name: &'static str,
    equations: usize,
    compilation: f64,
    /// Peak memory in bytes.
    peak: usize,
    frame: CallFrame,
    /// Results that are the next arguments.
    fed_back: Vec<Donation>,
    consumed: Vec<usize>,
    times: Vec<f64>,
}

impl Variant {
    fn new(
        name: &'static str,
        graph: &Graph,
        donations: &[Donation],
        fed_back: &[Donation],
        compiler: &mut Compiler,
    ) -> Variant {
        let module = emit_donating(graph, Model::Hal, donations);
        let start = Instant::now();
        let vmfb = compiler
            .compile(&module.text, &sheaf_target::Target::CPU.flags_for(module.features.doubles))
            .expect("a program");
        let compilation = start.elapsed().as_secs_f64();
        let mut arguments: Vec<HostTensor> = Vec::new();
        for var in &graph.inputs {
            let ty = graph.ty(*var);
            let value = if ty.dtype.is_float() { 0.01 } else { 1.0 };
            arguments.push(HostTensor::filled(ty.dtype, ty.shape.clone(), value));
        }
        arguments.extend(module.constants);
        let consumed: Vec<usize> = donations.iter().map(|d| d.argument).collect();
        let load = |target| {
            let device = Runtime::new().and_then(|runtime| runtime.device(target)).expect("a device");
            let digest = sha256(&vmfb);
            let verified = Vmfb::verify(vmfb.clone(), &digest).expect("its digest");
            let mut frame = device.load(&verified).and_then(|p| p.call_frame()).expect("a program");
            for (i, tensor) in arguments.iter().enumerate() {
                give(&mut frame, &consumed, i, upload(&device, tensor));
            }
            (device, frame)
        };
        // Temporary memory of worker threads is not counted.
        let (device, mut frame) = load(Target::LocalSync);
        frame.invoke().expect("a call");
        let peak = device.memory().peak;
        let (_, frame) = load(Target::LocalTask(Workers::Cores));
        Variant {
            name,
            equations: graph.equations.len(),
            compilation,
            peak,
            frame,
            fed_back: fed_back.to_vec(),
            consumed,
            times: Vec::new(),
        }
    }

    /// A step from the last state.
    fn call(&mut self) {
        self.frame.invoke().expect("a call");
        let mut results: Vec<Option<Buffer>> =
            self.frame.take_results().expect("results").into_iter().map(Some).collect();
        for Donation { argument, output } in &self.fed_back {
            let result = results[*output].take().expect("a result for one argument");
            give(&mut self.frame, &self.consumed, *argument, result);
        }
    }
}

fn give(frame: &mut CallFrame, consumed: &[usize], i: usize, buffer: Buffer) {
    if consumed.contains(&i) {
        // Workers release it shortly after the call.
        while !buffer.is_unshared() {
            std::thread::yield_now();
        }
        frame.donate(i, buffer).expect("nobody else has it");
    } else {
        frame.set(i, &buffer).expect("an argument");
    }
}

fn upload(device: &Device, tensor: &HostTensor) -> Buffer {
    let element = match tensor.dtype() {
        DType::F32 => ElementType::F32,
        DType::I32 => ElementType::I32,
        DType::I64 => ElementType::I64,
        DType::U32 => ElementType::U32,
        DType::Bool => ElementType::Bool,
        other => panic!("{other}"),
    };
    device.upload(element, tensor.shape(), tensor.bytes()).expect("a buffer")
}
