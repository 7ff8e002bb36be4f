//! Compilation targets: devices and processors with the compiler's flags for them, the table of supported compilers, and
//! the bytecode version of a compiled program. All that an action key says about a compilation besides its program; no
//! files, no network.
//!
//! [`Target`] gives the flags for a device, [`Destination`] those for a machine that need not be this one, [`Cpu`] the
//! processor that `host` code depends on, and [`RELEASES`] the compilers by name, size and SHA-256.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod cpu;
mod destination;
mod releases;
mod target;
mod vmfb;

pub use cpu::{Cpu, CpuSyntax, MissingFeatures};
pub use destination::{Destination, NamedProcessor, Processor, UnknownDestination};
pub use releases::{
    COMPILER, Member, Platform, RELEASES, Release, ToolFile, compiler_digest, executor_files, is_loadable,
};
pub use target::{NO_HOISTING, Target};
pub use vmfb::bytecode_version;
