//! Remote caches: action results by action digest and blobs by their own digest, in the protocols of existing systems.
//!
//! | address | protocol | file |
//! |---|---|---|
//! | `http://`, `https://` | Bazel's simple cache: `GET` and `PUT` of `/ac/<sha256>` and `/cas/<sha256>` | `http.rs` |
//! | `grpc://`, `grpcs://` | Remote Execution API v2: Capabilities, `ActionCache`, CAS, `ByteStream` | `grpc/` |
//! | `s3://BUCKET/PREFIX`, `file:///FOLDER` | the same two folders as objects of a store, or files | `objects.rs` |
//!
//! Under every protocol an entry of the action cache is an `ActionResult` of the Remote Execution API.

mod credentials;
mod error;
pub mod grpc;
pub mod http;
pub mod objects;
mod open;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bytes::Bytes;
use serde::{Deserialize, Serialize};

use sheaf_foundation::Digest;

pub use credentials::{Credentials, KEY_VARIABLE, SECRETS, Secret, TOKEN_VARIABLE};
pub use error::RemoteError;
pub(crate) use open::Remote;
pub(crate) use sheaf_foundation::{shown, shown_text};

/// Upper limit of an action result's size, in bytes.
pub(crate) const RESULT_LIMIT: u64 = 1 << 20;

/// Identity of a blob or an action: its SHA-256, and its size in bytes, which the Remote Execution API requires.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Address {
    /// The SHA-256 of the bytes.
    pub digest: Digest,
    /// Number of bytes.
    pub size: u64,
}

impl Address {
    /// The address of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self { digest: Digest::of(bytes), size: bytes.len() as u64 }
    }
}

impl From<Address> for reapi::Digest {
    fn from(address: Address) -> Self {
        Self { hash: address.digest.to_string(), size_bytes: address.size as i64 }
    }
}

/// `bytes`, if they match `blob`.
pub(crate) fn verified(
    bytes: Bytes,
    blob: &Address,
    address: impl Fn() -> String,
) -> Result<Bytes, RemoteError> {
    match Address::of(&bytes) {
        found if found == *blob => Ok(bytes),
        found => Err(RemoteError::Altered { address: address(), expected: blob.digest, found: found.digest }),
    }
}

/// Selects ring for TLS. Fails only if the process has already selected a provider, which serves as well.
pub(crate) fn choose_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// A runtime for remotes: one thread of this name, separate from the caller's.
pub(crate) fn background(name: &str) -> Result<tokio::runtime::Runtime, RemoteError> {
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    builder
        .worker_threads(1)
        .thread_name(name)
        .enable_all()
        .build()
        .map_err(|error| RemoteError::Unreachable { address: "the network".into(), cause: error.to_string() })
}
