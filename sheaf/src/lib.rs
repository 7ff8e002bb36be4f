//! The `sheaf` command as a library: the command line, and the engine that joins the rooms.

#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

// First, since its macros are for all of them.
#[macro_use]
mod output;

mod bars;
pub mod build;
pub mod bundle;
pub mod cache;
pub mod check;
pub mod clean;
pub mod cli;
pub mod device;
pub mod doc;
mod evaluator;
pub mod expand;
pub mod explain;
pub mod fmt;
pub mod init_ai;
pub mod login;
mod messages;
pub mod new;
pub mod observe;
pub mod packages;
mod progress;
pub mod registry;
pub mod repl;
pub mod replay;
pub mod run;
mod sources;
pub mod step;
pub mod test;
pub mod toolchain;
pub mod trust;
