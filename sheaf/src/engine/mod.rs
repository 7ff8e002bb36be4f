//! The engine joins the rooms: a specialised function becomes a program by way of emission, action key, cache,
//! compiler and runtime.

mod buffer;
mod compile;
mod placement;
mod unit;

use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;

use sheaf_cache::{ArtifactFolder, Digest, Lookup, Store};
use sheaf_lang::host::{Backend, Buffer, HostError, Program, Unit};
use sheaf_lang::stablehlo::emit;
use sheaf_lang::tensor::HostTensor;
use sheaf_registry::{Home, Settings};
use sheaf_runtime::{CallFrame, Runtime, Target, Vmfb};

use crate::messages;
use buffer::{DeviceBuffer, upload};
use compile::Workshop;

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
}

/// Compiled execution on this machine.
pub struct Engine {
    runtime: Runtime,
    artifacts: ArtifactFolder,
    store: Store,
    workshop: Workshop,
    recompile: bool,
}

impl Engine {
    /// Starts the runtime; the compiler is started, and installed, when it is first needed.
    pub fn new(place: Place) -> Result<Engine, sheaf_runtime::Error> {
        Ok(Engine {
            runtime: Runtime::new()?,
            artifacts: ArtifactFolder::open(place.artifacts),
            store: Store::new(place.home.cache()),
            recompile: place.recompile,
            workshop: Workshop::new(place.home, place.settings),
        })
    }

    /// The compiled bytes of an action with their digest: from `__sheaf__`, the store or the compiler. `None` without
    /// a compiler.
    fn obtain(&mut self, job: &unit::Job) -> Result<Option<(Vec<u8>, Digest)>, HostError> {
        let key = job.action.key();
        if !self.recompile {
            match self.artifacts.find(&key) {
                Lookup::Hit { bytes, entry } => return Ok(Some((bytes, entry.digest))),
                Lookup::Miss(miss) if miss.is_trouble() => {
                    messages::warning(miss, Some("it is compiled again, or fetched from the cache, and replaced"));
                }
                Lookup::Miss(_) => {}
            }
            match self.store.get(&key) {
                Lookup::Hit { bytes, entry } => {
                    self.record(job, &bytes);
                    return Ok(Some((bytes, entry.digest)));
                }
                Lookup::Miss(miss) if miss.is_trouble() => {
                    messages::warning(miss, Some("it is compiled again and replaced"));
                }
                Lookup::Miss(_) => {}
            }
        }
        let Some(bytes) = self.workshop.compile(job)? else { return Ok(None) };
        if let Err(e) = self.store.put(&job.action, &job.name, &bytes) {
            messages::warning(e, None);
        }
        self.record(job, &bytes);
        let digest = Digest::of(&bytes);
        Ok(Some((bytes, digest)))
    }

    /// Keeps a program beside the sources. Trouble is no reason to stop: the next run compiles it again.
    fn record(&self, job: &unit::Job, bytes: &[u8]) {
        if let Err(e) = self.artifacts.record(&job.action, job.specialisation.clone(), bytes) {
            messages::warning(e, None);
        }
    }
}

impl Backend for Engine {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let module = emit(&unit.graph);
        let target = placement::target(&unit.graph);
        let job = unit::job(unit, &module, target);
        let Some((bytes, digest)) = self.obtain(&job)? else { return Ok(None) };
        let vmfb = Vmfb::verify(bytes, &digest.0).map_err(runtime_error)?;
        let device = self.runtime.device(target).map_err(runtime_error)?;
        let program = device.load(&vmfb).map_err(runtime_error)?;
        let mut frame = program.call_frame().map_err(runtime_error)?;
        for (i, constant) in module.constants.iter().enumerate() {
            let buffer = upload(&device, constant).map_err(runtime_error)?;
            frame.set(unit.inputs.len() + i, &buffer).map_err(runtime_error)?;
        }
        Ok(Some(Rc::new(Loaded { frame: RefCell::new(frame), results: unit.outputs.len() })))
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
    results: usize,
}

impl Program for Loaded {
    fn call(&self, arguments: &[Buffer], results: &mut Vec<Buffer>) -> Result<(), HostError> {
        let mut frame = self.frame.borrow_mut();
        for (i, argument) in arguments.iter().enumerate() {
            frame.set(i, DeviceBuffer::of(argument)?).map_err(runtime_error)?;
        }
        frame.invoke().map_err(runtime_error)?;
        for i in 0..self.results {
            results.push(DeviceBuffer::share(frame.result(i).map_err(runtime_error)?));
        }
        Ok(())
    }
}

/// An error of the runtime as the language reports it.
fn runtime_error(error: impl std::fmt::Display) -> HostError {
    HostError { message: error.to_string(), help: None }
}
