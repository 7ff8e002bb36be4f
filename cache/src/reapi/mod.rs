//! Compilations in the words of the Remote Execution API, version 2.
//!
//! A compilation is a proper [`action`]: a command line, a tree of input files (program and compiler) and an output, so a
//! cluster's own tools understand it and [`execute`] has it compiled there. Its digest names the compilation in every
//! remote cache, whatever the protocol.

pub mod action;
pub mod execute;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;

use crate::digest::Digest;
use crate::remote::Address;

/// The file that a compilation gives, as outputs of its action are named.
pub const OUTPUT: &str = "main.vmfb";

/// No message of a server is read beyond this: results of actions and frames of streams are far smaller.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// The address that a message names; nothing where it is none of SHA-256, or has a negative size.
pub(crate) fn address(digest: &api::Digest) -> Option<Address> {
    let size = u64::try_from(digest.size_bytes).ok()?;
    digest.hash.parse::<Digest>().ok().map(|digest| Address { digest, size })
}
