//! A unit becomes a program: from the caches, or by the compiler.

use std::any::Any;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use sheaf_artifacts::{ActionKey, ArtifactFolder};
use sheaf_foundation::Digest;
use sheaf_graph::graph::Donation;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::Interrupt;
use sheaf_lang::host::{Backend, Buffer, Donating, DonatingProgram, HostError, Kept, Program, Unit};
use sheaf_lang::observe::{Activity, Timeline};
use sheaf_loader::timeline::{self, timed};
use sheaf_loader::{
    Candidate, Failure, Found, Job, Loaded, Loader, Policies, Refusal, Reporter, runtime_error, size_of_found,
};
use sheaf_project::{Home, Settings};
use sheaf_target::Release;

use crate::background::{Background, Outcome};
use crate::caches::{Caches, Secrets};
use crate::compile::{CompileRun, CompileService, Compiled};
use crate::report::EngineReporter;
use crate::trial::{self, Fresh, OnTrial};
use crate::worker::WorkerCommand;

/// Configuration of an engine.
pub struct EngineConfig {
    /// The user's folders.
    pub home: Home,
    /// The `__sheaf__` of the program.
    pub artifacts: ArtifactFolder,
    /// Settings from all places.
    pub settings: Settings,
    /// The compiler that the project uses; `None` if there is none for this machine.
    pub compiler: Option<Release<'static>>,
    /// Compile anew, without a look into the caches.
    pub recompile: bool,
    /// Fail if there is no compiler, or it fails.
    pub strict: bool,
    /// Policies that say which program serves a unit.
    pub policies: Policies,
    /// Secrets that are not in files.
    pub secrets: Secrets,
    /// Command of the process in which the compiler runs.
    pub worker: WorkerCommand,
    /// Receiver of progress and warnings.
    pub reporter: Arc<dyn EngineReporter>,
}

impl EngineConfig {
    /// The default policies, no secrets, and no reporter.
    pub fn new(
        home: Home,
        artifacts: ArtifactFolder,
        settings: Settings,
        compiler: Option<Release<'static>>,
        worker: WorkerCommand,
    ) -> EngineConfig {
        EngineConfig {
            home,
            artifacts,
            settings,
            compiler,
            recompile: false,
            strict: false,
            policies: Policies::default(),
            secrets: Secrets::default(),
            worker,
            reporter: Arc::new(()),
        }
    }
}

/// Compiled execution on this machine.
pub struct Engine {
    pub(crate) loader: Loader,
    pub(crate) caches: Rc<Caches>,
    pub(crate) compile_service: CompileService,
    /// Donating programs that are compiled beside the run.
    background: HashMap<ActionKey, Background>,
    pub(crate) recompile: bool,
}

impl Engine {
    /// Starts the runtime; the compiler is started, and installed, when it is first needed.
    pub fn new(config: EngineConfig) -> Result<Engine, HostError> {
        let EngineConfig { home, artifacts, settings, compiler, secrets, worker, reporter, strict, .. } =
            config;
        let shown: Arc<dyn Reporter> = Arc::<dyn EngineReporter>::clone(&reporter);
        let loader = Loader::new(artifacts, config.policies, compiler, shown)?;
        let caches = Caches::open(&home, &loader, &settings, &secrets)?;
        Ok(Engine {
            loader,
            caches: Rc::new(caches),
            recompile: config.recompile,
            background: HashMap::new(),
            compile_service: CompileService::new(
                home, settings, &secrets, compiler, strict, worker, reporter,
            )?,
        })
    }

    /// The candidates for a unit with the flags of their tuning records, best first, and the reason for the placement.
    fn candidates(&self, unit: &Unit) -> (Vec<Candidate>, String) {
        let (mut candidates, why) = self.loader.candidates(unit);
        for Candidate { job, .. } in &mut candidates {
            if !self.is_settled(job) {
                self.apply_record(job);
            }
        }
        (candidates, why)
    }

