//! Sheaf as a library: sessions that load programs and call their functions, compiled.
//!
//! ```rust,standalone_crate
//! use sheaf_engine::{Session, Value, answer_compile_worker};
//!
//! const PROGRAM: &str = "
//! (defn init [seed]
//!   (let [[k1 k2] (random-split (random-key seed) 2)]
//!     {:l1 {:W (* 1.5 (random-normal k1 '[2 8])) :b (zeros '[8])}
//!      :l2 {:W (* 1.5 (random-normal k2 '[8 1])) :b (zeros '[1])}}))
//!
//! (defn forward [p x]
//!   (-> x (@ (get-in p [:l1 :W])) (+ (get-in p [:l1 :b])) tanh
//!       (@ (get-in p [:l2 :W])) (+ (get-in p [:l2 :b])) sigmoid))
//!
//! (defn loss [p x y] (mean (** (- (forward p x) y) 2)))
//!
//! (defn step [p x y]
//!   (let [[l g] ((value-and-grad loss) p x y)]
//!     (list (tree-map (fn [w d] (- w (* 2.0 d))) p g) l)))
//! ";
//!
//! fn main() -> Result<(), sheaf_engine::Error> {
//!     answer_compile_worker(); // the compiler runs in a process of its own: this program, started again
//!     let session = Session::builder().build()?;
//!     let xor = session.load_text("xor.shf", PROGRAM)?;
//!     let (init, step) = (xor.function("init")?, xor.function("step")?);
//!
//!     let x = Value::tensor(&[4, 2], &[0.0_f32, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
//!     let y = Value::tensor(&[4, 1], &[0.0_f32, 1.0, 1.0, 0.0]);
//!     let mut params = init.call(&[Value::from(0)])?;
//!     let mut loss = f64::INFINITY;
//!     for _ in 0..1_000 {
//!         let result = step.call(&[params, x.clone(), y.clone()])?.items().expect("a list");
//!         loss = result[1].to_f64()?;
//!         params = result[0].clone();
//!     }
//!     assert!(loss < 0.02, "{loss}");
//!
//!     let weights = params.get("l1").and_then(|layer| layer.get("W")).expect("the first layer");
//!     assert_eq!(weights.shape(), Some(&[2, 8][..]));
//!     assert_eq!(weights.elements::<f32>()?.len(), 16);
//!     Ok(())
//! }
//! ```
//!
//! Below the sessions is the [`Engine`]: a specialised function becomes a program by way of emission, action key, cache,
//! compiler and runtime. It shows nothing and reads no environment: its [`EngineConfig`] has folders, settings and secrets,
//! its [`Reporter`] receives progress and warnings. The command line is built on the same sessions.

mod action;
mod ahead;
mod audit;
mod buffer;
mod caches;
mod compile;
mod donation;
mod executor;
mod flags;
mod host;
mod kept;
mod placement;
pub mod release;
mod report;
mod session;
mod settings;
mod trial;
mod unit;
mod worker;

pub use action::described;
pub use ahead::{BuildTarget, Faulty, Keep, Made, Plan};
pub use audit::{Verdict, compare};
pub use buffer::element_type;
pub use caches::{STORE_SIZE, Secrets, remotes, signing_key, trusted_keys};
pub use compile::{CompileRun, CompileService, Compiled, fetching};
pub use donation::Donate;
pub use executor::Cluster;
pub use flags::alternatives;
pub use host::{SystemHost, source_text, unreadable};
pub use placement::{Kernels, PlacementPolicy};
pub use report::{Reporter, counted};
pub use session::{Error, Function, Module, Session, SessionBuilder, Value};
pub use settings::{artifacts, project_of, settings_of};
// Types of the public interface.
pub use sheaf_graph::tensor::DType;
pub use sheaf_lang::eval::{Jit, Location};
pub use sheaf_project::{Home, Options, Project};
pub use sheaf_syntax::Sources;
pub use sheaf_syntax::diagnostic::Diagnostic;
pub use worker::{COMPILE_WORKER, WorkerCommand, answer_compile_worker, this_program};

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use sheaf_cache::{ArtifactFolder, Digest};
use sheaf_graph::graph::Donation;
use sheaf_graph::stablehlo::{Features, Model, emit_donating};
use sheaf_graph::tensor::{HostTensor, TensorType};
use sheaf_lang::eval::Interrupt;
use sheaf_lang::host::{Backend, Buffer, Donating, HostError, Kept, Placement, Program, Unit};
use sheaf_project::Settings;
use sheaf_runtime::{CallFrame, Runtime, Target, Vmfb};

use sheaf_toolchain::{COMPILER, Release, bytecode_version, is_loadable};

