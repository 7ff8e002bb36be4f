//! Compilations expressed in the Remote Execution API, version 2.
//!
//! A compilation is a regular [`action`]: a command line, a tree of input files (program and compiler) and an output,
//! so a cluster's own tools understand it and [`execute`] runs it there. Its digest identifies the compilation in every
//! remote cache, whatever the protocol.

pub mod action;
pub mod execute;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;

use crate::remote::Address;
use sheaf_foundation::Digest;

/// The file that a compilation produces, as named in the outputs of its action.
pub const OUTPUT: &str = "main.vmfb";

/// Maximum size of a server's message: results of actions and frames of streams are far smaller.
pub(crate) const MAX_MESSAGE: usize = 16 << 20;

/// The address in a message; `None` if it is not a SHA-256 digest or has a negative size.
pub(crate) fn address(digest: &api::Digest) -> Option<Address> {
    let size = u64::try_from(digest.size_bytes).ok()?;
    digest.hash.parse::<Digest>().ok().map(|digest| Address { digest, size })
}
