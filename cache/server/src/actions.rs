//! Entries of the action cache: `ActionResult`s, returned only while all blobs that they name exist.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use prost::Message as _;

use super::storage::{Form, Key, Kind, MAX_ACTION_RESULT, Reader, Storage, StorageError, Upload, blocking};
use super::wire::{self, Named, Output};
use sheaf_foundation::Digest;

/// Maximum size in bytes, and number, of output folder descriptions checked per result; the rest is assumed to be
/// complete.
const MAX_TREES: u64 = 4 * 1024 * 1024;
const MAX_TREE_COUNT: usize = 64;

/// The serialised result, as it was written, if it and all blobs that it names exist. It may hold fields that this
/// server does not know.
pub(crate) async fn find(storage: &Storage, action: Digest) -> Result<Option<Bytes>, StorageError> {
    let Some(reader) = open(storage, Key { kind: Kind::Action, digest: action }, Form::Plain).await? else {
        return Ok(None);
    };
    if reader.size() > MAX_ACTION_RESULT {
        return Ok(None);
    }
    let bytes = Bytes::from(reader.all().await?);
    Ok(is_complete(storage, &bytes).await?.then_some(bytes))
}

/// Stores the result of an action.
pub(crate) async fn keep(storage: &Storage, action: Digest, result: Bytes) -> Result<(), StorageError> {
    check(&result)?;
    let mut upload = Upload::action(storage, action).await?;
    upload.push(result).await?;
    upload.finish().await
}

/// Errors unless these bytes are an `ActionResult` of permitted size with well-formed digests.
fn check(bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.len() as u64 > MAX_ACTION_RESULT {
        return Err(StorageError::TooLarge { limit: MAX_ACTION_RESULT });
    }
    if !wire::is_sound(bytes) {
        return Err(StorageError::NotAnActionResult("it has too many parts for its size".into()));
    }
    let result = reapi::ActionResult::decode(bytes)
        .map_err(|error| StorageError::NotAnActionResult(error.to_string()))?;
    for digest in digests(&result) {
        address(digest).ok_or_else(|| {
            let hash: String = digest.hash.chars().take(80).collect();
            StorageError::NotAnActionResult(format!("`{hash}` with {} bytes is no digest", digest.size_bytes))
        })?;
    }
    Ok(())
}

/// The digests in a result.
fn digests(result: &reapi::ActionResult) -> impl Iterator<Item = &reapi::Digest> {
    let files = result.output_files.iter().filter_map(|file| file.digest.as_ref());
    let folders = result.output_directories.iter();
    let folders = folders.flat_map(|folder| [&folder.tree_digest, &folder.root_directory_digest]).flatten();
    files.chain(folders).chain(&result.stdout_digest).chain(&result.stderr_digest)
}

/// The digest and size in a message; `None` if malformed.
pub(crate) fn address(digest: &reapi::Digest) -> Option<(Digest, u64)> {
    Some((digest.hash.parse().ok()?, digest.size_bytes.try_into().ok()?))
}

/// True if all blobs of a result exist. They count as used, so that they are not evicted before the result.
async fn is_complete(storage: &Storage, result: &Bytes) -> Result<bool, StorageError> {
    let (all, bytes) = (storage.clone(), result.clone());
    let trees = blocking(move || {
        let mut trees = Vec::new();
        let complete = wire::outputs(&bytes, |output| {
            let (Output::Blob(named) | Output::Tree(named)) = output;
            let Some((digest, size)) = named else { return false };
            if matches!(output, Output::Tree(_))
                && trees.len() < MAX_TREE_COUNT
                && !trees.contains(&(digest, size))
            {
                trees.push((digest, size));
            }
            all.has_blob(digest, Some(size))
        });
        // Only well-formed folders were written; a damaged file counts as missing.
        Ok((complete == Ok(true)).then_some(trees))
    });
    let Some(trees) = trees.await? else { return Ok(false) };
    let mut looked_into = 0;
    for (digest, size) in trees {
        if looked_into + size > MAX_TREES {
            continue;
        }
        looked_into += size;
        let Some(reader) = open(storage, Key { kind: Kind::Blob, digest }, Form::Plain).await? else {
            return Ok(false);
        };
        let (all, tree) = (storage.clone(), reader.all().await?);
        let has = move |named: Named| named.is_some_and(|(digest, size)| all.has_blob(digest, Some(size)));
        if blocking(move || Ok(wire::tree_files(&tree, has))).await? != Ok(true) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Opens an entry.
pub(crate) async fn open(storage: &Storage, key: Key, form: Form) -> Result<Option<Reader>, StorageError> {
    let storage = storage.clone();
    blocking(move || storage.open_blocking(key, form)).await
}

/// Collects a body of at most `limit` bytes.
pub(crate) async fn collect<E>(
    body: impl futures_util::Stream<Item = Result<Bytes, E>>,
    limit: u64,
) -> Result<Result<Bytes, StorageError>, E> {
    let mut body = std::pin::pin!(body);
    let mut all = Vec::new();
    while let Some(piece) = body.try_next().await? {
        if (all.len() + piece.len()) as u64 > limit {
            return Ok(Err(StorageError::TooLarge { limit }));
        }
        all.extend_from_slice(&piece);
    }
    Ok(Ok(all.into()))
}
