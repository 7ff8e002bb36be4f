//! Storage folder of a cache server.
//!
//! ```text
//! FOLDER/ac/ab/<sha256 of an action>      an ActionResult
//! FOLDER/cas/cd/<sha256>                  bytes, uncompressed
//! FOLDER/cas/cd/<sha256>.<size>.zst       bytes, compressed
//! FOLDER/unfinished/                      files being written
//! FOLDER/lock                             held by the server
//! ```
//!
//! A file is renamed to its name when it is complete and on disk. Uses and writes both update the modification times,
//! from which the next server restores the LRU order. A compressed file is a series of zstd frames, each of [`FRAME`]
//! bytes: a reader keeps one of them in memory, and none between two reads.

mod index;
mod reader;
mod upload;

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use prometheus_client::metrics::counter::Counter;
use sha2::{Digest as _, Sha256};

use super::error::ServeError;
use index::Index;
use sheaf_foundation::Digest;

pub(crate) use index::{Key, Kind, Stored};
pub(crate) use reader::{Form, Reader};
pub(crate) use upload::{Upload, blocking};

/// Size of the pieces in which a blob is read, compressed and sent.
pub(crate) const FRAME: usize = 128 * 1024;

/// Maximum size of an entry of the action cache, in bytes.
pub(crate) const MAX_ACTION_RESULT: u64 = 1024 * 1024;

const UNFINISHED: &str = "unfinished";

/// Storage errors.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StorageError {
    #[error("the server's disk is full")]
    DiskFull,
    #[error("the server has too many files open: try again later")]
    Busy,
    #[error("more than the {limit} bytes that this server takes")]
    TooLarge { limit: u64 },
    #[error("the bytes have the SHA-256 {found}, not {expected}")]
    WrongDigest { expected: Digest, found: Digest },
    #[error("there are {found} bytes, not {expected}")]
    WrongSize { expected: u64, found: u64 },
    #[error("the bytes are not compressed with zstd, or not whole: {0}")]
    NotZstd(String),
    #[error("the body is no ActionResult: {0}")]
    NotAnActionResult(String),
    #[error("the server's disk fails: {0}")]
    Disk(io::Error),
}

impl From<io::Error> for StorageError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                Self::DiskFull
            }
            _ if has_too_many_files(&error) => Self::Busy,
            _ => Self::Disk(error),
        }
    }
}

/// True if the process or the machine has reached its limit of open files.
fn has_too_many_files(error: &io::Error) -> bool {
    // EMFILE and ENFILE of all Unixes; ERROR_TOO_MANY_OPEN_FILES of Windows.
    let codes: &[i32] = if cfg!(windows) { &[4] } else { &[24, 23] };
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

/// Size of the folder.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Totals {
    /// Number of action cache entries.
    pub actions: usize,
    /// Number of blobs.
    pub blobs: usize,
    /// Size on disk, in bytes.
    pub space: u64,
}

/// The folder. Cheap to clone: clones share the state.
#[derive(Clone)]
pub(crate) struct Storage {
    inner: Arc<Inner>,
}

struct Inner {
    folder: PathBuf,
    capacity: u64,
    max_blob: u64,
    index: Mutex<Index>,
    evictions: Counter,
    /// Keeps other servers out.
    _lock: File,
}

/// Number of attempts at the lock of a folder, and the delay between them.
const LOCK_TRIES: u32 = 10;
const LOCK_PAUSE: Duration = Duration::from_millis(100);

