//! Entries of the action cache: they are `ActionResult`s, and are given out only while all that they name is there.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bytes::Bytes;
use futures_util::TryStreamExt as _;
use prost::Message as _;

use super::storage::{Form, Key, Kind, MAX_ACTION_RESULT, Reader, Storage, StorageError, Upload, blocking};
use crate::digest::Digest;

/// The largest description of an output folder that is looked into, in bytes; larger ones are taken to be complete.
const MAX_TREE: u64 = 16 * 1024 * 1024;

/// A result, and the very bytes that were written: they may hold fields that this server does not know.
pub(crate) struct Found {
    pub result: reapi::ActionResult,
    pub bytes: Vec<u8>,
}

/// The result of an action, if it and all blobs that it names are there.
pub(crate) async fn find(storage: &Storage, action: Digest) -> Result<Option<Found>, StorageError> {
    let Some(reader) = open(storage, Key { kind: Kind::Action, digest: action }, Form::Plain).await? else {
        return Ok(None);
    };
    if reader.size() > MAX_ACTION_RESULT {
        return Ok(None);
    }
    let bytes = reader.all().await?;
    // Only what could be read was written; a damaged file is as good as none.
    let Ok(result) = reapi::ActionResult::decode(&bytes[..]) else { return Ok(None) };
    Ok(is_complete(storage, &result).await?.then_some(Found { result, bytes }))
}

/// Keeps the result of an action.
pub(crate) async fn keep(storage: &Storage, action: Digest, result: Bytes) -> Result<(), StorageError> {
    check(&result)?;
    let mut upload = Upload::action(storage, action).await?;
    upload.push(result).await?;
    upload.finish().await
}

/// Whether these bytes are an `ActionResult` that is not too large, with digests that are ones.
fn check(bytes: &[u8]) -> Result<(), StorageError> {
    if bytes.len() as u64 > MAX_ACTION_RESULT {
        return Err(StorageError::TooLarge { limit: MAX_ACTION_RESULT });
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

/// The digests that a result names.
fn digests(result: &reapi::ActionResult) -> impl Iterator<Item = &reapi::Digest> {
    let files = result.output_files.iter().filter_map(|file| file.digest.as_ref());
    let folders = result.output_directories.iter();
    let folders = folders.flat_map(|folder| [&folder.tree_digest, &folder.root_directory_digest]).flatten();
    files.chain(folders).chain(&result.stdout_digest).chain(&result.stderr_digest)
}

/// The digest and size of a message; `None` if it makes no sense.
pub(crate) fn address(digest: &reapi::Digest) -> Option<(Digest, u64)> {
    Some((digest.hash.parse().ok()?, digest.size_bytes.try_into().ok()?))
}

/// Whether all that a result names is there. What is asked for counts as used, so that it goes no sooner than the result.
async fn is_complete(storage: &Storage, result: &reapi::ActionResult) -> Result<bool, StorageError> {
    let has = |digest: &reapi::Digest| {
        address(digest).is_some_and(|(digest, size)| storage.has_blob(digest, Some(size)))
    };
    if !digests(result).all(has) {
        return Ok(false);
    }
    for folder in &result.output_directories {
        let Some((digest, size)) = folder.tree_digest.as_ref().and_then(address) else { continue };
        if size > MAX_TREE {
            continue;
        }
        let Some(reader) = open(storage, Key { kind: Kind::Blob, digest }, Form::Plain).await? else {
            return Ok(false);
        };
        let Ok(tree) = reapi::Tree::decode(&reader.all().await?[..]) else { return Ok(false) };
        let mut files = tree.root.iter().chain(&tree.children).flat_map(|folder| &folder.files);
        if !files.all(|file| file.digest.as_ref().is_some_and(has)) {
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
