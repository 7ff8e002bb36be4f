//! The engine joins the rooms: a specialised function becomes a program by way of emission, action key, cache,
//! compiler and runtime.

mod buffer;
mod compile;
mod placement;
mod unit;

pub use compile::COMPILE_WORKER;

use std::cell::RefCell;
use std::collections::HashSet;
use std::path::PathBuf;
use std::rc::Rc;

use sheaf_cache::{ArtifactFolder, Digest, Lookup, Miss, Store};
use sheaf_lang::host::{Backend, Buffer, HostError, Placement, Program, Unit};
use sheaf_lang::stablehlo::{self, emit};
use sheaf_lang::tensor::HostTensor;
use sheaf_registry::{Home, Settings};
use sheaf_runtime::{CallFrame, Model, Runtime, Target, Vmfb};

use crate::messages;
use buffer::{DeviceBuffer, upload};
use compile::{Compiled, Workshop};
use unit::Job;

/// Where the engine keeps things, and how the user wants it to work.
pub struct Place {
    /// The user's folders.
    pub home: Home,
    /// The `__sheaf__` of the program.
    pub artifacts: PathBuf,
    /// Settings from all places.
    pub settings: Settings,
    /// Compile anew, whatever the caches hold.
    pub recompile: bool,
    /// Fail where there is no compiler, or it fails.
    pub strict: bool,
}

/// Compiled execution on this machine.
pub struct Engine {
    runtime: Runtime,
    artifacts: ArtifactFolder,
    store: Store,
    workshop: Workshop,
    recompile: bool,
    /// Why the last unit was not compiled.
    refusal: String,
    /// The warnings about caches that have been shown: one fault may meet every function of a program.
    warned: RefCell<HashSet<String>>,
}

impl Engine {
    /// Starts the runtime; the compiler is started, and installed, when it is first needed.
    pub fn new(place: Place) -> Result<Engine, sheaf_runtime::Error> {
        Ok(Engine {
            runtime: Runtime::new()?,
            artifacts: ArtifactFolder::open(place.artifacts),
            store: Store::new(place.home.cache()),
            recompile: place.recompile,
            refusal: String::new(),
            warned: RefCell::default(),
            workshop: Workshop::new(place.home, place.settings, place.strict),
        })
    }

    /// The first of the candidates that `__sheaf__` or the store holds, else the first that compiles. `None` without
    /// a compiler, or where it fails for all.
    fn obtain(&mut self, candidates: &[Candidate]) -> Result<Option<Obtained>, HostError> {
        if !self.recompile {
            for (i, candidate) in candidates.iter().enumerate() {
                if let Some((bytes, digest)) = self.find(&candidate.job) {
                    let failed = (i > 0).then(|| "in an earlier run".to_owned());
                    return Ok(Some(Obtained { chosen: i, bytes, digest, failed }));
                }
            }
        }
        let mut failed: Option<String> = None;
        for (i, candidate) in candidates.iter().enumerate() {
            let last = i + 1 == candidates.len();
            match self.workshop.compile(&candidate.job, last)? {
                Compiled::Yes(bytes) => {
                    if let Err(e) = self.store.put(&candidate.job.action, &candidate.job.name, &bytes) {
                        self.warn(&e, NOT_KEPT, Some(e.remedy()));
                    }
                    self.record(&candidate.job, &bytes);
                    let digest = Digest::of(&bytes);
                    return Ok(Some(Obtained { chosen: i, bytes, digest, failed }));
                }
                Compiled::Rejected(error) => failed = Some(error),
                Compiled::NoCompiler => {
                    self.refusal = "there is no compiler".into();
                    return Ok(None);
                }
            }
        }
        self.refusal = "the compiler fails on it".into();
        Ok(None)
    }

    /// The bytes of a job with their digest, from `__sheaf__` or the store. What is damaged there is said, and
    /// replaced once the job is compiled.
    fn find(&self, job: &Job) -> Option<(Vec<u8>, Digest)> {
        let key = job.action.key();
        match self.artifacts.find(&key) {
            Lookup::Hit { bytes, entry } => return Some((bytes, entry.digest)),
            Lookup::Miss(miss) => self.report(&miss),
        }
        match self.store.get(&key) {
            Lookup::Hit { bytes, entry } => {
                self.record(job, &bytes);
                Some((bytes, entry.digest))
            }
            Lookup::Miss(miss) => {
                self.report(&miss);
                None
            }
        }
    }

    /// Warns of damage in a cache; that something is simply not there is no trouble.
    fn report(&self, miss: &Miss) {
        if miss.is_trouble() {
            let meaning = if miss.remedy().is_some() { NOT_USED } else { REPLACED };
            self.warn(miss, meaning, miss.remedy());
        }
    }

