//! Placement of a program, by the size of its work.

use std::num::NonZeroUsize;
use std::str::FromStr;
use std::thread::available_parallelism;

use sheaf_graph::graph::{Graph, Work};
use sheaf_graph::stablehlo::{KernelSize, Model};
use sheaf_runtime::{Target, Workers};

/// Minimum work for which several cores are quicker than one in spite of the hand-over, in operations of a product.
const PARALLEL_WORK: u64 = 20_000_000;

/// Work that keeps one more worker busy.
const WORKER_WORK: u64 = PARALLEL_WORK / 2;

/// Policy for the placement of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementPolicy {
    /// By the size of their work.
    #[default]
    Auto,
    /// All of them here, if possible.
    Fixed(Target),
}

impl FromStr for PlacementPolicy {
    type Err = String;

    fn from_str(text: &str) -> Result<PlacementPolicy, String> {
        let target = match text {
            "auto" => return Ok(PlacementPolicy::Auto),
            "local-sync" => Target::LocalSync,
            "local-task" => Target::LocalTask(Workers::Cores),
            _ => match text.strip_prefix("local-task:").map(str::parse) {
                Some(Ok(workers)) => Target::LocalTask(Workers::Exactly(workers)),
                Some(Err(_)) => return Err("the number of workers is a whole number from 1 on".into()),
                None => {
                    let all = "auto, local-sync, local-task, local-task:WORKERS";
                    return Err(format!("programs run {all}"));
                }
            },
        };
        Ok(PlacementPolicy::Fixed(target))
    }
}

/// Policy for writing a small loop, or all of a small program, as one kernel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Kernels {
    /// If it is quicker.
    #[default]
    Auto,
    /// If the compiler may accept it.
    Always,
    /// Never.
    Never,
}

impl Kernels {
    /// The models of emission for a target, best first.
    pub fn models(self, target: Target) -> &'static [Model] {
        match self {
            Kernels::Auto if target == Target::LocalSync => {
                &[Model::Kernels(KernelSize::Small), Model::Kernels(KernelSize::Parted), Model::Hal]
            }
            Kernels::Auto | Kernels::Never => &[Model::Blocks, Model::Hal],
            Kernels::Always => &[Model::Kernels(KernelSize::Any), Model::Hal],
        }
    }
}

/// The way to run a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacementPlan {
    /// The device.
    pub target: Target,
    /// The reason for the choice, a clause.
    pub why: String,
}

/// The way to run a graph.
pub fn plan(place: PlacementPolicy, graph: &Graph) -> PlacementPlan {
    let (operations, at_once) = (graph.cost(), graph.work_at_once());
    let (target, why) = match place {
        PlacementPolicy::Fixed(target) => (target, "as --place says".into()),
        PlacementPolicy::Auto => {
            by_work(operations, at_once, available_parallelism().map_or(1, NonZeroUsize::get))
        }
    };
    PlacementPlan { target, why }
}

fn by_work(operations: u64, at_once: Work, processors: usize) -> (Target, String) {
    let about = || match rounded(operations) {
        all if at_once.operations < operations / 2 => {
            format!("a call is about {all} operations, {} at a time", rounded(at_once.operations))
        }
        all => format!("a call is about {all} operations"),
    };
    let busy = usize::try_from(at_once.weight / WORKER_WORK).unwrap_or(usize::MAX);
    if at_once.weight < PARALLEL_WORK || processors == 1 {
        return (Target::LocalSync, format!("{}, enough for one core", about()));
    }
    match NonZeroUsize::new(busy).filter(|busy| busy.get() < processors) {
        Some(busy) => {
            (Target::LocalTask(Workers::Exactly(busy)), format!("{}, enough for {busy} cores", about()))
        }
        None => (Target::LocalTask(Workers::Cores), format!("{}, enough for all cores", about())),
    }
}

/// A number to two digits: `1,200,000`.
fn rounded(number: u64) -> String {
    let unit = 10_u64.pow(number.max(1).ilog10().saturating_sub(1));
    let digits = (number / unit * unit).to_string();
    let mut text = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_more_work_the_more_workers() {
        let product = |operations| Work { operations, weight: operations };
        let first = |work, processors| by_work(work, product(work), processors).0.to_string();
        assert_eq!(first(0, 8), "local-sync");
        assert_eq!(first(1_000_001, 8), "local-sync");
        assert_eq!(first(20_000_000, 8), "local-task:2");
        assert_eq!(first(75_000_000, 8), "local-task:7");
        assert_eq!(first(80_000_000, 8), "local-task");
        assert_eq!(first(u64::MAX, 8), "local-task");
        assert_eq!(first(u64::MAX, 1), "local-sync");
        let sums = Work { operations: 8_000_000, weight: 64_000_000 };
        assert_eq!(by_work(8_000_000, sums, 8).0.to_string(), "local-task:6", "memory holds up one core");
        let (target, why) = by_work(1_000_000_000, product(2_000_000), 8);
        assert_eq!(target, Target::LocalSync, "the steps of a loop come one after the other");
        assert_eq!(why, "a call is about 1,000,000,000 operations, 2,000,000 at a time, enough for one core");
        assert_eq!(
            by_work(1_234_567, product(1_234_567), 8).1,
            "a call is about 1,200,000 operations, enough for one core"
        );
    }

    #[test]
    fn places_are_read_as_they_are_shown() {
        for text in ["local-sync", "local-task", "local-task:3"] {
            let Ok(PlacementPolicy::Fixed(target)) = text.parse::<PlacementPolicy>() else {
                panic!("{text}")
            };
            assert_eq!(target.to_string(), text);
        }
        assert_eq!("auto".parse(), Ok(PlacementPolicy::Auto));
        assert!("local-task:0".parse::<PlacementPolicy>().is_err());
        assert!("gpu".parse::<PlacementPolicy>().unwrap_err().contains("local-sync"));
    }
}
