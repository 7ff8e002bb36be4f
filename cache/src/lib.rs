//! Caches of compiled programs: the user's store, and remote caches.
//!
//! An [`Action`](sheaf_artifacts::Action) holds all inputs of one compilation; its [`ActionKey`](sheaf_artifacts::ActionKey) is the address of the result. Results are
//! looked up in three places, in this order:
//!
//! 1. [`ArtifactFolder`](sheaf_artifacts::ArtifactFolder): `__sheaf__/` next to the source, distributed with it;
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
//! crashes the process that loads it. And cache errors never fail a build: reading returns a [`Miss`](sheaf_artifacts::Miss) or a [`Trouble`]
//! with the reason, writing a typed error that the caller reports as a warning.
//!
//! `sheaf-cache-server` is a server of the protocols that [`remote`] speaks.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod blobs;
mod claim;
mod collect;
#[cfg(test)]
mod example;
mod executor;
mod files;
pub mod reapi;
mod rebuild_reason;
pub mod remote;
mod remotes;
mod stats;
mod store;
mod trusted_keys;

pub use claim::{Claim, ClaimError, Compilation, SignedClaim};
pub use collect::{Collected, Fault, Size};
pub use executor::Executor;
pub use rebuild_reason::RebuildReason;
pub use remotes::{BUDGET, Fetched, RemoteAddress, RemoteSettings, Remotes, Trouble, Upload, Wanted};
pub use stats::CacheStats;
pub use store::{Exclusive, Listed, Store, Wait};
pub use trusted_keys::TrustedKeys;