impl Storage {
    /// Opens the folder, creating it if needed, and indexes its files. Only one server may use it.
    pub fn open(folder: &Path, capacity: u64, max_blob: u64) -> Result<Self, ServeError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |source| ServeError::Folder { path, source }
        };
        for name in ["ac", "cas", UNFINISHED] {
            let path = folder.join(name);
            fs::create_dir_all(&path).map_err(at(&path))?;
        }
        let path = folder.join("lock");
        let lock = File::options().create(true).truncate(false).write(true).open(&path).map_err(at(&path))?;
        // A file system without locks is accepted.
        let mut tries = 0;
        while let Err(TryLockError::WouldBlock) = lock.try_lock() {
            // Threads of a server that has just stopped may still hold the lock.
            tries += 1;
            if tries == LOCK_TRIES {
                return Err(ServeError::FolderInUse { path: folder.to_owned() });
            }
            std::thread::sleep(LOCK_PAUSE);
        }
        let unfinished = folder.join(UNFINISHED);
        for file in fs::read_dir(&unfinished).map_err(at(&unfinished))?.flatten() {
            let _ = fs::remove_file(file.path());
        }
        let mut index = Index::default();
        let mut found = Vec::new();
        for kind in [Kind::Action, Kind::Blob] {
            let path = folder.join(folder_of(kind));
            list(&path, kind, &mut found).map_err(at(&path))?;
        }
        found.sort_by_key(|(_, _, used)| *used);
        for (key, stored, _) in found {
            // Both forms of one blob exist: the newer one is kept.
            if let Some(older) = index.insert(key, stored) {
                let _ = fs::remove_file(path_in(folder, &key, &older));
            }
        }
        let inner = Inner {
            folder: folder.to_owned(),
            capacity,
            max_blob: max_blob.min(capacity),
            index: Mutex::new(index),
            evictions: Counter::default(),
            _lock: lock,
        };
        let storage = Self { inner: inner.into() };
        storage.evict(&mut storage.index());
        Ok(storage)
    }

    fn index(&self) -> MutexGuard<'_, Index> {
        self.inner.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, key: &Key, stored: &Stored) -> PathBuf {
        path_in(&self.inner.folder, key, stored)
    }

    fn unfinished(&self) -> PathBuf {
        self.inner.folder.join(UNFINISHED)
    }

    /// Maximum size of a blob, in bytes.
    pub fn max_blob(&self) -> u64 {
        self.inner.max_blob
    }

    /// Maximum size of the folder on disk, in bytes.
    pub fn capacity(&self) -> u64 {
        self.inner.capacity
    }

    /// Number of evicted entries.
    pub fn evictions(&self) -> &Counter {
        &self.inner.evictions
    }

    /// Size of the folder.
    pub fn totals(&self) -> Totals {
        let index = self.index();
        let (actions, blobs) = index.counts();
        Totals { actions, blobs, space: index.space() }
    }

    /// True if a blob exists, with that size if one is given; marks it as used.
    pub fn has_blob(&self, digest: Digest, size: Option<u64>) -> bool {
        self.blob_size(digest).is_some_and(|found| size.is_none_or(|size| size == found))
    }

    /// Size of a blob; marks it as used.
    pub fn blob_size(&self, digest: Digest) -> Option<u64> {
        if is_empty(digest) {
            return Some(0);
        }
        self.index().get_used(&Key { kind: Kind::Blob, digest }).map(|stored| stored.size)
    }

    /// Opens an entry for reading. Blocking.
    pub fn open_blocking(&self, key: Key, form: Form) -> Result<Option<Reader>, StorageError> {
        if key.kind == Kind::Blob && is_empty(key.digest) {
            let stored = Stored { size: 0, length: 0, packed: false };
            return Ok(Some(Reader::new(self.clone(), key, stored, None, form)));
        }
        let Some(stored) = self.index().get_used(&key) else { return Ok(None) };
        match File::open(self.path(&key, &stored)) {
            Ok(file) => {
                // For the LRU order of the next server; a failure matters little.
                let _ = file.set_modified(SystemTime::now());
                Ok(Some(Reader::new(self.clone(), key, stored, Some(file), form)))
            }
            // Removed by another process, or evicted just now.
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                self.forget(&key, &stored);
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Renames a complete file to its name. Blocking.
    fn publish(&self, key: Key, stored: Stored, file: tempfile::NamedTempFile) -> Result<(), StorageError> {
        let path = self.path(&key, &stored);
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        // Under the lock, so that an eviction just before cannot remove this file.
        let mut index = self.index();
        file.persist(&path).map_err(|error| StorageError::from(error.error))?;
        if let Some(older) = index.insert(key, stored) {
            let older = self.path(&key, &older);
            if older != path {
                let _ = fs::remove_file(older);
            }
        }
        self.evict(&mut index);
        Ok(())
    }

    /// Evicts the least recently used entries until the rest fits.
    fn evict(&self, index: &mut Index) {
        while index.space() > self.inner.capacity {
            let Some(key) = index.oldest() else { break };
            if let Some(stored) = index.remove(&key) {
                // Open readers continue.
                let _ = fs::remove_file(self.path(&key, &stored));
                self.inner.evictions.inc();
            }
        }
    }

    /// Removes an entry whose file is gone, unless it has been rewritten.
    fn forget(&self, key: &Key, stored: &Stored) {
        let mut index = self.index();
        if index.get(key) == Some(*stored) && !self.path(key, stored).exists() {
            index.remove(key);
        }
    }

    /// Removes a damaged entry. Blocking.
    fn discard(&self, key: &Key) {
        let mut index = self.index();
        if let Some(stored) = index.remove(key) {
            let _ = fs::remove_file(self.path(key, &stored));
        }
    }
}

/// True if `digest` is that of the empty blob, which every cache has.
fn is_empty(digest: Digest) -> bool {
    digest.0[..] == Sha256::digest(b"")[..]
}

fn folder_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Action => "ac",
        Kind::Blob => "cas",
    }
}

fn path_in(folder: &Path, key: &Key, stored: &Stored) -> PathBuf {
    let hash = key.digest.to_string();
    let mut path = folder.join(folder_of(key.kind));
    path.push(&hash[..2]);
    path.push(if stored.packed { format!("{hash}.{}.zst", stored.size) } else { hash });
    path
}

/// Adds the entries of one kind, with the time of their last use. Files with other names are ignored.
fn list(folder: &Path, kind: Kind, found: &mut Vec<(Key, Stored, SystemTime)>) -> io::Result<()> {
    for shard in fs::read_dir(folder)? {
        let shard = shard?;
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for file in fs::read_dir(shard.path())? {
            let file = file?;
            let metadata = file.metadata()?;
            let name = file.file_name();
            let Some((digest, packed)) = name.to_str().and_then(parse) else { continue };
            if !metadata.is_file() || shard.file_name().to_str() != Some(&digest.to_string()[..2]) {
                continue;
            }
            let stored = Stored {
                size: packed.unwrap_or(metadata.len()),
                length: metadata.len(),
                packed: packed.is_some(),
            };
            found.push((Key { kind, digest }, stored, metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH)));
        }
    }
    Ok(())
}

/// The digest in a file's name, and the uncompressed size if it is compressed.
fn parse(name: &str) -> Option<(Digest, Option<u64>)> {
    let (hash, packed) = match name.strip_suffix(".zst") {
        None => (name, None),
        Some(rest) => {
            let (hash, size) = rest.split_once('.')?;
            (hash, Some(size.parse().ok()?))
        }
    };
    let digest: Digest = hash.parse().ok()?;
    (digest.to_string() == hash).then_some((digest, packed))
}
