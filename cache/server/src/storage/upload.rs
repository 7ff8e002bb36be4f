//! Streaming upload of a blob or an entry of the action cache.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};
use tempfile::NamedTempFile;

use super::index::BLOCK;
use super::{FRAME, Key, Kind, Storage, StorageError, Stored};
use sheaf_foundation::Digest;

/// Compression level of the files on disk: the level that takes less time than the network.
const LEVEL: i32 = 3;

/// Maximum window of a sender's zstd frames: 8 MiB, which every decoder must support.
const MAX_WINDOW_LOG: u32 = 23;

/// An upload in progress. Dropping it before it is finished leaves no file.
pub(crate) struct Upload {
    input: Option<Input>,
}

/// Processing of the received pieces.
enum Input {
    Plain(Box<Writer>),
    Zstd(Box<zstd::stream::write::Decoder<'static, Writer>>),
}

impl Upload {
    /// Begins a blob, of known or unknown size; with `zstd`, its pieces are compressed.
    pub async fn blob(
        storage: &Storage,
        digest: Digest,
        size: Option<u64>,
        zstd: bool,
    ) -> Result<Self, StorageError> {
        Self::begin(storage, Key { kind: Kind::Blob, digest }, size, zstd).await
    }

    /// Begins an entry of the action cache.
    pub async fn action(storage: &Storage, action: Digest) -> Result<Self, StorageError> {
        Self::begin(storage, Key { kind: Kind::Action, digest: action }, None, false).await
    }

    async fn begin(storage: &Storage, key: Key, size: Option<u64>, zstd: bool) -> Result<Self, StorageError> {
        let limit = storage.max_blob();
        if size.is_some_and(|size| size > limit) {
            return Err(StorageError::TooLarge { limit });
        }
        let storage = storage.clone();
        let input = blocking(move || {
            let writer = Writer::new(storage, key, size)?;
            if !zstd {
                return Ok(Input::Plain(writer.into()));
            }
            let mut decoder = zstd::stream::write::Decoder::new(writer)?;
            decoder.window_log_max(MAX_WINDOW_LOG)?;
            Ok(Input::Zstd(Box::new(decoder)))
        })
        .await?;
        Ok(Self { input: Some(input) })
    }

    /// Receives the next piece.
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), StorageError> {
        let Some(mut input) = self.input.take() else { return Ok(()) };
        let input = blocking(move || {
            match &mut input {
                Input::Plain(writer) => writer.push(&bytes)?,
                Input::Zstd(decoder) => decoder.write_all(&bytes).map_err(from_decoder)?,
            }
            Ok(input)
        })
        .await?;
        self.input = Some(input);
        Ok(())
    }

    /// Completes the entry: checks it and publishes it if it matches.
    pub async fn finish(mut self) -> Result<(), StorageError> {
        let Some(input) = self.input.take() else { return Ok(()) };
        blocking(move || match input {
            Input::Plain(writer) => writer.finish(),
            Input::Zstd(mut decoder) => {
                decoder.flush().map_err(from_decoder)?;
                decoder.into_inner().finish()
            }
        })
        .await
    }
}

/// Runs blocking work on a thread of its own.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StorageError> + Send + 'static,
) -> Result<T, StorageError> {
    tokio::task::spawn_blocking(work).await.map_err(|error| StorageError::Disk(io::Error::other(error)))?
}

/// The error of a decoder, or of the writer behind it.
fn from_decoder(error: io::Error) -> StorageError {
    match error.downcast::<StorageError>() {
        Ok(error) => error,
        Err(error) if error.raw_os_error().is_some() => error.into(),
        Err(error) => StorageError::NotZstd(error.to_string()),
    }
}

/// Writes the pieces to an unnamed file, and computes their digest.
struct Writer {
    storage: Storage,
    key: Key,
    expected: Option<u64>,
    limit: u64,
    file: NamedTempFile,
    hasher: Sha256,
    size: u64,
    /// The bytes of an incomplete frame.
    pending: Vec<u8>,
    /// True if the file is compressed, decided by its first frame. Entries that fit into one block are not.
    packed: Option<bool>,
    length: u64,
}

impl Writer {
    fn new(storage: Storage, key: Key, expected: Option<u64>) -> Result<Self, StorageError> {
        let file = tempfile::Builder::new().prefix("").make_in(storage.unfinished(), create)?;
        Ok(Self {
            limit: storage.max_blob(),
            storage,
            key,
            expected,
            file,
            hasher: Sha256::new(),
            size: 0,
            pending: Vec::new(),
            // Entries of the action cache are small.
            packed: (key.kind == Kind::Action).then_some(false),
            length: 0,
        })
    }

    fn push(&mut self, mut bytes: &[u8]) -> Result<(), StorageError> {
        self.size += bytes.len() as u64;
        if self.size > self.limit {
            return Err(StorageError::TooLarge { limit: self.limit });
        }
        // Checked at once, so that a few bytes of zstd cannot fill the disk.
        if let Some(expected) = self.expected.filter(|expected| self.size > *expected) {
            return Err(StorageError::WrongSize { expected, found: self.size });
        }
        self.hasher.update(bytes);
        while self.pending.len() + bytes.len() >= FRAME {
            let (head, rest) = bytes.split_at(FRAME - self.pending.len());
            self.pending.extend_from_slice(head);
            bytes = rest;
            self.write_frame()?;
        }
        self.pending.extend_from_slice(bytes);
        Ok(())
    }

    fn write_frame(&mut self) -> Result<(), StorageError> {
        let tries = self.packed.unwrap_or(self.pending.len() as u64 > BLOCK);
        let packed = if tries { Some(compress(&self.pending)?) } else { None };
        let gain = |packed: &Vec<u8>| packed.len() + packed.len() / 8 < self.pending.len();
        let is_packed = *self.packed.get_or_insert_with(|| packed.as_ref().is_some_and(gain));
        let bytes = packed.as_ref().filter(|_| is_packed).unwrap_or(&self.pending);
        self.file.write_all(bytes)?;
        self.length += bytes.len() as u64;
        self.pending.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(), StorageError> {
        if let Some(expected) = self.expected.filter(|expected| self.size != *expected) {
            return Err(StorageError::WrongSize { expected, found: self.size });
        }
        if self.key.kind == Kind::Blob {
            let found = Digest(std::mem::take(&mut self.hasher).finalize().into());
            if found != self.key.digest {
                return Err(StorageError::WrongDigest { expected: self.key.digest, found });
            }
        }
        if !self.pending.is_empty() {
            self.write_frame()?;
        }
        let stored = Stored { size: self.size, length: self.length, packed: self.packed.unwrap_or(false) };
        self.file.as_file().sync_all()?;
        self.storage.publish(self.key, stored, self.file)
    }
}

/// Creates a file readable only by its owner. Keeps the system's own error, which `tempfile` would wrap.
fn create(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.push(bytes).map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One frame, with its uncompressed size in the header.
pub(super) fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(bytes, LEVEL)
}
