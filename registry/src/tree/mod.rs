//! Trees of packages: their hash, and the rules for their files.
//!
//! ```text
//! git objects ──▶ rules, entry by entry ──▶ staged folder ──▶ hash ──▶ source store
//! a folder    ──▶ rules ([`check`]) and hash ([`hash`])
//! ```
//!
//! The hash is that of Nix: SHA-256 of the folder's NAR, which has names, contents, executable bits and links, and no
//! times or owners. Folders named `__sheaf__` are hashed like others; a package's are never read.

mod check;
mod error;
mod hash;
mod links;
mod name;

pub use check::{Limits, Summary, check};
pub(crate) use check::{Rules, Siblings, TARGET, relative};
pub use error::TreeError;
pub use hash::{NotATreeHash, TreeHash, hash};
