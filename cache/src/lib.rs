//! Where compiled programs are kept, and the keys by which they are found again.
//!
//! An [`Action`] is everything that goes into one compilation; its [`ActionKey`] is the address of the result. Results
//! are looked for in three places, in this order:
//!
//! 1. [`ArtifactFolder`]: `__sheaf__/` beside the program, which travels with it;
//! 2. [`Store`]: the user's cache folder, which all projects share;
//! 3. [`Remotes`]: caches that others share, where only what a trusted key has signed counts.
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
//! Two promises hold throughout. Bytes are handed out only when their SHA-256 is the recorded one, because a damaged
//! VMFB crashes the process that loads it. And trouble with a cache never fails a build: reading answers with a [`Miss`]
//! or a [`Trouble`] that says why, writing with a typed error that the caller reports as a warning.
//!
//! [`serve`] is a server of the protocols that [`remote`] speaks.

// Prints panic where nobody reads them, and belong to the command line.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod action;
mod atomic;
mod blobs;
mod claim;
mod collect;
mod content;
mod difference;
mod digest;
mod executor;
mod file_name;
mod files;
mod folder;
mod guard;
mod locations;
mod lookups;
mod manifest;
mod miss;
mod pretty;
pub mod reapi;
pub mod remote;
mod remotes;
pub mod serve;
mod signing;
mod store;

pub use action::{Action, ActionKey, Cpu, Donation, KEY_VERSION};
pub use atomic::{WriteError, replace, write as write_whole};
pub use claim::{Claim, ClaimError, Compilation, SignedClaim};
pub use collect::{Collected, Fault, Size};
pub use difference::Difference;
pub use digest::{Digest, DigestError};
pub use executor::Executor;
pub use folder::{ArtifactFolder, FolderError, MANIFEST_FILE};
pub use guard::Guard;
pub use locations::strip_locations;
pub use lookups::Lookups;
pub use manifest::{Check, Entry, Leaf, MANIFEST_VERSION, Specialisation, Static};
pub use miss::{Lookup, Miss};
pub use pretty::to_vec as to_pretty_json;
pub use remotes::{BUDGET, Fetched, RemoteSettings, Remotes, Trouble, Upload, Wanted};
pub use signing::{KeyError, KeySyntax, PublicKey, SecretKey, TrustedKeys, normal_address};
pub use store::{Exclusive, Listed, Store, Wait};