    /// The first of the candidates that `__sheaf__` or the store holds and that loads, else the first that compiles
    /// and loads. `None` without a compiler, or if none does.
    fn obtain(&mut self, unit: &Unit, candidates: &[Candidate]) -> Result<Option<Loaded>, HostError> {
        if !self.recompile
            && let Some(loaded) = self.loader.found(unit, candidates, |job| self.find(job))
        {
            return Ok(Some(loaded));
        }
        // The note of a worse candidate gives the failure of the best.
        let mut first: Option<Failure> = None;
        let mut last: Option<Failure> = None;
        self.loader.refusal = Refusal::NoCompiler;
        for candidate in candidates {
            let _turn = self.caches.exclusive(&candidate.job);
            if let Some(loaded) = self.compiled_meanwhile(unit, candidate) {
                return Ok(Some(loaded.instead_of(first.as_ref())));
            }
            let failure = match self.compile_service.compile(&candidate.job)? {
                Compiled::Yes { bytes, run } => match self.compiled(unit, candidate, &bytes, run) {
                    Ok(loaded) => return Ok(Some(loaded.instead_of(first.as_ref()))),
                    Err(failure) => failure,
                },
                Compiled::Rejected { error, remedy } => Failure::compiler(error, remedy),
                Compiled::NoCompiler => return Ok(self.without_records(unit, candidates)),
            };
            first.get_or_insert_with(|| failure.clone());
            last = Some(failure);
        }
        if let Some(Failure { refusal, error, remedy, .. }) = last {
            self.loader.refusal = refusal;
            self.compile_service.give_up(&candidates[0].job.name, &error, &remedy)?;
        }
        Ok(None)
    }

    /// The first of the candidates whose program without a tuning record is in a cache: there is no compiler for the one with it.
    fn without_records(&self, unit: &Unit, candidates: &[Candidate]) -> Option<Loaded> {
        let look = |job: &Job| {
            let mut job = job.clone();
            job.action.tuned.take()?;
            self.find(&job)
        };
        self.loader.found(unit, candidates, look)
    }

    /// The program that another process compiled, tried and kept while this one waited for its turn.
    fn compiled_meanwhile(&self, unit: &Unit, candidate: &Candidate) -> Option<Loaded> {
        if self.recompile {
            return None;
        }
        let found = self.caches.stored(&candidate.job)?;
        let (bytes, alternative) = (found.bytes.clone(), found.alternative);
        let loaded = self.loader.load(unit, candidate, found).ok()?;
        self.loader.folder.record(&candidate.job, &bytes, alternative);
        Some(loaded)
    }

    /// A donating program fresh from the compiler, kept once its results were those of the plain one. `None` if they
    /// are not: then all stays as it is.
    pub(crate) fn try_donating(
        &mut self,
        unit: &Unit,
        candidate: Candidate,
        plain: &Rc<Loaded>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        // The plain program serves too, also on a machine without a compiler.
        if !self.compile_service.is_there() {
            return Ok(None);
        }
        let _turn = self.caches.exclusive(&candidate.job);
        if let Some(loaded) = self.compiled_meanwhile(unit, &candidate) {
            return Ok(Some(loaded.beside(plain)));
        }
        let compiled = self.compile_service.compile(&candidate.job)?;
        let Compiled::Yes { bytes, run } = compiled else { return Ok(None) };
        self.tried_donating(unit, candidate, plain, bytes, run)
    }

    /// Begins the compilation of a donating program beside the run. `None` if the policy wants it at once, or if it can
    /// only be compiled at once.
    fn compile_beside(&self, job: &Job) -> Option<Background> {
        if self.recompile || self.loader.donates_always() {
            return None;
        }
        self.compile_service.begin(job, self.caches.store().clone())
    }

    /// The compiler's result, kept once its results were those of the plain program.
    fn tried_donating(
        &self,
        unit: &Unit,
        candidate: Candidate,
        plain: &Rc<Loaded>,
        bytes: Vec<u8>,
        run: CompileRun,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        let Ok(loaded) = self.loader.load(unit, &candidate, fresh(&candidate.job, &bytes, run)) else {
            return Ok(None);
        };
        if trial::takes_much(unit) {
            let fresh = Fresh { job: candidate.job, bytes, run };
            return Ok(Some(Rc::new(OnTrial::new(plain, loaded, fresh, &self.caches))));
        }
        let device = self.loader.device(candidate.target).map_err(runtime_error)?;
        if !trial::agrees(&device, unit, plain, &loaded).map_err(runtime_error)? {
            return Ok(None);
        }
        self.keep(&candidate.job, &bytes, run);
        Ok(Some(loaded.beside(plain)))
    }

    /// A program fresh from the compiler, kept once it has been loaded: programs in the caches run.
    pub(crate) fn compiled(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        bytes: &[u8],
        run: CompileRun,
    ) -> Result<Loaded, Failure> {
        let job = &candidate.job;
        let loaded = self.loader.load(unit, candidate, fresh(job, bytes, run))?;
        self.check_blocks(unit, candidate, &loaded)?;
        self.keep(job, bytes, run);
        Ok(loaded)
    }

    /// Tries a program with loops in blocks, of which IREE computes some wrongly (Q37).
    pub(crate) fn check_blocks(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        loaded: &Loaded,
    ) -> Result<(), Failure> {
        if candidate.features.blocks {
            let device = self.loader.device(candidate.target).map_err(Failure::runtime)?;
            if !trial::is_right(&device, unit, loaded).map_err(Failure::runtime)? {
                return Err(Failure::load("its loops in blocks computed something else in a trial".into()));
            }
        }
        Ok(())
    }

