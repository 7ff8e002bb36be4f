//! The first call of the GPT training step of `examples/nanogpt`: tracing, emission and compilation, each by itself,
//! against what `jax.jit` does in its first call. The runs of the two alternate, so that what else the machine does
//! meets both.
//!
//! `SHEAF_BENCH_PYTHON` names a Python with JAX 0.10.2; without it, only Sheaf is measured.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf::World;
use sheaf::engine::{Engine, Place};
use sheaf_lang::eval::{Interp, Options, STACK_BYTES};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};
use sheaf_lang::stablehlo::{Model, emit};
use sheaf_lang::tensor::HostTensor;
use sheaf_registry::{Home, Settings};

/// First calls that are compiled; each is followed by one of JAX, in a process of its own.
const FIRST_CALLS: usize = 5;

/// Traces alone.
const TRACES: usize = 41;

/// Characters in the alphabet: those of `scripts/fetch-shakespeare`.
const VOCABULARY: &str = "73";

/// The function whose first call is measured; what prepares its arguments is interpreted.
const STEP: &str = "train-step";

const SETUP: &str = "
(use ./model.shf)
(def state (init-state (init-params (random-key 0) 73 config)))
(def ids (int (zeros [12 64])))
";

const CALL: &str = "(train-step state ids ids 0.001)";

fn main() {
    // The engine starts this very program as its compile worker.
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(sheaf::engine::COMPILE_WORKER) {
        let library = arguments.next().expect("the compiler's library");
        sheaf_toolchain::run_worker(Path::new(&library));
        return;
    }
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread");
    thread.join().expect("the benchmark");
}

fn measure() {
    let python = std::env::var("SHEAF_BENCH_PYTHON").ok();
    let (mut sheaf, mut jax) = (Vec::new(), Vec::new());
    for _ in 0..FIRST_CALLS {
        sheaf.push(first_call(Some(engine())));
        jax.extend(python.as_deref().map(jax_first_call));
    }
    let traces: Vec<Sample> = (0..TRACES).map(|_| first_call(None)).collect();
    let of = |samples: &[Sample], part: fn(&Sample) -> Duration| {
        let mut times: Vec<Duration> = samples.iter().map(part).collect();
        times.sort_unstable();
        times[times.len() / 2].as_secs_f64() * 1e3
    };
    let (trace, emission) = (of(&traces, |s| s.trace), of(&traces, |s| s.emission));
    println!("First call of a GPT training step, {} equations, in ms", traces[0].equations);
    println!("  trace, {TRACES} times    {trace:8.2}    and emission {emission:.2}");
    println!("  medians of {FIRST_CALLS} first calls:");
    println!("  trace              {:8.2}", of(&sheaf, |s| s.trace));
    println!("  emission           {:8.2}", of(&sheaf, |s| s.emission));
    println!("  compile and load   {:8.1}", of(&sheaf, |s| s.compilation));
    println!("  upload and run     {:8.1}", of(&sheaf, |s| s.run));
    let whole = of(&sheaf, Sample::whole);
    println!("  whole              {whole:8.1}");
    if jax.is_empty() {
        println!("  JAX is not measured: SHEAF_BENCH_PYTHON names no Python with it");
        return;
    }
    let of = |part: &str| {
        let mut times: Vec<f64> = jax.iter().map(|line| number(line, part)).collect();
        times.sort_unstable_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let (lower, again, compile, call) = (of("lower"), of("lower_again"), of("compile"), of("call"));
    println!("  jax.jit(..).lower() {lower:7.1}, in the warm process {again:.1}");
    println!("  .compile()         {compile:8.1}");
    println!("  run                {call:8.1}");
    let here = trace + emission;
    println!("ratios: lower() / (trace + emission) {:.1}, warm {:.1}", lower / here, again / here);
    println!("        first call, Sheaf / JAX      {:.2}", whole / (lower + compile + call));
}

/// Where the time of one first call went.
#[derive(Clone, Debug, Default)]
struct Sample {
    trace: Duration,
    emission: Duration,
    compilation: Duration,
    run: Duration,
    equations: usize,
}

impl Sample {
    fn whole(&self) -> Duration {
        self.trace + self.emission + self.compilation + self.run
    }
}

/// A compiler that finds nothing compiled, and has yet to be started.
fn engine() -> Engine {
    let environment = |name: &str| std::env::var(name).ok();
    let home = Home::locate(environment).expect("a home folder");
    let artifacts = Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpt_first_call");
    let settings =
        Settings::merge(None, None, environment, &sheaf_registry::Options::default()).expect("settings");
    Engine::new(Place { home, artifacts, settings, recompile: true }).expect("an engine")
}

/// The example's step, called once in a new evaluator; without an engine only traced and emitted.
fn first_call(engine: Option<Engine>) -> Sample {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join("nanogpt");
    let program = folder.join("bench.shf").display().to_string();
    let clock = Rc::new(RefCell::new(Clock { start: Instant::now(), sample: Sample::default() }));
    let traced_only = engine.is_none();
    let backend = Timed { engine, clock: Rc::clone(&clock) };
    let mut interp = Interp::new(Box::<World>::default(), Some(Box::new(backend)), Options::default());
    let module = Interp::program(&program);
    let mut run = |text: &str| match interp.run_text(&module, "bench", text) {
        Ok(_) => {}
        Err(errors) if traced_only && errors.iter().any(|d| d.message.contains(ENOUGH)) => {}
        Err(errors) => {
            let shown: Vec<String> =
                errors.iter().map(|d| sheaf_lang::render::render(&interp.sources, d, false)).collect();
            eprintln!("{}", shown.join("\n"));
            std::process::exit(1);
        }
    };
    run(SETUP);
    clock.borrow_mut().start = Instant::now();
    run(CALL);
    let mut clock = clock.borrow_mut();
    clock.sample.run = clock.start.elapsed();
    clock.sample.clone()
}

/// The message that ends a call of which only the trace is wanted.
const ENOUGH: &str = "traced";

struct Clock {
    /// When the part being measured began.
    start: Instant,
    sample: Sample,
}

/// The engine with a clock, which compiles the training step alone.
struct Timed {
    engine: Option<Engine>,
    clock: Rc<RefCell<Clock>>,
}

impl Backend for Timed {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        if unit.function != STEP {
            return Ok(None);
        }
        let mut clock = self.clock.borrow_mut();
        clock.sample.trace = clock.start.elapsed();
        clock.sample.equations = unit.graph.equations.len();
        let start = Instant::now();
        std::hint::black_box(emit(&unit.graph, Model::Hal));
        clock.sample.emission = start.elapsed();
        let Some(engine) = &mut self.engine else {
            return Err(HostError { message: ENOUGH.into(), help: None });
        };
        let start = Instant::now();
        let program = engine.prepare(unit);
        // The engine emits once more.
        clock.sample.compilation = start.elapsed().saturating_sub(clock.sample.emission);
        clock.start = Instant::now();
        program
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.engine.as_mut().expect("a call that runs").upload(tensor)
    }
}

/// What JAX measures of itself, as a line of JSON.
fn jax_first_call(python: &str) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("tests/nanogpt/first_call.py");
    let output = Command::new(python).arg(script).arg(VOCABULARY).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The number of a key in a flat object of numbers.
fn number(json: &str, key: &str) -> f64 {
    let from = json.split_once(&format!("\"{key}\": ")).expect("the key").1;
    from.split([',', '}']).next().expect("a number").trim().parse().expect("a number")
}
