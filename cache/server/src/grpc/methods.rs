//! Required role and maximum message size of each method.

use super::MAX_BATCH;
use crate::metrics::Request as Wanted;
use crate::tokens::Role;

/// A method.
pub(crate) struct Method {
    service: &'static str,
    name: &'static str,
    pub wanted: Wanted,
    pub role: Role,
    pub kind: Kind,
    /// Maximum message size, in bytes.
    pub limit: usize,
}

/// Traffic between client and server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A short message, answered by a message.
    Question,
    /// A message that may be long.
    Message,
    /// Blobs in one message, or in its answer.
    Batch,
    /// A short message, answered by a stream.
    Download,
    /// A stream of messages.
    Upload,
}

impl Method {
    /// Upper limit of a decoded message's memory, as a multiple of its bytes: of the parts that are two bytes long, the
    /// largest take fifty.
    pub fn growth(&self) -> u32 {
        if self.kind == Kind::Upload { 3 } else { 25 }
    }

    /// Position of the method.
    pub fn path(&self) -> String {
        format!("/{}/{}", self.service, self.name)
    }
}

pub(super) const CAPABILITIES: &str = "build.bazel.remote.execution.v2.Capabilities";
pub(super) const ACTIONS: &str = "build.bazel.remote.execution.v2.ActionCache";
pub(super) const BLOBS: &str = "build.bazel.remote.execution.v2.ContentAddressableStorage";
pub(super) const STREAM: &str = "google.bytestream.ByteStream";

/// Names and a digest; names may be long.
const SHORT: usize = 16 * 1024;
/// 25,000 digests.
const DIGESTS: usize = 2 * 1024 * 1024;
/// A batch, or a piece of a blob, with its envelope.
const LONG: usize = MAX_BATCH as usize + 1024 * 1024;
/// An entry of the action cache, with its envelope.
const RESULT: usize = crate::storage::MAX_ACTION_RESULT as usize + SHORT;

/// The complete list.
const METHODS: [Method; 10] = {
    use Kind::{Batch, Download, Message, Question, Upload};
    use Role::{Read, Write};
    use Wanted::{action_read, action_write, blob_find, blob_read, blob_write, other};
    const fn method(
        service: &'static str,
        name: &'static str,
        (wanted, role): (Wanted, Role),
        kind: Kind,
        limit: usize,
    ) -> Method {
        Method { service, name, wanted, role, kind, limit }
    }
    [
        method(CAPABILITIES, "GetCapabilities", (other, Read), Question, SHORT),
        method(ACTIONS, "GetActionResult", (action_read, Read), Question, SHORT),
        method(ACTIONS, "UpdateActionResult", (action_write, Write), Message, RESULT),
        method(BLOBS, "FindMissingBlobs", (blob_find, Read), Message, DIGESTS),
        method(BLOBS, "BatchUpdateBlobs", (blob_write, Write), Batch, LONG),
        method(BLOBS, "BatchReadBlobs", (blob_read, Read), Batch, DIGESTS / 4),
        method(BLOBS, "GetTree", (blob_read, Read), Download, SHORT),
        method(STREAM, "Read", (blob_read, Read), Download, SHORT),
        method(STREAM, "Write", (blob_write, Write), Upload, LONG),
        method(STREAM, "QueryWriteStatus", (blob_find, Read), Question, SHORT),
    ]
};

/// The method at `path`.
pub(crate) fn method(path: &str) -> Option<&'static Method> {
    let (service, name) = path.strip_prefix('/')?.split_once('/')?;
    METHODS.iter().find(|method| method.service == service && method.name == name)
}

/// The methods of a service.
pub(super) fn of(service: &str) -> impl Iterator<Item = &'static Method> {
    METHODS.iter().filter(move |method| method.service == service)
}
