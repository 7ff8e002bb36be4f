//! What the benchmarks share: medians of many runs, since one run on a busy machine says little.

use std::time::{Duration, Instant};

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
