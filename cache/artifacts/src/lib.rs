//! Compiled programs beside their sources, and the keys that identify them.
//!
//! An [`Action`] holds all inputs of one compilation; its [`ActionKey`] is the address of the result. The
//! [`ArtifactFolder`] `__sheaf__/` has results for one program, with a manifest that says which function, for which
//! arguments, is which file. It is all that a machine without a compiler needs.
//!
//! Bytes are returned only if their SHA-256 matches the record, because a damaged VMFB crashes the process that loads it;
//! a look-up without a result returns a [`Miss`] with the reason.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod action;
pub mod content;
mod file_name;
mod folder;
mod guard;
mod locations;
mod manifest;
mod miss;
mod pretty;
mod tuning;

pub use action::{Action, ActionKey, Cpu, Donation, KEY_VERSION};
pub use folder::{ArtifactFolder, FolderError, LOCK_FILE, MANIFEST_FILE};
pub use guard::Guard;
pub use locations::strip_locations;
pub use manifest::{Check, Entry, Leaf, MANIFEST_VERSION, Specialisation, Static};
pub use miss::{Lookup, Miss};
pub use pretty::to_vec as to_pretty_json;
pub use tuning::{Tuning, TuningError, TuningFlag, is_tuning_record};
