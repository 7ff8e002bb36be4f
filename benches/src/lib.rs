//! What the benchmarks share: medians of many runs, since one run on a busy machine says little.

use std::time::{Duration, Instant};

use sheaf_lang::graph::{Graph, Var, inline_calls};
use sheaf_lang::primitives::OptimizationBarrier;

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
