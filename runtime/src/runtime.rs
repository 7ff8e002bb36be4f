//! The runtime and its devices.

use std::cell::RefCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use crate::device::{Backend, Device};
use crate::error::Error;
use crate::gpu::{self, Driver, GpuInfo};
use crate::process::Process;
use crate::suballocations::Suballocations;

/// The release of the linked IREE runtime; `eerie-sys` contains its source.
const IREE_VERSION: &str = "3.13.0";

/// Execution targets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The calling thread, as an IREE device. Least overhead per call; for small work.
    LocalSync,
    /// A pool of worker threads, as an IREE device; for large work. Each number of workers is a separate device.
    LocalTask(Workers),
    /// A GPU, with memory of its own.
    Gpu(Gpu),
}

/// A GPU, by its driver and its index among those that the driver finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Gpu {
    /// Its driver.
    pub driver: Driver,
    /// Its index, from 0.
    pub index: usize,
}

/// The threads of [`Target::LocalTask`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Workers {
    /// One per physical core available to this process, each bound to its core.
    #[default]
    Cores,
    /// This many, free to move between processors.
    Exactly(NonZeroUsize),
}

impl Target {
    /// One target of each kind on the processor.
    pub const ALL: [Self; 2] = [Self::LocalSync, Self::LocalTask(Workers::Cores)];

    /// True if it computes in the memory of the process.
    pub fn is_host(self) -> bool {
        !matches!(self, Self::Gpu(_))
    }

    /// True if 64-bit numbers are 32-bit ones there, for want of dependable support.
    pub fn demotes(self) -> bool {
        matches!(self, Self::Gpu(Gpu { driver: Driver::Vulkan | Driver::Metal, .. }))
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::LocalSync => f.write_str("local-sync"),
            Self::LocalTask(Workers::Cores) => f.write_str("local-task"),
            Self::LocalTask(Workers::Exactly(n)) => write!(f, "local-task:{n}"),
            Self::Gpu(gpu) => gpu.fmt(f),
        }
    }
}

impl std::fmt::Display for Gpu {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.index {
            0 => f.write_str(self.driver.name()),
            index => write!(f, "{}:{index}", self.driver.name()),
        }
    }
}

/// The IREE runtime of one thread.
///
/// Cloning is cheap and shares the runtime. Devices, programs and buffers keep it alive.
#[derive(Clone)]
pub struct Runtime {
    shared: Rc<Shared>,
}

/// Owner of all devices: they live as long as any buffer or program, because a result of one device may lie in memory
/// that another has allocated.
pub(crate) struct Shared {
    pub(crate) process: &'static Process,
    backends: RefCell<Vec<(Target, Rc<Backend>)>>,
    pub(crate) suballocations: Suballocations,
}

impl Runtime {
    /// Starts the runtime. No device is opened yet.
    pub fn new() -> Result<Self, Error> {
        let process = Process::get()?;
        Ok(Self {
            shared: Rc::new(Shared {
                process,
                backends: RefCell::default(),
                suballocations: Suballocations::default(),
            }),
        })
    }

    /// Release of the linked IREE runtime, such as `3.13.0`. It loads programs of the compiler of the same release.
    pub const fn version() -> &'static str {
        IREE_VERSION
    }

    /// The GPUs that a driver finds, in the order of their index. The driver's library is loaded by the first call.
    ///
    /// # Errors
    ///
    /// This build has no such driver ([`Driver::is_linked`]), or the machine has not: the library of the GPU's maker is not there.
    pub fn gpus(&self, driver: Driver) -> Result<Vec<GpuInfo>, Error> {
        gpu::list(self.shared.process, driver).map_err(|status| Error::Driver { driver, status })
    }

    /// The device for `target`; opened by the first call.
    pub fn device(&self, target: Target) -> Result<Device, Error> {
        Ok(Device::new(Rc::clone(&self.shared), target, self.shared.backend(target)?))
    }
}

impl Shared {
    /// The opened device for `target`, opened now if needed.
    pub(crate) fn backend(&self, target: Target) -> Result<Rc<Backend>, Error> {
        let known = self.backends.borrow().iter().find(|(t, _)| *t == target).map(|(_, b)| Rc::clone(b));
        if let Some(backend) = known {
            return Ok(backend);
        }
        let opened =
            Backend::open(self.process, target).map_err(|status| Error::Device { target, status })?;
        let backend = Rc::new(opened);
        self.backends.borrow_mut().push((target, Rc::clone(&backend)));
        Ok(backend)
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").finish_non_exhaustive()
    }
}
