//! First runs of the programs in `benches/programs`, without cached programs: interpreted, and with the compiler where
//! the evaluator estimates that it pays. Each runs in a new evaluator, so that the compiler starts cold.

use std::cell::Cell;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};

use sheaf_engine::Engine;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::{Interp, Jit, Options};
use sheaf_lang::host::{Backend, Buffer, Donating, DonatingProgram, HostError, Program, Unit};
use sheaf_loader::SystemHost;
use std::sync::Arc;

const PROGRAMS: [(&str, &str); 6] = [
    ("values that grow", include_str!("../programs/growing.shf")),
    ("MAML", include_str!("../programs/maml.shf")),
    ("diffusion", include_str!("../programs/diffusion.shf")),
    ("VAE", include_str!("../programs/vae.shf")),
    ("MLP, 200 steps", include_str!("../programs/mlp.shf")),
    ("transformer, 20 steps", include_str!("../programs/transformer.shf")),
];

/// Steps of Adam in one `scan`.
const SCAN: &str = include_str!("../programs/scan.shf");
const STEPS: [usize; 5] = [2, 4, 8, 15, 17];

fn main() {
    sheaf_benches::run(measure);
}

fn measure() {
    println!("seconds interpreted; with the compiler: all, compilation, programs; ratio");
    for (name, text) in PROGRAMS {
        let interpreted = first_run(text, Jit::Never);
        let compiling = first_run(text, Jit::Auto);
        let ratio = compiling.whole.as_secs_f64() / interpreted.whole.as_secs_f64();
        println!("{name}: {:.2}; {compiling}; {ratio:.2}", interpreted.whole.as_secs_f64());
    }
    for steps in STEPS {
        let run = first_run(&SCAN.replace("STEPS", &steps.to_string()), Jit::Always);
        println!("{steps} steps of Adam in a scan, compiled: {run}");
    }
}

/// Measurements of a run.
struct Run {
    whole: Duration,
    compilation: Duration,
    programs: usize,
}

impl std::fmt::Display for Run {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (whole, compilation) = (self.whole.as_secs_f64(), self.compilation.as_secs_f64());
        write!(f, "{whole:.2}, {compilation:.2}, {}", self.programs)
    }
}

fn first_run(text: &str, jit: Jit) -> Run {
    let start = Instant::now();
    let log = Rc::new(Log::default());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("first_run");
    let backend = Timed { engine: sheaf_benches::engine(&folder, true), log: Rc::clone(&log) };
    let options = Options { jit, ..Options::default() };
    let mut interp =
        Interp::new(Box::new(SystemHost::new(Vec::new(), Arc::new(()))), Some(Box::new(backend)), options);
    if let Err(errors) = interp.run_program("first_run.shf", text) {
        for error in &errors {
            eprintln!("{}", sheaf_syntax::render::render(&interp.sources, error, false));
        }
        std::process::exit(1);
    }
    Run { whole: start.elapsed(), compilation: log.compilation.get(), programs: log.programs.get() }
}

/// Compilations so far.
#[derive(Default)]
struct Log {
    compilation: Cell<Duration>,
    programs: Cell<usize>,
}

/// The engine with a clock.
struct Timed {
    engine: Engine,
    log: Rc<Log>,
}

impl Timed {
    fn timed<T>(&mut self, compile: impl FnOnce(&mut Engine) -> T) -> T {
        let start = Instant::now();
        let made = compile(&mut self.engine);
        self.log.compilation.set(self.log.compilation.get() + start.elapsed());
        self.log.programs.set(self.log.programs.get() + 1);
        made
    }
}

impl Backend for Timed {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.timed(|engine| engine.prepare(unit))
    }

    fn donation(&self, unit: &Unit) -> Option<Donating> {
        self.engine.donation(unit)
    }

    fn find_donating(
        &mut self,
        unit: &Unit,
        donations: &[sheaf_graph::graph::Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.timed(|engine| engine.find_donating(unit, donations, plain))
    }

    fn prepare_donating(
        &mut self,
        unit: &Unit,
        donations: &[sheaf_graph::graph::Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<DonatingProgram, HostError> {
        self.timed(|engine| engine.prepare_donating(unit, donations, plain))
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.engine.upload(tensor)
    }
}
