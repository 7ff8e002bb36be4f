//! A unit becomes a program: from the caches, or by the compiler.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use sheaf_artifacts::ArtifactFolder;
use sheaf_foundation::Digest;
use sheaf_graph::graph::Donation;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::eval::Interrupt;
use sheaf_lang::host::{Backend, Buffer, Donating, HostError, Kept, Placement, Program, Unit};
use sheaf_lang::observe::{Activity, Timeline};
use sheaf_project::{Home, Settings};
use sheaf_runtime::{Runtime, Target, Vmfb};
use sheaf_target::{Release, bytecode_version, is_loadable};

use crate::buffer::{DeviceBuffer, upload};
use crate::caches::{self, Caches, Secrets};
use crate::candidate::{Candidate, Failure, Refusal};
use crate::compile::{CompileRun, CompileService, Compiled};
use crate::donation::{self, Donate};
use crate::kept;
use crate::loaded::{Loaded, runtime_error};
use crate::placement::{self, Kernels, PlacementPlan, PlacementPolicy};
use crate::report::Reporter;
use crate::timeline::{self, timed};
use crate::trial::{self, Fresh, OnTrial};
use crate::unit::Job;
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
    /// Policy for calls that consume arguments.
    pub donate: Donate,
    /// Programs that are one kernel.
    pub kernels: Kernels,
    /// Policy for the device of each program.
    pub placement: PlacementPolicy,
    /// Secrets that are not in files.
    pub secrets: Secrets,
    /// Command of the process in which the compiler runs.
    pub worker: WorkerCommand,
    /// Receiver of progress and warnings.
    pub reporter: Arc<dyn Reporter>,
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
            donate: Donate::Auto,
            kernels: Kernels::Auto,
            placement: PlacementPolicy::Auto,
            secrets: Secrets::default(),
            worker,
            reporter: Arc::new(()),
        }
    }
}

/// Compiled execution on this machine.
pub struct Engine {
    pub(crate) runtime: Runtime,
    pub(crate) caches: Rc<Caches>,
    pub(crate) compile_service: CompileService,
    pub(crate) compiler: Option<Release<'static>>,
    pub(crate) recompile: bool,
    pub(crate) donate: Donate,
    pub(crate) kernels: Kernels,
    pub(crate) placement: PlacementPolicy,
    /// Reason to interpret the last unit.
    pub(crate) refusal: Refusal,
    /// Contents of `__sheaf__` at the first question.
    pub(crate) kept: OnceCell<kept::ByFunction>,
}

impl Engine {
    /// Starts the runtime; the compiler is started, and installed, when it is first needed.
    pub fn new(config: EngineConfig) -> Result<Engine, HostError> {
        let EngineConfig { home, artifacts, settings, compiler, secrets, worker, reporter, strict, .. } =
            config;
        let caches = Caches::open(&home, artifacts, &settings, &secrets, &reporter)?;
        Ok(Engine {
            runtime: Runtime::new().map_err(runtime_error)?,
            caches: Rc::new(caches),
            compiler,
            recompile: config.recompile,
            donate: config.donate,
            kernels: config.kernels,
            placement: config.placement,
            refusal: Refusal::default(),
            kept: OnceCell::new(),
            compile_service: CompileService::new(
                home, settings, &secrets, compiler, strict, worker, reporter,
            )?,
        })
    }

