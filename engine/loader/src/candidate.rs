//! Candidates: the ways to run a unit, and the failure of one.

use std::collections::BTreeSet;

use sheaf_artifacts::{Action, TuningFlag};
use sheaf_graph::graph::Donation;
use sheaf_graph::stablehlo::{Features, Model, emit_donating};
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::host::Unit;
use sheaf_runtime::Target;
use sheaf_target::{COMPILER, Destination, Release};

use crate::placement::Kernels;
use crate::unit::{self, Job};

/// Reason to interpret a unit for which no candidate serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No compiler can be had.
    #[default]
    #[error("there is no compiler")]
    NoCompiler,
    /// This machine compiles nothing, and `__sheaf__` has no program for the arguments.
    #[error("no program of it for these arguments is in __sheaf__")]
    NotBuilt,
    /// The compiler rejects every form of it.
    #[error("the compiler fails on it")]
    Compiler,
    /// The runtime does not load the program.
    #[error("its program cannot be run")]
    Program,
    /// The runtime loads only programs of other releases.
    #[error("its program is of another release")]
    OtherRelease,
}

/// Failure of a candidate.
#[derive(Clone)]
pub struct Failure {
    /// The text for the placement of a worse candidate.
    pub note: String,
    /// The reason to interpret the unit if no other candidate serves.
    pub refusal: Refusal,
    /// The error, if it is shown by itself.
    pub error: String,
    /// The fix to suggest to the user.
    pub remedy: String,
}

impl Failure {
    /// The compiler rejects the candidate.
    pub fn compiler(error: String, remedy: String) -> Failure {
        let note = format!("the compiler failed on that ({error})");
        Failure { note, refusal: Refusal::Compiler, error, remedy }
    }

    /// The runtime does not run what the compiler made.
    pub fn runtime(error: sheaf_runtime::Error) -> Failure {
        Failure::load(match error {
            sheaf_runtime::Error::Load { target, status } | sheaf_runtime::Error::Call { target, status } => {
                format!("what the compiler makes of it does not run on {target}: {status}")
            }
            other => other.to_string(),
        })
    }

    /// The program is not as it should be.
    pub fn load(error: String) -> Failure {
        Failure {
            note: error.clone(),
            refusal: Refusal::Program,
            error,
            remedy: "this is an error in Sheaf or in IREE: please report it with the program".into(),
        }
    }

    /// A program that the runtime does not load, since another release made it.
    pub fn bytecode(name: &str, (major, minor): (u16, u16)) -> Failure {
        let (known_major, known_minor) = COMPILER[0].bytecode;
        Failure {
            note: "it is of another release".into(),
            refusal: Refusal::OtherRelease,
            error: format!(
                "the compiled program of {name} has bytecode {major}.{minor}, and the runtime in this Sheaf loads \
                 {known_major}.{known_minor}"
            ),
            remedy: "run `sheaf toolchain update`, then the program with --recompile".into(),
        }
    }

    /// The failure of a candidate that the caches do not hold, though they hold a worse one.
    pub fn earlier() -> Failure {
        Failure::compiler("in an earlier run".into(), String::new())
    }
}

/// A candidate for a unit: a target, and the compilation for it.
pub struct Candidate {
    /// The device.
    pub target: Target,
    /// The form of its text.
    pub model: Model,
    /// The compiler may fail on kernels; a program with loops in blocks is tried before it is used.
    pub features: Features,
    /// The compilation.
    pub job: Job,
    /// Large constants, which follow the arguments in calls.
    pub constants: Vec<HostTensor>,
    /// The arguments that calls consume.
    pub donations: Vec<Donation>,
}

/// The form of programs for a GPU.
pub fn gpu_model(destination: &Destination) -> Model {
    match destination {
        Destination::Cuda(_) => Model::Cuda,
        _ => Model::Shaders,
    }
}

impl Candidate {
    /// The candidates for a target, best first: if the compiler fails for one, the next is tried.
    pub fn all(
        unit: &Unit,
        target: Target,
        kernels: Kernels,
        compiler: Option<Release<'static>>,
    ) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for model in kernels.models(target) {
            let mut candidate = Candidate::new(*model, unit, target, &[], compiler);
            let better: Vec<_> = candidates.iter().map(|better| better.job.action.program_digest()).collect();
            // A program without large products is the same in parts.
            if better.contains(&candidate.job.action.program_digest()) {
                continue;
            }
            candidate.job.action.rejected = better;
            let is_last = !candidate.features.may_be_rejected();
            candidates.push(candidate);
            if is_last {
                break;
            }
        }
        candidates
    }

    /// The candidate of one form, device and set of consumed arguments.
    pub fn new(
        model: Model,
        unit: &Unit,
        target: Target,
        donations: &[Donation],
        compiler: Option<Release<'static>>,
    ) -> Candidate {
        let module = emit_donating(&unit.graph, model, donations);
        let job = unit::job(unit, &module, donations, compiler);
        Candidate {
            target,
            model,
            features: module.features,
            job,
            constants: module.constants,
            donations: donations.to_vec(),
        }
    }

    /// Puts flags of the tuning table before those that rules choose, and asks for no tuning record. Kernels, and programs of GPUs,
    /// are compiled without such flags.
    pub fn prefer_flags(&mut self, flags: &BTreeSet<TuningFlag>) {
        if self.features.kernels || !self.target.is_host() {
            return;
        }
        let Job { action, tunable, .. } = &mut self.job;
        *tunable = false;
        action.alternatives = Action { tuned: Some(flags.clone()), ..action.clone() }.all_alternatives();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_graph::graph::Builder;
    use sheaf_graph::primitives::DotGeneral;
    use sheaf_graph::stablehlo::KernelSize;
    use sheaf_graph::tensor::{DType, TensorType};
    use sheaf_lang::host::Leaf;

    /// The sum of the product of matrices of `rows` by 4 and 4 by 16.
    fn unit(rows: usize) -> Unit {
        let mut b = Builder::new();
        let types = [[rows, 4], [4, 16]].map(|shape| TensorType::new(DType::F32, &shape[..]));
        let [x, y] = types.clone().map(|ty| b.input(ty));
        let contract = [1, 0].map(|axis| [axis].into_iter().collect());
        let product = b.apply(DotGeneral { contract, batch: Default::default() }, &[x, y]);
        let sum = b.sum(product, &[0, 1]);
        let leaf = |path: &str, ty: &TensorType| Leaf { path: path.into(), ty: ty.clone() };
        Unit {
            function: "f".into(),
            transform: "",
            graph: b.finish(vec![sum]),
            inputs: vec![leaf("x", &types[0]), leaf("y", &types[1])],
            outputs: vec![leaf("", &TensorType::scalar(DType::F32))],
            checks: Vec::new(),
            statics: Vec::new(),
        }
    }

    #[test]
    fn the_second_candidate_of_a_kernel_has_its_larger_products_in_parts() {
        let (small, parted) = (Model::Kernels(KernelSize::Small), Model::Kernels(KernelSize::Parted));
        for (rows, models) in [(8, vec![small, Model::Hal]), (64, vec![small, parted, Model::Hal])] {
            let candidates = Candidate::all(&unit(rows), Target::LocalSync, Kernels::Auto, None);
            assert_eq!(candidates.iter().map(|c| c.model).collect::<Vec<_>>(), models);
            let rejected: Vec<usize> = candidates.iter().map(|c| c.job.action.rejected.len()).collect();
            assert_eq!(rejected, (0..models.len()).collect::<Vec<_>>());
        }
    }
}
