//! Compilation without a run: for this machine exactly as a run would, or for another device or processor.

use std::path::PathBuf;

use sheaf_artifacts::{Action, ActionKey, Entry, Leaf};
use sheaf_cache::Store;
use sheaf_foundation::Digest;
use sheaf_graph::graph::Donation;
use sheaf_graph::simplify::simplify;
use sheaf_lang::host::{HostError, Unit};
use sheaf_target::{Destination, Release};

use sheaf_loader::{
    Candidate, Donate, Failure, Found, Job, Kernels, OpenGpu, PlacementPolicy, donating, gpu_model, plan,
    portable, retarget,
};

use super::{CompileRun, Engine, trial};

/// Target of a build.
#[derive(Clone, Debug)]
pub struct BuildTarget {
    /// The device.
    pub destination: Destination,
    /// True if programs keep information for debugging.
    pub debug: bool,
    /// The compiler.
    pub compiler: Option<Release<'static>>,
    /// True if programs that this machine can load are tried out before they are kept; false if the plan is the same on every machine.
    pub tries: bool,
}

/// A specialised function with the candidates for its compilation, best first: each is the fallback of the one before.
pub struct Plan {
    pub(crate) unit: Unit,
    pub(crate) goal: BuildTarget,
    pub(crate) candidates: Vec<Candidate>,
    /// True if this machine can load the programs, and is to.
    pub(crate) loads: bool,
    /// The program that it must agree with, if its calls consume arguments.
    plain: Option<Plain>,
}

/// A program whose calls consume nothing.
struct Plain {
    candidate: Candidate,
    bytes: Vec<u8>,
}

/// Places that keep a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// In the user's cache and in `__sheaf__`.
    Project,
    /// In the user's cache alone.
    Cache,
}

/// A program that was built.
pub struct Made {
    /// The program.
    pub bytes: Vec<u8>,
    /// Its source.
    pub source: ProgramSource,
    /// Position among the candidates.
    pub candidate: usize,
    /// The entry in the manifest and the file; `None` if it is only in the cache.
    pub kept: Option<(Entry, PathBuf)>,
}

/// The source of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramSource {
    /// It was compiled now.
    Compiled,
    /// A remote cache had it.
    Fetched,
    /// It was in `__sheaf__` or the user's store.
    Kept,
}

/// The fault of a candidate.
pub struct Faulty {
    /// The error.
    pub error: String,
    /// The remedy.
    pub remedy: String,
}

impl Plan {
    /// The plan for a unit as it was traced.
    pub fn new(mut unit: Unit, goal: &BuildTarget) -> Plan {
        unit.graph = simplify(&unit.graph);
        let is_cpu = matches!(goal.destination, Destination::Cpu(_));
        let target = plan(PlacementPolicy::Auto, &unit.graph).target;
        let mut candidates = if is_cpu {
            Candidate::all(&unit, target, Kernels::Auto, goal.compiler)
        } else {
            vec![Candidate::new(gpu_model(&goal.destination), &unit, target, &[], goal.compiler)]
        };
        let host = sheaf_target::Cpu::host();
        let loads = goal.tries && goal.destination.cpu().is_some_and(|cpu| host.supports(&cpu).is_ok());
        // Loops in blocks must be tried (Q37).
        candidates.retain(|candidate| loads || !candidate.features.blocks);
        for candidate in &mut candidates {
            retarget(&mut candidate.job, &goal.destination, goal.debug);
        }
        Plan { unit, goal: goal.clone(), candidates, loads, plain: None }
    }

    /// The name of the function with its transformation, for people.
    pub fn name(&self) -> &str {
        &self.candidates[0].job.name
    }

    /// The specialised function.
    pub fn unit(&self) -> &Unit {
        &self.unit
    }

    /// The key that tells plans apart.
    pub fn key(&self) -> ActionKey {
        self.candidates[0].job.action.key()
    }

    /// Number of candidates.
    pub fn candidates(&self) -> usize {
        self.candidates.len()
    }

    /// The action of a candidate.
    pub fn action(&self, candidate: usize) -> &Action {
        &self.candidates[candidate].job.action
    }

    /// The compilation of a candidate.
    pub fn job(&self, candidate: usize) -> &Job {
        &self.candidates[candidate].job
    }

    /// The leaves of the arguments and of the results, as the program has them.
    pub fn leaves(&self) -> (&[Leaf], &[Leaf]) {
        let specialisation = &self.candidates[0].job.specialisation;
        (&specialisation.inputs, &specialisation.outputs)
    }

    /// The compilations of all programs that a build or a run may keep for the plan: its candidates, and those in which results take the
    /// place of arguments.
    pub fn possible(self) -> Vec<Job> {
        let mut jobs = Vec::new();
        for candidate in self.candidates {
            for policy in [Donate::Auto, Donate::Always] {
                let Some(donating) = donating(policy, &self.unit) else { continue };
                let (model, target) = (candidate.model, candidate.target);
                let mut twin =
                    Candidate::new(model, &self.unit, target, &donating.donations, self.goal.compiler);
                retarget(&mut twin.job, &self.goal.destination, self.goal.debug);
                jobs.push(twin.job);
            }
            jobs.push(candidate.job);
        }
        jobs
    }

    /// Number of constants after the arguments.
    pub fn constants(&self, candidate: usize) -> usize {
        self.candidates[candidate].constants.len()
    }
}

impl Engine {
    /// Gives the candidates of a plan the flags of their tuning records, if a cache has some.
    pub fn apply_records(&self, plan: &mut Plan) {
        plan.candidates.iter_mut().for_each(|candidate| self.apply_record(&mut candidate.job));
    }