    /// The first of the candidates that `__sheaf__` or the store holds and that loads, else the first that compiles
    /// and loads. `None` without a compiler, or if none does.
    fn obtain(&mut self, unit: &Unit, candidates: &[Candidate]) -> Result<Option<Loaded>, HostError> {
        if !self.recompile
            && let Some(loaded) = self.found(unit, candidates, |job| self.find(job))
        {
            return Ok(Some(loaded));
        }
        // The note of a worse candidate gives the failure of the best.
        let mut first: Option<Failure> = None;
        let mut last: Option<Failure> = None;
        self.refusal = Refusal::NoCompiler;
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
                Compiled::NoCompiler => return Ok(None),
            };
            first.get_or_insert_with(|| failure.clone());
            last = Some(failure);
        }
        if let Some(Failure { refusal, error, remedy, .. }) = last {
            self.refusal = refusal;
            self.compile_service.give_up(&candidates[0].job.name, &error, &remedy)?;
        }
        Ok(None)
    }

    /// The first of the candidates that `look` finds and that loads.
    fn found(
        &self,
        unit: &Unit,
        candidates: &[Candidate],
        look: impl Fn(&Job) -> Option<(Vec<u8>, Digest)>,
    ) -> Option<Loaded> {
        let mut first: Option<Failure> = None;
        for candidate in candidates {
            match look(&candidate.job) {
                Some((bytes, digest)) => match self.load(unit, candidate, bytes, &digest) {
                    Ok(loaded) => return Some(loaded.instead_of(first.as_ref())),
                    Err(failure) => {
                        if failure.refusal == Refusal::OtherRelease {
                            self.caches.warn(&failure.error, caches::NOT_USED, Some(&failure.remedy));
                        }
                        first = first.or(Some(failure));
                    }
                },
                None => first = first.or(Some(Failure::earlier())),
            }
        }
        None
    }

    /// The candidates for the compilation of a unit, best first, and the reason for the placement.
    pub(crate) fn candidates(&self, unit: &Unit) -> (Vec<Candidate>, String) {
        let PlacementPlan { target, why } = placement::plan(self.placement, &unit.graph);
        (Candidate::all(unit, target, self.kernels, self.compiler), why)
    }

    /// The program that another process compiled, tried and kept while this one waited for its turn.
    fn compiled_meanwhile(&self, unit: &Unit, candidate: &Candidate) -> Option<Loaded> {
        if self.recompile {
            return None;
        }
        let (bytes, digest) = self.caches.stored(&candidate.job.action.key())?;
        let loaded = self.load(unit, candidate, bytes.clone(), &digest).ok()?;
        self.caches.record(&candidate.job, &bytes);
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
        let Ok(loaded) = self.load(unit, &candidate, bytes.clone(), &Digest::of(&bytes)) else {
            return Ok(None);
        };
        if trial::takes_much(unit) {
            let fresh = Fresh { job: candidate.job, bytes, run };
            return Ok(Some(Rc::new(OnTrial::new(plain, loaded, fresh, &self.caches))));
        }
        let device = self.runtime.device(candidate.target).map_err(runtime_error)?;
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
        let loaded = self.load(unit, candidate, bytes.to_owned(), &Digest::of(bytes))?;
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
            let device = self.runtime.device(candidate.target).map_err(Failure::runtime)?;
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
                self.caches.record(job, bytes);
            },
        );
    }

    /// A program on the device, with its constants.
    pub(crate) fn load(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        bytes: Vec<u8>,
        digest: &Digest,
    ) -> Result<Loaded, Failure> {
        let size = Some(bytes.len() as u64);
        let load = || self.load_now(unit, candidate, bytes, digest);
        timed(Activity::Load, &candidate.job.name, |_: &_| size, load)
    }

    fn load_now(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        bytes: Vec<u8>,
        digest: &Digest,
    ) -> Result<Loaded, Failure> {
        if let Some(found) = bytecode_version(&bytes)
            && !is_loadable(found)
        {
            return Err(Failure::bytecode(&candidate.job.name, found));
        }
        let vmfb = Vmfb::verify(bytes, &digest.0).map_err(|error| Failure::load(error.to_string()))?;
        let target = if timeline::counts_memory() { Target::LocalSync } else { candidate.target };
        let device = self.runtime.device(target).map_err(Failure::runtime)?;
        let program = device.load(&vmfb).map_err(Failure::runtime)?;
        let mut frame = program.call_frame().map_err(Failure::runtime)?;
        for (i, constant) in candidate.constants.iter().enumerate() {
            let buffer = upload(&device, constant).map_err(Failure::runtime)?;
            frame.set(unit.inputs.len() + i, &buffer).map_err(Failure::runtime)?;
        }
        Ok(Loaded {
            name: candidate.job.name.clone(),
            target: candidate.target,
            model: candidate.model,
            frame: RefCell::new(frame),
            arguments: RefCell::new(vec![None; unit.inputs.len()]),
            results: unit.outputs.iter().map(|leaf| leaf.ty.clone()).collect(),
            placement: Placement {
                model: candidate.target.to_string(),
                donated: candidate.donations.len(),
                ..Placement::default()
            },
            donations: candidate.donations.clone(),
            donating_calls: Cell::new(0),
            plain: None,
        })
    }

    /// The bytes of a job with their digest, from any place that has them.
    pub(crate) fn find(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        timed(Activity::Cache, &job.name, size_of_found, || self.look_for(job))
    }

    fn look_for(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        if let Some((bytes, entry)) = self.caches.project_artifact(&job.action.key()) {
            return Some((bytes, entry.digest));
        }
        match self.caches.shared_artifact(job) {
            Some((bytes, digest)) => {
                self.caches.record(job, &bytes);
                Some((bytes, digest))
            }
            None => self.find_portable(job).or_else(|| self.find_of_packages(job)),
        }
    }

    /// The bytes of a job with their digest, if they are in `__sheaf__`.
    pub(crate) fn find_beside(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        let look = || {
            let beside =
                self.caches.project_artifact(&job.action.key()).map(|(bytes, entry)| (bytes, entry.digest));
            beside.or_else(|| self.find_portable(job))
        };
        timed(Activity::Cache, &job.name, size_of_found, look)
    }
}

