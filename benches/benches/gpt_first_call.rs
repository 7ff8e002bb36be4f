//! The first call of the GPT training step of `examples/nanogpt`: tracing, emission and compilation separately, against
//! the first call with `jax.jit`. The runs alternate, so that other load on the machine affects both.
//!
//! `SHEAF_BENCH_PYTHON` names a Python with JAX 0.10.2 (`scripts/jax-python` prints one); without it, only Sheaf is
//! measured. With the argument `trace`, nothing is compiled.

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf_engine::Engine;
use sheaf_graph::stablehlo::{Model, emit};
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use std::sync::Arc;

/// Rounds: a compiled first call, several traces, and a first call of JAX in a new process.
const ROUNDS: usize = 5;

/// Traces per round.
const TRACES: usize = 9;

/// Size of the alphabet, that of `scripts/fetch-shakespeare`.
const VOCABULARY: &str = "73";

/// The measured function; the code that prepares its arguments is interpreted.
const STEP: &str = "train-step";

const SETUP: &str = "
(use ./model.shf)
(def state (init-state (init-params (random-key 0) 73 config)))
(def ids (int (zeros [12 64])))
";

const CALL: &str = "(train-step state ids ids 0.001)";

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    let only_traces = std::env::args().any(|argument| argument == "trace");
    let python = std::env::var("SHEAF_BENCH_PYTHON").ok();
    let (mut calls, mut traces, mut jax) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        if !only_traces {
            calls.push(first_call(Some(engine())));
        }
        traces.extend((0..TRACES).map(|_| first_call(None)));
        jax.extend(python.as_deref().map(|python| jax_first_call(python, only_traces)));
    }
    let of = |samples: &[Sample], part: fn(&Sample) -> Duration| {
        middle(samples.iter().map(|sample| part(sample).as_secs_f64() * 1e3))
    };
    let (trace, emission) = (of(&traces, |s| s.trace), of(&traces, |s| s.emission));
    println!("GPT training step, {} equations; medians in ms", traces[0].equations);
    println!("  trace {trace:.1}, emission {emission:.1}");
    if !only_traces {
        println!("  first call {:.0}:", of(&calls, Sample::whole));
        println!("    trace {:.1}, emission {:.1}", of(&calls, |s| s.trace), of(&calls, |s| s.emission));
        println!("    start of the compiler, compilation, loading {:.0}", of(&calls, |s| s.compilation));
        println!("    copies to the device, run {:.0}", of(&calls, |s| s.run));
    }
    if jax.is_empty() {
        println!("  JAX is not measured: SHEAF_BENCH_PYTHON names no Python with it");
        return;
    }
    let of_jax = |part: &str| middle(jax.iter().map(|line| number(line, part)));
    let (lower, again) = (of_jax("lower"), of_jax("lower_again"));
    println!("  JAX: lower() {lower:.0} the first time, {again:.0} in a warm process");
    println!(
        "  lower() / trace              {:5.1} the first time, {:.1} warm",
        lower / trace,
        again / trace
    );
    let here = trace + emission;
    println!("  lower() / (trace + emission) {:5.1} the first time, {:.1} warm", lower / here, again / here);
    if !only_traces {
        let (compile, call) = (of_jax("compile"), of_jax("call"));
        let ratio = of(&calls, Sample::whole) / (lower + compile + call);
        println!("  JAX: compile() {compile:.0}, run {call:.0}");
        println!("  first call, Sheaf / JAX      {ratio:5.2}");
    }
}

/// The median.
fn middle(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Time of one first call, by phase.
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

/// A cold compiler without cached programs.
fn engine() -> Engine {
    sheaf_benches::engine(&Path::new(env!("CARGO_TARGET_TMPDIR")).join("gpt_first_call"), true)
}

/// The example's step, called once in a new evaluator; without an engine only traced and emitted.
fn first_call(engine: Option<Engine>) -> Sample {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("examples").join("nanogpt");
    let program = folder.join("bench.shf").display().to_string();
    let clock = Rc::new(RefCell::new(Clock { start: Instant::now(), sample: Sample::default() }));
    let traced_only = engine.is_none();
    let backend = Timed { engine, clock: Rc::clone(&clock) };
    let mut interp = Interp::new(
        Box::new(SystemHost::new(Vec::new(), Arc::new(()))),
        Some(Box::new(backend)),
        // A first call of so little work is interpreted otherwise.
        Options { jit: Jit::Always, ..Options::default() },
    );
    let module = Interp::program(&program);
    let mut run = |text: &str| match interp.run_text(&module, "bench", text) {
        Ok(_) => {}
        Err(errors) if traced_only && errors.iter().any(|d| d.message.contains(ENOUGH)) => {}
        Err(errors) => {
            let shown: Vec<String> =
                errors.iter().map(|d| sheaf_syntax::render::render(&interp.sources, d, false)).collect();
            eprintln!("{}", shown.join("\n"));
            std::process::exit(1);
        }
    };
    run(SETUP);
    clock.borrow_mut().start = Instant::now();
    run(CALL);
    let mut clock = clock.borrow_mut();
    assert!(clock.sample.equations > 0, "the step was interpreted");
    clock.sample.run = clock.start.elapsed();
    clock.sample.clone()
}

/// The error that ends a call after tracing.
const ENOUGH: &str = "traced";

struct Clock {
    /// Start of the measured phase.
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
        // The engine emits a second time.
        clock.sample.compilation = start.elapsed().saturating_sub(clock.sample.emission);
        clock.start = Instant::now();
        program
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.engine.as_mut().expect("a call that runs").upload(tensor)
    }
}

/// JAX's own measurements, as a line of JSON.
fn jax_first_call(python: &str, only_traces: bool) -> String {
    let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).with_file_name("tests/nanogpt/first_call.py");
    let mut command = Command::new(python);
    command.arg(script).arg(VOCABULARY).args(only_traces.then_some("lower"));
    let output = command.env("JAX_PLATFORMS", "cpu").env("PYTHONDONTWRITEBYTECODE", "1").output();
    let output = output.expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// The value of a key in a flat JSON object of numbers.
fn number(json: &str, key: &str) -> f64 {
    let from = json.split_once(&format!("\"{key}\": ")).expect("the key").1;
    from.split([',', '}']).next().expect("a number").trim().parse().expect("a number")
}
