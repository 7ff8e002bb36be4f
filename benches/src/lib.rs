//! What the benchmarks share: medians of many runs, since one run on a busy machine says little, and how they start.

use std::path::Path;
use std::time::{Duration, Instant};

use sheaf::engine::{COMPILE_WORKER, Donate, Engine, Kernels, Place, ProgramPlace};
use sheaf_cache::ArtifactFolder;
use sheaf_lang::eval::STACK_BYTES;
use sheaf_lang::graph::{Graph, Var, inline_calls};
use sheaf_lang::primitives::OptimizationBarrier;
use sheaf_project::{Home, Settings};

/// The median time of `runs` calls of `f`, after one that is not counted.
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

/// A graph whose optimisation barriers are gone: what they hold is used as it is.
pub fn without_barriers(graph: &Graph) -> Graph {
    let mut bare = inline_calls(graph);
    let mut same: Vec<Var> = (0..bare.types.len() as u32).map(Var).collect();
    let equations = std::mem::take(&mut bare.equations);
    for mut eqn in equations {
        eqn.inputs.iter_mut().for_each(|var| *var = same[var.index()]);
        if (eqn.op.as_ref() as &dyn std::any::Any).is::<OptimizationBarrier>() {
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

/// Runs a benchmark on a stack for the evaluator. The engine starts this very program as its compile worker, too.
pub fn run(measure: fn()) {
    let mut arguments = std::env::args().skip(1);
    if arguments.next().as_deref() == Some(COMPILE_WORKER) {
        let library = arguments.next().expect("the compiler's library");
        sheaf_toolchain::run_worker(Path::new(&library));
        return;
    }
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(measure).expect("a thread");
    thread.join().expect("the benchmark");
}

/// An engine with the user's compiler, whose programs are kept in a folder of that name.
pub fn engine(artifacts: &Path, recompile: bool) -> Engine {
    let environment = |name: &str| std::env::var(name).ok();
    let home = Home::locate(environment).expect("a home folder");
    let settings = Settings::merge(None, None, |_| false, environment, &sheaf_project::Options::default())
        .expect("settings");
    Engine::new(Place {
        compiler: sheaf_toolchain::Release::host(),
        home,
        artifacts: ArtifactFolder::open(artifacts),
        settings,
        recompile,
        strict: false,
        donate: Donate::default(),
        kernels: Kernels::default(),
        place: ProgramPlace::default(),
    })
    .expect("an engine")
}
