//! Remote caches: action results under the digests of actions, and blobs under their own, by the protocols of existing
//! systems.
//!
//! | address | protocol | file |
//! |---|---|---|
//! | `http://`, `https://` | Bazel's simple cache: `GET` and `PUT` of `/ac/<sha256>` and `/cas/<sha256>` | `http.rs` |
//! | `grpc://`, `grpcs://` | Remote Execution API v2: Capabilities, `ActionCache`, CAS, `ByteStream` | `grpc.rs` |
//! | `s3://BUCKET/PREFIX`, `file:///FOLDER` | the same two folders as objects of a store, or files | `objects.rs` |
//!
//! Under every protocol an entry of the action cache is an `ActionResult` of the Remote Execution API.

mod error;

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;

use crate::digest::Digest;

pub use error::RemoteError;

/// What a blob or an action is known by: its SHA-256, and its size in bytes, which the Remote Execution API wants too.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// The SHA-256 of the bytes.
    pub digest: Digest,
    /// How many bytes there are.
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
