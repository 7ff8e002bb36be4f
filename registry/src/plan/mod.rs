//! From `Sheaf.toml` to folders of sources: the resolution, `Sheaf.lock`, and fetches.
//!
//! ```text
//! Sheaf.toml ──▶ lock ──▶ Sheaf.lock ──▶ fetch ──▶ Installed: (package, name) ──▶ folder
//!                 │
//!              Universe: indexes, git repositories, folders
//! ```
//!
//! A lock that answers every requirement of the manifest is taken as it is: no index is asked.

mod access;
mod installed;
mod lock;
mod universe;

pub use access::{Access, Reporter};
pub use installed::{Installed, NotInstalled};
pub use lock::{Outcome, PlanError, Resolve, Rewritten, Sources, VENDOR_FOLDER, archive_name, fetch, lock};
pub use universe::{Universe, UniverseError};

pub(crate) use lock::want_of;
