//! Programs that were compiled already: a specialised function becomes a key, its file in `__sheaf__` a program that is
//! called. A machine without a compiler needs no more; `sheaf-engine` adds the other caches and the compiler.
//!
//! A [`Candidate`] is one way to run a unit; its [`Job`] is the compilation whose key names the file. [`Loader`] is a backend
//! of the language that looks into one [`ProgramFolder`]. Nothing is shown: a [`Reporter`] receives progress and warnings.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod buffer;
mod candidate;
mod device;
mod donation;
mod flags;
mod folder;
mod found;
mod host;
mod kept;
mod loaded;
mod loader;
mod placement;
mod report;
pub mod timeline;
mod unit;

/// True if `(plot ...)` can draw.
pub const HAS_PICTURES: bool = cfg!(feature = "plot");

pub use buffer::{DeviceBuffer, element_type, upload};
pub use candidate::{Candidate, Failure, Refusal, gpu_model};
pub use device::{DevicePolicy, OpenGpu};
pub use donation::{Donate, all_owned, donating};
pub use flags::alternatives;
pub use folder::{Faults, NOT_KEPT, NOT_USED, ProgramFolder, portable};
pub use found::Found;
pub use host::{ProgramPackages, SystemHost, source_text, unreadable};
pub use loaded::{Loaded, runtime_error};
pub use loader::{Loader, Policies, size_of_found};
pub use placement::{Kernels, PlacementPlan, PlacementPolicy, plan};
pub use report::{Reporter, counted};
pub use unit::{Job, job, retarget};
