//! Where a program runs best, by the size of its work.

use sheaf_lang::graph::Graph;
use sheaf_runtime::Target;

/// Up to this much work (estimated scalar operations, a few hundred microseconds) a call costs more than it computes:
/// plain calls without a device are quickest (`docs/benchmarks.md`).
const INLINE_WORK: u64 = 1_000_000;

/// From this much on, several cores are quicker than one in spite of the hand-over.
const PARALLEL_WORK: u64 = 20_000_000;

/// The targets for a graph, best first: where the compiler fails for one, the next is tried.
pub fn targets(graph: &Graph) -> &'static [Target] {
    match graph.cost() {
        work if work <= INLINE_WORK => &[Target::Inline, Target::LocalSync],
        work if work < PARALLEL_WORK => &[Target::LocalSync],
        _ => &[Target::LocalTask],
    }
}
