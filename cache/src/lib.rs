//! Caches of compiled programs, and the keys that identify them.
//!
//! An [`Action`] holds all inputs of one compilation; its [`ActionKey`] is the address of the result. Results are
//! looked up in three places, in this order:
//!
//! 1. [`ArtifactFolder`]: `__sheaf__/` next to the source, distributed with it;
//! 2. [`Store`]: the user's cache folder, shared by all projects;
//! 3. [`Remotes`]: caches shared between users, limited to entries signed by a trusted key.
//!
//! ```text
//! Action ──key()──▶ ActionKey ──▶ ArtifactFolder::find ──hit──▶ VMFB bytes, SHA-256 checked
//!    │                               │ miss (a reason)
//!    │                               ▼
//!    │                            Store::get ──hit──▶ SignedClaim, VMFB bytes, SHA-256 checked
//!    │                               │ miss (a reason)
//!    └──reapi::action──▶ Address ──▶ Remotes::get ──hit──▶ the same, and the signer is trusted
//!                                    │ miss
//!                                    ▼
//!                      compile ([`Executor`]: on a cluster), then Store::put, Remotes::put, ArtifactFolder::record
//! ```
//!
//! Two invariants hold throughout. Bytes are returned only if their SHA-256 matches the record, because a damaged VMFB
//! crashes the process that loads it. And cache errors never fail a build: reading returns a [`Miss`] or a [`Trouble`]
//! with the reason, writing a typed error that the caller reports as a warning.
//!
//! `sheaf-cache-server` is a server of the protocols that [`remote`] speaks.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod action;
mod atomic;
mod blobs;
mod claim;
mod collect;
mod content;
mod digest;
mod executor;
mod file_name;
mod files;
mod folder;
mod guard;
mod locations;
mod manifest;
mod miss;
mod pretty;
pub mod reapi;
mod rebuild_reason;
pub mod remote;
mod remotes;
mod stats;
mod store;
mod trusted_keys;

pub use action::{Action, ActionKey, Cpu, Donation, KEY_VERSION};
pub use atomic::{WriteError, replace, write as write_whole, write_with};
pub use claim::{Claim, ClaimError, Compilation, SignedClaim};
pub use collect::{Collected, Fault, Size};
pub use digest::{Digest, DigestError};
pub use executor::Executor;
pub use folder::{ArtifactFolder, FolderError, MANIFEST_FILE};
pub use guard::Guard;
pub use locations::strip_locations;
pub use manifest::{Check, Entry, Leaf, MANIFEST_VERSION, Specialisation, Static};
pub use miss::{Lookup, Miss};
pub use pretty::to_vec as to_pretty_json;
pub use rebuild_reason::RebuildReason;
pub use remotes::{BUDGET, Fetched, RemoteAddress, RemoteSettings, Remotes, Trouble, Upload, Wanted};
pub use sheaf_foundation::{KeyError, KeySyntax, PublicKey, SecretKey, normal_address};
pub use stats::CacheStats;
pub use store::{Exclusive, Listed, Store, Wait};
pub use trusted_keys::TrustedKeys;