    /// Shows a warning about a cache, once in a run.
    fn warn(&self, message: &dyn std::fmt::Display, meaning: &str, remedy: Option<&str>) {
        let message = message.to_string();
        if !self.warned.borrow().contains(&message) {
            messages::warning_with(&message, meaning, remedy);
            self.warned.borrow_mut().insert(message);
        }
    }

    /// Keeps a program beside the sources. Trouble is no reason to stop: the next run compiles it again.
    fn record(&self, job: &Job, bytes: &[u8]) {
        if let Err(e) = self.artifacts.record(&job.action, job.specialisation.clone(), bytes) {
            self.warn(&e, NOT_KEPT, Some(e.remedy()));
        }
    }
}

/// What it means that a compiled program cannot be written.
const NOT_KEPT: &str = "the run goes on; only a later one may have to compile again";

/// What it means that a compiled program cannot be read.
const NOT_USED: &str = "it is not used: the program is taken from another cache or compiled again";

/// What it means that a compiled program is damaged.
const REPLACED: &str =
    "it is not used: the program is taken from another cache or compiled again, and the file replaced";

/// A compiled unit.
struct Obtained {
    /// Which of the candidates it is.
    chosen: usize,
    bytes: Vec<u8>,
    digest: Digest,
    /// What the compiler said of a better candidate, or when it did.
    failed: Option<String>,
}

/// One way to run a unit: a target, and the compilation for it.
struct Candidate {
    target: Target,
    job: Job,
    constants: Vec<HostTensor>,
}

impl Candidate {
    /// `None` where the target does not serve for this unit.
    fn new(unit: &Unit, target: Target) -> Option<Candidate> {
        let model = match target.model() {
            Model::Inline => stablehlo::Model::Inline,
            Model::Hal => stablehlo::Model::Hal,
        };
        let module = emit(&unit.graph, model);
        if target.model() == Model::Inline && module.needs_device() {
            return None;
        }
        let job = unit::job(unit, &module, target);
        Some(Candidate { target, job, constants: module.constants })
    }
}

impl Backend for Engine {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let targets = placement::targets(&unit.graph).iter();
        let candidates: Vec<Candidate> = targets.filter_map(|target| Candidate::new(unit, *target)).collect();
        let Some(obtained) = self.obtain(&candidates)? else { return Ok(None) };
        let Obtained { chosen, bytes, digest, failed } = obtained;
        let Candidate { target, constants, .. } = &candidates[chosen];
        let vmfb = Vmfb::verify(bytes, &digest.0).map_err(runtime_error)?;
        let device = self.runtime.device(*target).map_err(runtime_error)?;
        let program = device.load(&vmfb).map_err(runtime_error)?;
        let mut frame = program.call_frame().map_err(runtime_error)?;
        for (i, constant) in constants.iter().enumerate() {
            let buffer = upload(&device, constant).map_err(runtime_error)?;
            frame.set(unit.inputs.len() + i, &buffer).map_err(runtime_error)?;
        }
        Ok(Some(Rc::new(Loaded {
            frame: RefCell::new(frame),
            arguments: RefCell::new(vec![None; unit.inputs.len()]),
            results: unit.outputs.len(),
            placement: Placement {
                model: target.to_string(),
                note: failed.map(|said| {
                    let better = candidates[0].target;
                    format!("not run {better}, which is quickest for little work: the compiler failed on that ({said})")
                }),
            },
        })))
    }

    fn refusal(&self) -> String {
        self.refusal.clone()
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        // All CPU targets share their buffers.
        let device = self.runtime.device(Target::Inline).map_err(runtime_error)?;
        Ok(DeviceBuffer::share(upload(&device, tensor).map_err(runtime_error)?))
    }
}

/// A program with its call prepared.
struct Loaded {
    frame: RefCell<CallFrame>,
    /// The arguments of the last call: data and rates stay the same from call to call, and need not be set again.
    arguments: RefCell<Vec<Option<Buffer>>>,
    results: usize,
    placement: Placement,
}

impl Program for Loaded {
    fn call(&self, arguments: &[Buffer], results: &mut Vec<Buffer>) -> Result<(), HostError> {
        let mut frame = self.frame.borrow_mut();
        let mut last = self.arguments.borrow_mut();
        for (i, argument) in arguments.iter().enumerate() {
            if !last[i].as_ref().is_some_and(|known| Rc::ptr_eq(known, argument)) {
                frame.set(i, DeviceBuffer::of(argument)?).map_err(runtime_error)?;
                last[i] = Some(Rc::clone(argument));
            }
        }
        frame.invoke().map_err(runtime_error)?;
        for i in 0..self.results {
            results.push(DeviceBuffer::share(frame.result(i).map_err(runtime_error)?));
        }
        Ok(())
    }

    fn placement(&self) -> Placement {
        self.placement.clone()
    }
}

/// An error of the runtime as the language reports it.
fn runtime_error(error: impl std::fmt::Display) -> HostError {
    HostError { message: error.to_string(), help: None }
}