/// The size of a program that a cache had.
#[expect(clippy::ref_option, reason = "the result of a look-up as it is")]
fn size_of_found(found: &Option<(Vec<u8>, Digest)>) -> Option<u64> {
    found.as_ref().map(|(bytes, _)| bytes.len() as u64)
}

impl Backend for Engine {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
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
        if self.recompile {
            return Vec::new();
        }
        let kept = self.kept.get_or_init(|| kept::listed(&self.caches));
        kept.get(&(function.to_owned(), transform.to_owned())).cloned().unwrap_or_default()
    }

    fn find_kept(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let (candidates, why) = self.candidates(unit);
        let found = self.found(unit, &candidates, |job| self.find_beside(job));
        Ok(found.map(|loaded| loaded.placed(why)))
    }

    fn donation(&self, unit: &Unit) -> Option<Donating> {
        donation::donating(self.donate, unit)
    }

    fn prepare_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        let plain: Rc<dyn Any> = Rc::<dyn Program>::clone(plain);
        let Ok(plain) = plain.downcast::<Loaded>() else { return Ok(None) };
        let candidate = Candidate::new(plain.model, unit, plain.target, donations, self.compiler);
        // Buffers that it keeps would not be unshared.
        plain.release();
        match self.find(&candidate.job).filter(|_| !self.recompile) {
            // It has been tried out before it was kept.
            Some((bytes, digest)) => {
                let loaded = self.load(unit, &candidate, bytes, &digest).ok();
                Ok(loaded.map(|loaded| loaded.beside(&plain) as Rc<dyn Program>))
            }
            None => self.try_donating(unit, candidate, &plain),
        }
    }

    fn refusal(&self) -> String {
        self.refusal.to_string()
    }

    fn stopped_by(&mut self, interrupt: Interrupt) {
        self.compile_service.stopped_by(interrupt);
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        // All CPU targets share their buffers.
        let device = self.runtime.device(Target::LocalSync).map_err(runtime_error)?;
        let bytes = |_: &_| Some(tensor.byte_len() as u64);
        let sent = timed(Activity::Upload, "", bytes, || upload(&device, tensor));
        Ok(DeviceBuffer::share(sent.map_err(runtime_error)?, || "tensors sent by the program".into()))
    }

    fn observed_by(&mut self, timeline: Option<Rc<dyn Timeline>>) {
        timeline::observe(timeline);
    }
}