    /// Puts a program into all caches.
    fn keep(&self, job: &Job, bytes: &[u8], run: CompileRun) {
        timed(
            Activity::Cache,
            &job.name,
            |()| Some(bytes.len() as u64),
            || {
                self.caches.keep(job, bytes, run);
                self.loader.folder.record(job, bytes, run.alternative);
            },
        );
    }

    /// The bytes of a job with their digest, from any place that has them.
    pub(crate) fn find(&self, job: &Job) -> Option<Found> {
        timed(Activity::Cache, &job.name, size_of_found, || self.look_for(job))
    }

    fn look_for(&self, job: &Job) -> Option<Found> {
        if let Some((bytes, entry)) = self.loader.folder.find(&job.action.key()) {
            return Some(Found::in_folder(bytes, &entry));
        }
        match self.caches.shared_artifact(job) {
            Some(found) => {
                self.loader.folder.record(job, &found.bytes, found.alternative);
                Some(found)
            }
            None => self.loader.folder.find_portable(job).or_else(|| self.find_of_packages(job)),
        }
    }
}

/// A program fresh from the compiler.
pub(crate) fn fresh(job: &Job, bytes: &[u8], run: CompileRun) -> Found {
    Found::of(&job.action, bytes.to_owned(), Digest::of(bytes), run.alternative)
}

impl Backend for Engine {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        if self.loader.is_frozen() {
            let found = self.loader.find_kept(unit)?;
            self.loader.refusal = Refusal::NotBuilt;
            return Ok(found);
        }
        let (candidates, why) = self.candidates(unit);
        Ok(self.obtain(unit, &candidates)?.map(|loaded| loaded.placed(why)))
    }

    fn prepare_twin(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let (candidates, why) = self.candidates(unit);
        self.compile_service.set_for_observer(true);
        let obtained = self.obtain(unit, &candidates);
        self.compile_service.set_for_observer(false);
        Ok(obtained?.map(|loaded| loaded.placed(why)))
    }

    fn kept(&mut self, function: &str, transform: &str) -> Vec<Kept> {
        if self.recompile { Vec::new() } else { self.loader.kept(function, transform) }
    }

    fn find_kept(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.loader.find_kept(unit)
    }

    fn donation(&self, unit: &Unit) -> Option<Donating> {
        self.loader.donation(unit)
    }

    fn find_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        if self.recompile {
            return Ok(None);
        }
        let program: Rc<dyn Any> = Rc::<dyn Program>::clone(plain);
        let Ok(loaded) = program.downcast::<Loaded>() else { return Ok(None) };
        let look = |job: &Job| {
            let mut job = job.clone();
            self.tune_donating(unit, &mut job, &loaded);
            self.find(&job)
        };
        Ok(self.loader.find_donating(unit, donations, plain, look))
    }

    fn prepare_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<DonatingProgram, HostError> {
        let program: Rc<dyn Any> = Rc::<dyn Program>::clone(plain);
        let Ok(loaded) = program.downcast::<Loaded>() else { return Ok(DonatingProgram::None) };
        let mut candidate = self.loader.donating_candidate(unit, donations, &loaded);
        self.tune_donating(unit, &mut candidate.job, &loaded);
        // Buffers that it keeps would not be unshared.
        loaded.release();
        let key = candidate.job.action.key();
        // Another specialisation with the same program may have begun it.
        if let Some(ended) = self.background.get(&key).and_then(Background::pending) {
            return Ok(DonatingProgram::Pending(ended));
        }
        let made = match self.background.remove(&key).map(Background::outcome) {
            Some(Outcome::Compiled { bytes, run, lock: _lock }) => {
                self.tried_donating(unit, candidate, &loaded, bytes, run)?
            }
            Some(Outcome::Stored) => self.find_donating(unit, donations, plain)?,
            Some(Outcome::Failed) => None,
            None => match self.compile_beside(&candidate.job) {
                Some(background) => {
                    let ended = background.ended();
                    self.background.insert(key, background);
                    return Ok(DonatingProgram::Pending(ended));
                }
                None => self.try_donating(unit, candidate, &loaded)?,
            },
        };
        Ok(made.map_or(DonatingProgram::None, DonatingProgram::Ready))
    }

    fn refusal(&self) -> String {
        self.loader.refusal.to_string()
    }

    fn stopped_by(&mut self, interrupt: Interrupt) {
        self.compile_service.stopped_by(interrupt);
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        self.loader.upload(tensor)
    }

    fn observed_by(&mut self, timeline: Option<Rc<dyn Timeline>>) {
        timeline::observe(timeline);
    }
}
