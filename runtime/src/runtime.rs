//! The runtime and the devices it offers.

use std::cell::OnceCell;
use std::num::NonZeroUsize;
use std::rc::Rc;

use crate::device::{Backend, Device};
use crate::error::Error;
use crate::process::Process;

/// The release of IREE whose runtime is linked in; `eerie-sys` carries its source.
const IREE_VERSION: &str = "3.13.0";

/// Where programs run.
///
/// A GPU driver would be one more variant with the name of its IREE driver: the features `cuda` and `vulkan` link
/// those drivers. Its buffers would not lie in host memory, so they need transfers instead of mappings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Target {
    /// The calling thread, without a device: programs of the inline model call their kernels directly. Least
    /// overhead per call; for small work.
    Inline,
    /// The calling thread, as a device of IREE's.
    LocalSync,
    /// A pool of worker threads, as a device of IREE's; for large work.
    LocalTask,
}

impl Target {
    /// All targets that this build knows.
    pub const ALL: [Self; 3] = [Self::Inline, Self::LocalSync, Self::LocalTask];

    /// The execution model for which programs must be compiled to run here.
    pub const fn model(self) -> Model {
        match self {
            Self::Inline => Model::Inline,
            Self::LocalSync | Self::LocalTask => Model::Hal,
        }
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Inline => "inline",
            Self::LocalSync => "local-sync",
            Self::LocalTask => "local-task",
        })
    }
}

/// How a program reaches its kernels and buffers; fixed when it is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Model {
    /// Direct calls on host memory (`--iree-execution-model=inline-dynamic`).
    Inline,
    /// Command buffers and queues of a device (the compiler's default, `async-external`).
    Hal,
}

impl std::fmt::Display for Model {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Inline => "inline",
            Self::Hal => "HAL",
        })
    }
}

/// What can be chosen when a runtime is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Options {
    /// Worker threads of [`Target::LocalTask`]. `None` means one for each physical core that this process may use,
    /// each bound to its core; a number means so many, free to move.
    pub task_workers: Option<NonZeroUsize>,
}

/// The IREE runtime of one thread.
///
/// Cloning is cheap and gives the same runtime. Devices, programs and buffers keep it alive.
#[derive(Clone)]
pub struct Runtime {
    shared: Rc<Shared>,
}

/// Owner of all devices: while any buffer or program lives, so do they, because a result of one device may lie in
/// memory that another has handed out.
pub(crate) struct Shared {
    pub(crate) process: &'static Process,
    pub(crate) options: Options,
    backends: [OnceCell<Backend>; Target::ALL.len()],
}

impl Runtime {
    /// Starts the runtime with default options. No device is opened yet.
    pub fn new() -> Result<Self, Error> {
        Self::with_options(Options::default())
    }

    /// Starts the runtime. No device is opened yet.
    pub fn with_options(options: Options) -> Result<Self, Error> {
        let process = Process::get()?;
        Ok(Self { shared: Rc::new(Shared { process, options, backends: Default::default() }) })
    }

    /// Release of the IREE runtime that is linked in, such as `3.13.0`. It loads what the compiler of the same
    /// release makes.
    pub const fn version() -> &'static str {
        IREE_VERSION
    }

    /// The device for `target`; opened by the first call.
    pub fn device(&self, target: Target) -> Result<Device, Error> {
        self.shared.open(target)?;
        Ok(Device::new(Rc::clone(&self.shared), target))
    }
}

impl Shared {
    fn open(&self, target: Target) -> Result<(), Error> {
        let cell = &self.backends[target as usize];
        if cell.get().is_none() {
            let backend = Backend::open(self.process, target, self.options)
                .map_err(|status| Error::Device { target, status })?;
            // The cell was empty and opening a device does not open another.
            let _ = cell.set(backend);
        }
        Ok(())
    }

    /// The opened device; [`Device`]s exist only for opened ones.
    pub(crate) fn backend(&self, target: Target) -> &Backend {
        self.backends[target as usize].get().expect("a device handle exists only after the device was opened")
    }
}

impl std::fmt::Debug for Runtime {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runtime").field("options", &self.shared.options).finish_non_exhaustive()
    }
}
