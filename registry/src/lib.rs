//! Packages: versions and their resolution, registries, sources fetched and verified.
//!
//! ```text
//! Sheaf.toml ──▶ requirements ──▶ resolve ──▶ Sheaf.lock ──▶ fetch ──▶ source store ──▶ (use name)
//!                                    ▲                        ▲
//!                       index of a registry: git, http, folder │ git repositories, folders
//! ```

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

pub mod git;
pub mod index;
mod login;
pub mod plan;
pub mod resolve;
pub mod store;
pub mod tend;
mod tls;
pub mod tree;

pub use login::{Login, LoginError, Logins};
