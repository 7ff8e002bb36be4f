//! The backend of a machine that compiles nothing, and the part of an engine that loads programs.

use std::any::Any;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;

use sheaf_artifacts::{ArtifactFolder, TuningFlag};
use sheaf_graph::graph::Donation;
use sheaf_graph::tensor::HostTensor;
use sheaf_lang::host::{Backend, Buffer, Donating, HostError, Kept, Placement, Program, Unit};
use sheaf_lang::observe::{Activity, Timeline};
use sheaf_runtime::{Device, Runtime, Target, Vmfb};
use sheaf_target::{Release, bytecode_version, is_loadable};

use crate::buffer::{DeviceBuffer, upload};
use crate::candidate::{Candidate, Failure, Refusal, gpu_model};
use crate::device::{DevicePolicy, OpenGpu};
use crate::donation::{self, Donate};
use crate::folder::{Faults, NOT_USED, ProgramFolder};
use crate::found::Found;
use crate::kept;
use crate::loaded::{Loaded, runtime_error};
use crate::placement::{self, Kernels, PlacementPlan, PlacementPolicy};
use crate::report::Reporter;
use crate::timeline::{self, timed};
use crate::unit::{Job, retarget};

/// Policies that say which program serves a unit.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// Calls that consume arguments.
    pub donate: Donate,
    /// Programs that are one kernel.
    pub kernels: Kernels,
    /// Flags of the compiler in place of those that rules and tuning records choose.
    pub flags: Option<BTreeSet<TuningFlag>>,
    /// The threads of each program on the processor.
    pub placement: PlacementPolicy,
    /// The device.
    pub device: DevicePolicy,
    /// True if only `__sheaf__` serves.
    pub frozen_shapes: bool,
}

/// Programs of one `__sheaf__` on a device of this machine.
pub struct Loader {
    runtime: Runtime,
    /// The GPU of all programs; `None` for the processor.
    gpu: Option<OpenGpu>,
    /// `__sheaf__`.
    pub folder: Rc<ProgramFolder>,
    /// Warnings so far.
    pub faults: Rc<Faults>,
    policies: Policies,
    /// The compiler whose programs are looked for; `None` for the usual one.
    compiler: Option<Release<'static>>,
    /// Contents of `__sheaf__` at the first question.
    kept: OnceCell<kept::ByFunction>,
    /// Reason to interpret the last unit.
    pub refusal: Refusal,
}

impl Loader {
    /// Starts the runtime, and opens the GPU if it is to be one.
    ///
    /// # Errors
    ///
    /// It does not start, or the GPU that the policies name is not there.
    pub fn new(
        folder: ArtifactFolder,
        policies: Policies,
        compiler: Option<Release<'static>>,
        reporter: Arc<dyn Reporter>,
    ) -> Result<Loader, HostError> {
        let runtime = Runtime::new().map_err(runtime_error)?;
        let faults = Rc::new(Faults::new(reporter));
        let folder = ProgramFolder::new(folder, Rc::clone(&faults));
        let serves =
            |device: &str| compiler.is_some() || folder.entries().iter().any(|entry| entry.device == device);
        let gpu = policies.device.open(&runtime, serves, &**faults.reporter())?;
        Ok(Loader {
            runtime,
            gpu,
            folder: Rc::new(folder),
            faults,
            policies,
            compiler,
            kept: OnceCell::new(),
            refusal: Refusal::default(),
        })
    }

    /// The GPU that all programs run on; `None` for the processor.
    pub fn gpu(&self) -> Option<&OpenGpu> {
        self.gpu.as_ref()
    }

    /// A device for programs.
    pub fn device(&self, target: Target) -> Result<Device, sheaf_runtime::Error> {
        self.runtime.device(target)
    }

    /// The candidates for a unit, best first, and the reason for the placement.
    pub fn candidates(&self, unit: &Unit) -> (Vec<Candidate>, String) {
        if let Some(OpenGpu { gpu, destination, why }) = &self.gpu {
            let mut candidate =
                Candidate::new(gpu_model(destination), unit, Target::Gpu(*gpu), &[], self.compiler);
            retarget(&mut candidate.job, destination, false);
            return (vec![candidate], (*why).to_owned());
        }
        let PlacementPlan { target, why } = placement::plan(self.policies.placement, &unit.graph);
        let mut candidates = Candidate::all(unit, target, self.policies.kernels, self.compiler);
        candidates.iter_mut().for_each(|candidate| self.prefer_flags(candidate));
        (candidates, why)
    }

    /// The candidate that consumes arguments, beside a program that consumes none.
    pub fn donating_candidate(&self, unit: &Unit, donations: &[Donation], plain: &Loaded) -> Candidate {
        let mut candidate = Candidate::new(plain.model, unit, plain.target, donations, self.compiler);
        if let Some(OpenGpu { destination, .. }) = &self.gpu {
            retarget(&mut candidate.job, destination, false);
        }
        self.prefer_flags(&mut candidate);
        candidate
    }

    fn prefer_flags(&self, candidate: &mut Candidate) {
        if let Some(flags) = &self.policies.flags {
            candidate.prefer_flags(flags);
        }
    }

    /// The program that consumes arguments, if `look` finds it and it loads. It was tried before it was kept.
    pub fn find_donating(
        &self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
        look: impl Fn(&Job) -> Option<Found>,
    ) -> Option<Rc<dyn Program>> {
        let plain: Rc<dyn Any> = Rc::<dyn Program>::clone(plain);
        let plain = plain.downcast::<Loaded>().ok()?;
        let candidate = self.donating_candidate(unit, donations, &plain);
        let found = look(&candidate.job)?;
        let loaded = self.load(unit, &candidate, found).ok()?;
        // Buffers that it keeps would not be unshared.
        plain.release();
        Some(loaded.beside(&plain))
    }