    /// The plan for the program that a run makes of a function after some calls, if it does: results take the place of
    /// arguments. `made` is the plain one.
    pub fn donating(&self, plan: &Plan, made: &Made) -> Option<Plan> {
        let Candidate { target, model, .. } = plan.candidates[made.candidate];
        // A program that cannot be tried out is not made.
        if !plan.loads {
            return None;
        }
        let donating = self.loader.donation(&plan.unit)?;
        let of = |donations: &[Donation]| {
            let mut candidate = Candidate::new(model, &plan.unit, target, donations, plan.goal.compiler);
            retarget(&mut candidate.job, &plan.goal.destination, plan.goal.debug);
            candidate.job.action.tuned.clone_from(&plan.candidates[made.candidate].job.action.tuned);
            candidate
        };
        Some(Plan {
            unit: plan.unit.clone(),
            goal: plan.goal.clone(),
            candidates: vec![of(&donating.donations)],
            loads: true,
            plain: Some(Plain { candidate: of(&[]), bytes: made.bytes.clone() }),
        })
    }

    /// Loads the program of a candidate and checks its results. Fails if this machine cannot run it, or they differ.
    fn try_out(&self, plan: &Plan, tried: &Candidate, bytes: &[u8]) -> Result<(), Failure> {
        let of = |candidate: &Candidate, bytes: &[u8]| {
            Found::of(&candidate.job.action, bytes.to_owned(), Digest::of(bytes), 0)
        };
        let loaded = self.loader.load(&plan.unit, tried, of(tried, bytes))?;
        let Some(Plain { candidate, bytes }) = &plan.plain else {
            return self.check_blocks(&plan.unit, tried, &loaded);
        };
        let plain = self.loader.load(&plan.unit, candidate, of(candidate, bytes))?;
        let device = self.loader.device(tried.target).map_err(Failure::runtime)?;
        match trial::agrees(&device, &plan.unit, &plain, &loaded) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure::load("it does not give what it should".into())),
            Err(error) => Err(Failure::runtime(error)),
        }
    }

    /// The program of a plan, if a cache holds it.
    pub fn kept(&self, plan: &Plan, keep: Keep) -> Result<Option<Made>, HostError> {
        for (candidate, Candidate { job, .. }) in plan.candidates.iter().enumerate() {
            let key = job.action.key();
            if let Some((bytes, entry)) = self.loader.folder.find(&key) {
                let path = self.loader.folder.path().join(&entry.file);
                return Ok(Some(Made {
                    bytes,
                    source: ProgramSource::Kept,
                    candidate,
                    kept: Some((entry, path)),
                }));
            }
            let stored = self.caches.stored(job).map(|found| (found, ProgramSource::Kept));
            let shared = stored.or_else(|| Some((self.caches.fetch(job)?, ProgramSource::Fetched)));
            if let Some((Found { bytes, alternative, .. }, source)) = shared {
                return self.made(plan, candidate, bytes, source, alternative, keep).map(Some);
            }
        }
        Ok(None)
    }

    /// The GPU of its policies, if programs run on one.
    pub fn gpu(&self) -> Option<&OpenGpu> {
        self.loader.gpu()
    }

    /// The user's store, for the process that compiles.
    pub fn store(&self) -> &Store {
        self.caches.store()
    }

    /// Keeps the program of a candidate, if this machine can load it or need not. The inner error is the fault of the
    /// candidate.
    pub fn accept(
        &self,
        plan: &Plan,
        candidate: usize,
        bytes: Vec<u8>,
        run: Option<CompileRun>,
        keep: Keep,
    ) -> Result<Result<Made, Faulty>, HostError> {
        let tried = &plan.candidates[candidate];
        if plan.loads
            && let Err(Failure { error, remedy, .. }) = self.try_out(plan, tried, &bytes)
        {
            return Ok(Err(Faulty { error, remedy }));
        }
        // Another process keeps the programs it compiles.
        let alternative = match run {
            Some(run) => {
                self.caches.keep(&tried.job, &bytes, run);
                run.alternative
            }
            None => self.store().claim(&tried.job.action.key()).map_or(0, |signed| signed.claim.alternative),
        };
        self.made(plan, candidate, bytes, ProgramSource::Compiled, alternative, keep).map(Ok)
    }

    fn made(
        &self,
        plan: &Plan,
        candidate: usize,
        bytes: Vec<u8>,
        source: ProgramSource,
        alternative: usize,
        keep: Keep,
    ) -> Result<Made, HostError> {
        let job = &plan.candidates[candidate].job;
        if keep == Keep::Cache {
            return Ok(Made { bytes, source, candidate, kept: None });
        }
        match self.loader.folder.try_record(job, &bytes, alternative) {
            Ok(entry) => {
                let path = self.loader.folder.path().join(&entry.file);
                Ok(Made { bytes, source, candidate, kept: Some((entry, path)) })
            }
            Err(e) => Err(HostError { message: e.to_string(), help: e.remedy().map(str::to_owned) }),
        }
    }

    /// Removes the budget of look-ups in remote caches: their programs are the goal.
    pub fn be_patient(&self) {
        self.caches.be_patient();
    }

    /// A program from the store or a remote cache that was built for any processor with features that this one has, if the user
    /// trusts a package's author: the author compiles for named
    /// processors, so that users of other models can run the programs.
    pub(super) fn find_of_packages(&self, job: &Job) -> Option<Found> {
        if !self.caches.has_packages() {
            return None;
        }
        portable(job).find_map(|job| {
            let found = self.caches.shared_artifact(&job)?;
            self.loader.folder.record(&job, &found.bytes, found.alternative);
            Some(found)
        })
    }
}
