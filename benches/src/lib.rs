//! Shared parts of the benchmarks: medians of many runs, since one run on a busy machine is noise, and the start-up.

use std::path::Path;
use std::time::{Duration, Instant};

use sheaf_artifacts::ArtifactFolder;
use sheaf_engine::{Engine, EngineConfig, answer_compile_worker, this_program};
use sheaf_graph::graph::{Graph, Var, inline_calls};
use sheaf_graph::primitives::OptimizationBarrier;
use sheaf_lang::eval::STACK_BYTES;
use sheaf_project::{Home, Settings};
use sheaf_toolchain::{Compiler, Toolchain};

/// The allocator of `sheaf`.
#[cfg(target_os = "linux")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The median time of `runs` calls of `f`, after one warm-up call.
pub fn median(runs: usize, mut f: impl FnMut()) -> Duration {
    f();
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = Instant::now();
            f();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

/// The median of some numbers.
pub fn median_of(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_unstable_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The median of `x / y` over measurements taken in pairs: load on the machine affects both of a pair.
pub fn paired_ratio(x: &[f64], y: &[f64]) -> f64 {
    median_of(x.iter().zip(y).map(|(x, y)| x / y).collect())
}

/// A graph without its optimization barriers.
pub fn without_barriers(graph: &Graph) -> Graph {
    let mut bare = inline_calls(graph);
    let mut same: Vec<Var> = (0..bare.types.len() as u32).map(Var).collect();
    let equations = std::mem::take(&mut bare.equations);
    for mut eqn in equations {
        eqn.inputs.iter_mut().for_each(|var| *var = same[var.index()]);
        if eqn.op.is::<OptimizationBarrier>() {
            for (held, var) in eqn.outputs.iter().zip(&eqn.inputs) {
                same[held.index()] = *var;
            }
        } else {
            bare.equations.push(eqn);
        }
    }
    bare.outputs.iter_mut().for_each(|var| *var = same[var.index()]);
    bare
}

/// Runs a benchmark on the evaluator's stack. The engine also starts this program as its compile worker.
pub fn run(measure: fn()) {
    answer_compile_worker();
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread");
    thread.join().expect("the benchmark");
}

/// A compiler whose worker is this program, started again.
pub fn compiler(toolchain: Toolchain) -> Compiler {
    let worker = this_program().expect("no compile worker");
    Compiler::new(move || worker(), toolchain)
}

/// An engine with the user's compiler, which keeps its programs in the folder `artifacts`.
pub fn engine(artifacts: &Path, recompile: bool) -> Engine {
    let environment = |name: &str| std::env::var(name).ok();
    let home = Home::locate(environment).expect("a home folder");
    let settings = Settings::merge(None, None, |_| false, environment, &sheaf_project::Options::default())
        .expect("settings");
    let worker = this_program().expect("no compile worker");
    let compiler = sheaf_target::Release::host();
    let config = EngineConfig::new(home, ArtifactFolder::open(artifacts), settings, compiler, worker);
    Engine::new(EngineConfig { recompile, ..config }).expect("an engine")
}