    /// The first of the candidates that `look` finds and that loads.
    pub fn found(
        &self,
        unit: &Unit,
        candidates: &[Candidate],
        look: impl Fn(&Job) -> Option<Found>,
    ) -> Option<Loaded> {
        let mut first: Option<Failure> = None;
        for candidate in candidates {
            match look(&candidate.job) {
                Some(found) => match self.load(unit, candidate, found) {
                    Ok(loaded) => return Some(loaded.instead_of(first.as_ref())),
                    Err(failure) => {
                        if failure.refusal == Refusal::OtherRelease {
                            self.faults.warn(&failure.error, NOT_USED, Some(&failure.remedy));
                        }
                        first = first.or(Some(failure));
                    }
                },
                None => first = first.or(Some(Failure::earlier())),
            }
        }
        None
    }

    /// A program on the device, with its constants.
    pub fn load(&self, unit: &Unit, candidate: &Candidate, found: Found) -> Result<Loaded, Failure> {
        let size = Some(found.bytes.len() as u64);
        let load = || self.load_now(unit, candidate, found);
        timed(Activity::Load, &candidate.job.name, |_: &_| size, load)
    }

    fn load_now(
        &self,
        unit: &Unit,
        candidate: &Candidate,
        Found { bytes, digest, flags, .. }: Found,
    ) -> Result<Loaded, Failure> {
        if let Some(found) = bytecode_version(&bytes)
            && !is_loadable(found)
        {
            return Err(Failure::bytecode(&candidate.job.name, found));
        }
        let vmfb = Vmfb::verify(bytes, &digest.0).map_err(|error| Failure::load(error.to_string()))?;
        let counts = timeline::counts_memory() && candidate.target.is_host();
        let target = if counts { Target::LocalSync } else { candidate.target };
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
                flags,
                donated: candidate.donations.len(),
                ..Placement::default()
            },
            donations: candidate.donations.clone(),
            donating_calls: Cell::new(0),
            plain: None,
        })
    }

    /// True if only `__sheaf__` serves.
    pub fn is_frozen(&self) -> bool {
        self.policies.frozen_shapes
    }

    /// The bytes of a job with their digest, if they are in `__sheaf__`.
    pub fn find(&self, job: &Job) -> Option<Found> {
        timed(Activity::Cache, &job.name, size_of_found, || self.folder.find_for(job))
    }

    /// Specialisations of a function whose programs are in `__sheaf__`.
    pub fn kept(&self, function: &str, transform: &str) -> Vec<Kept> {
        let kept = self.kept.get_or_init(|| kept::listed(self.folder.entries()));
        kept.get(&(function.to_owned(), transform.to_owned())).cloned().unwrap_or_default()
    }

    /// True if arguments are consumed wherever that can be done.
    pub fn donates_always(&self) -> bool {
        self.policies.donate == Donate::Always
    }

    /// The arguments of a unit to consume, by the policy.
    pub fn donation(&self, unit: &Unit) -> Option<Donating> {
        donation::donating(self.policies.donate, unit)
    }

    /// Copies a tensor to the device.
    pub fn upload(&self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        // All CPU targets share their buffers.
        let target = self.gpu.as_ref().map_or(Target::LocalSync, |open| Target::Gpu(open.gpu));
        let device = self.runtime.device(target).map_err(runtime_error)?;
        let bytes = |_: &_| Some(tensor.byte_len() as u64);
        let sent = timed(Activity::Upload, "", bytes, || upload(&device, tensor));
        Ok(DeviceBuffer::share(sent.map_err(runtime_error)?, || "tensors sent by the program".into()))
    }
}

/// The size of a program that a cache had.
pub fn size_of_found(found: &Option<Found>) -> Option<u64> {
    found.as_ref().map(|found| found.bytes.len() as u64)
}

impl Backend for Loader {
    fn prepare(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let found = self.find_kept(unit)?;
        self.refusal = Refusal::NotBuilt;
        Ok(found)
    }

    fn prepare_twin(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        self.find_kept(unit)
    }

    fn kept(&mut self, function: &str, transform: &str) -> Vec<Kept> {
        if self.kept.get().is_none() {
            // Without another place for programs it is never asked for one.
            self.folder.report_faults();
        }
        Loader::kept(self, function, transform)
    }

    fn find_kept(&mut self, unit: &Unit) -> Result<Option<Rc<dyn Program>>, HostError> {
        let (candidates, why) = self.candidates(unit);
        let found = self.found(unit, &candidates, |job| self.find(job));
        Ok(found.map(|loaded| loaded.placed(why)))
    }

    fn donation(&self, unit: &Unit) -> Option<Donating> {
        Loader::donation(self, unit)
    }

    fn find_donating(
        &mut self,
        unit: &Unit,
        donations: &[Donation],
        plain: &Rc<dyn Program>,
    ) -> Result<Option<Rc<dyn Program>>, HostError> {
        Ok(Loader::find_donating(self, unit, donations, plain, |job| self.find(job)))
    }

    fn refusal(&self) -> String {
        self.refusal.to_string()
    }

    fn upload(&mut self, tensor: &HostTensor) -> Result<Buffer, HostError> {
        Loader::upload(self, tensor)
    }

    fn observed_by(&mut self, timeline: Option<Rc<dyn Timeline>>) {
        timeline::observe(timeline);
    }
}