use buffer::{DeviceBuffer, upload};
use caches::Caches;
use placement::PlacementPlan;
use trial::{Fresh, OnTrial};
pub use unit::Job;

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
    runtime: Runtime,
    caches: Rc<Caches>,
    compile_service: CompileService,
    compiler: Option<Release<'static>>,
    recompile: bool,
    donate: Donate,
    kernels: Kernels,
    placement: PlacementPolicy,
    /// Reason to interpret the last unit.
    refusal: Refusal,
    /// Contents of `__sheaf__` at the first question.
    kept: OnceCell<kept::ByFunction>,
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
    fn candidates(&self, unit: &Unit) -> (Vec<Candidate>, String) {
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
    fn try_donating(
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
    fn compiled(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        bytes: &[u8],
        run: CompileRun,
    ) -> Result<Loaded, Failure> {
        let job = &candidate.job;
        let loaded = self.load(unit, candidate, bytes.to_owned(), &Digest::of(bytes))?;
        if candidate.features.blocks {
            let device = self.runtime.device(candidate.target).map_err(Failure::runtime)?;
            if !trial::is_right(&device, unit, &loaded).map_err(Failure::runtime)? {
                return Err(Failure::load("its loops in blocks computed something else in a trial".into()));
            }
        }
        self.keep(job, bytes, run);
        Ok(loaded)
    }

    /// Puts a program into all caches.
    fn keep(&self, job: &Job, bytes: &[u8], run: CompileRun) {
        self.caches.keep(job, bytes, run);
        self.caches.record(job, bytes);
    }

    /// A program on the device, with its constants.
    fn load(
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
        let device = self.runtime.device(candidate.target).map_err(Failure::runtime)?;
        let program = device.load(&vmfb).map_err(Failure::runtime)?;
        let mut frame = program.call_frame().map_err(Failure::runtime)?;
        for (i, constant) in candidate.constants.iter().enumerate() {
            let buffer = upload(&device, constant).map_err(Failure::runtime)?;
            frame.set(unit.inputs.len() + i, &buffer).map_err(Failure::runtime)?;
        }
        Ok(Loaded {
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
    fn find(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        if let Some((bytes, entry)) = self.caches.project_artifact(&job.action.key()) {
            return Some((bytes, entry.digest));
        }
        match self.caches.shared_artifact(job) {
            Some((bytes, digest)) => {
                self.caches.record(job, &bytes);
                Some((bytes, digest))
            }
            None => self.find_portable(job),
        }
    }

    /// The bytes of a job with their digest, if they are in `__sheaf__`.
    fn find_beside(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        let beside =
            self.caches.project_artifact(&job.action.key()).map(|(bytes, entry)| (bytes, entry.digest));
        beside.or_else(|| self.find_portable(job))
    }
}

/// Reason to interpret a unit for which no candidate serves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[default]
    #[error("there is no compiler")]
    NoCompiler,
    #[error("the compiler fails on it")]
    Compiler,
    #[error("its program cannot be run")]
    Program,
    #[error("its program is of another release")]
    OtherRelease,
}

/// Failure of a candidate.
#[derive(Clone)]
struct Failure {
    /// The text for the placement of a worse candidate.
    note: String,
    refusal: Refusal,
    /// The error, if it is shown by itself.
    error: String,
    /// The fix to suggest to the user.
    remedy: String,
}

impl Failure {
    fn compiler(error: String, remedy: String) -> Failure {
        let note = format!("the compiler failed on that ({error})");
        Failure { note, refusal: Refusal::Compiler, error, remedy }
    }

    fn runtime(error: sheaf_runtime::Error) -> Failure {
        Failure::load(match error {
            sheaf_runtime::Error::Load { target, status } | sheaf_runtime::Error::Call { target, status } => {
                format!("what the compiler makes of it does not run on {target}: {status}")
            }
            other => other.to_string(),
        })
    }

    fn load(error: String) -> Failure {
        Failure {
            note: error.clone(),
            refusal: Refusal::Program,
            error,
            remedy: "this is an error in Sheaf or in IREE: please report it with the program".into(),
        }
    }

    /// A program that the runtime does not load, since another release made it.
    fn bytecode(name: &str, (major, minor): (u16, u16)) -> Failure {
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
    fn earlier() -> Failure {
        Failure::compiler("in an earlier run".into(), String::new())
    }
}

/// A candidate for a unit: a target, and the compilation for it.
struct Candidate {
    target: Target,
    model: Model,
    /// The compiler may fail on kernels; a program with loops in blocks is tried before it is used.
    features: Features,
    job: Job,
    constants: Vec<HostTensor>,
    donations: Vec<Donation>,
}

impl Candidate {
    /// The candidates for a target, best first: if the compiler fails for one, the next is tried.
    fn all(
        unit: &Unit,
        target: Target,
        kernels: Kernels,
        compiler: Option<Release<'static>>,
    ) -> Vec<Candidate> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for model in kernels.models(target) {
            let candidate = Candidate::new(*model, unit, target, &[], compiler);
            let is_last = !candidate.features.kernels && !candidate.features.blocks;
            candidates.push(candidate);
            if is_last {
                break;
            }
        }
        candidates
    }

    fn new(
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
}

impl Backend for Engine {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let (candidates, why) = self.candidates(unit);
        Ok(self.obtain(unit, &candidates)?.map(|loaded| loaded.placed(why)))
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
        Ok(DeviceBuffer::share(upload(&device, tensor).map_err(runtime_error)?))
    }
}

/// A program with its call prepared.
struct Loaded {
    target: Target,
    model: Model,
    frame: RefCell<CallFrame>,
    /// The small arguments of the last call: rates and the like stay the same from call to call, and need not be set
    /// again.
    arguments: RefCell<Vec<Option<Buffer>>>,
    results: Vec<TensorType>,
    placement: Placement,
    /// The arguments that calls consume.
    donations: Vec<Donation>,
    /// Number of calls that consumed them.
    donating_calls: Cell<u64>,
    /// The program for calls whose arguments have other references.
    plain: Option<Rc<Loaded>>,
}

/// Arguments of more bytes are let go of after each call.
const SMALL_ARGUMENT: usize = 4 << 10;

impl Loaded {
    /// This program with a note on the failure of the best of the candidates, if that failed.
    fn instead_of(mut self, failed: Option<&Failure>) -> Loaded {
        let note = |failure: &Failure| format!("not in its quickest form: {}", failure.note);
        self.placement.note = failed.map(note);
        self
    }

    /// This program as the one for calls that own their arguments.
    fn beside(mut self, plain: &Rc<Loaded>) -> Rc<Loaded> {
        self.placement.why.clone_from(&plain.placement.why);
        self.placement.note.clone_from(&plain.placement.note);
        self.plain = Some(Rc::clone(plain));
        Rc::new(self)
    }

    /// True if a call consumes argument `i`, given no other references to it.
    fn consumes(&self, i: usize) -> bool {
        self.donations.iter().any(|d| d.argument == i)
    }

    /// This program with that reason for its placement.
    fn placed(mut self, why: String) -> Rc<dyn Program> {
        self.placement.why = why;
        Rc::new(self)
    }
}

impl Loaded {
    /// Lets go of all arguments.
    fn release(&self) {
        let mut frame = self.frame.borrow_mut();
        for (i, argument) in self.arguments.borrow_mut().iter_mut().enumerate() {
            *argument = None;
            frame.unset(i);
        }
    }
}

impl Program for Loaded {
    fn call(&self, arguments: &mut Vec<Buffer>, results: &mut Vec<Buffer>) -> Result<(), HostError> {
        if let Some(plain) = &self.plain
            && !donation::all_owned(arguments, &self.donations)
        {
            return plain.call(arguments, results);
        }
        let mut frame = self.frame.borrow_mut();
        let mut last = self.arguments.borrow_mut();
        for (i, argument) in arguments.drain(..).enumerate() {
            if self.consumes(i) {
                let buffer = DeviceBuffer::take(argument).expect("nobody else holds it");
                frame.donate(i, buffer).map_err(runtime_error)?;
            } else if !last[i].as_ref().is_some_and(|known| Rc::ptr_eq(known, &argument)) {
                frame.set(i, DeviceBuffer::of(&argument)?).map_err(runtime_error)?;
                last[i] = Some(argument);
            }
        }
        let called = frame.invoke().map_err(runtime_error);
        for (i, argument) in last.iter_mut().enumerate() {
            let large =
                |buffer: &Buffer| DeviceBuffer::of(buffer).is_ok_and(|b| b.byte_len() > SMALL_ARGUMENT);
            if argument.as_ref().is_some_and(large) {
                *argument = None;
                frame.unset(i);
            }
        }
        called?;
        self.donating_calls.set(self.donating_calls.get() + 1);
        for result in frame.take_results().map_err(runtime_error)? {
            results.push(DeviceBuffer::share(result));
        }
        Ok(())
    }

    fn placement(&self) -> Placement {
        let donating_calls = if self.donations.is_empty() { 0 } else { self.donating_calls.get() };
        Placement { donating_calls, ..self.placement.clone() }
    }
}

/// An error of the runtime as the language reports it.
fn runtime_error(error: impl std::fmt::Display) -> HostError {
    HostError { message: error.to_string(), help: None }
}
