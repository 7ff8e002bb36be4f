//! The pinned IREE compiler: its release, download, verification and installation, and the process it runs in.
//!
//! [`install()`] puts the compiler into the user's data folder, [`locate()`] finds it there. [`Compiler`] compiles
//! `StableHLO` text in a worker process, whose side is [`run_worker`].

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod bundle;
mod capi;
mod compiler;
mod error;
mod fetch;
mod frame;
mod http;
mod index;
mod install;
mod limits;
mod listing;
mod locate;
mod message;
mod output;
mod pip;
mod process;
mod progress;
mod scratch;
mod source;
mod unpack;
mod verify;
mod worker;

pub use bundle::{bundle, install_bundle, install_release_from};
pub use compiler::{CompileError, Compiler, CompilerVersion};
pub use error::InstallError;
pub use install::{install, install_release, remove};
pub use limits::CompileLimits;
pub use listing::Listing;
pub use locate::{Toolchain, folder, locate, locate_release};
pub use message::{Diagnostic, Severity};
pub use progress::{Progress, Stage};
pub use source::{Limits, Setting, Settings};
pub use verify::{Difference, verify};
pub use worker::run_worker;
