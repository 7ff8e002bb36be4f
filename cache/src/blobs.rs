//! Content-addressed files, named by SHA-256 and compressed with Zstandard.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use crate::files;
use crate::remote::Address;
use sheaf_artifacts::Miss;
use sheaf_artifacts::content;
use sheaf_foundation::Digest;
use sheaf_foundation::atomic::{self, WriteError};

/// Zstandard's own default: compresses VMFBs to a third, in a few milliseconds.
const LEVEL: i32 = 3;
/// Age from which a blob without a claim is no longer assumed to be about to get one.
const SETTLED: Duration = Duration::from_secs(60 * 60);

/// A folder of blobs, in 256 subfolders by the first byte of their digests.
#[derive(Debug, Clone)]
pub(crate) struct Blobs {
    folder: PathBuf,
}

/// An entry of a listing of blobs.
pub(crate) struct Stored {
    pub digest: Digest,
    /// Size on disk, in bytes.
    pub bytes: u64,
    modified: SystemTime,
}

impl Stored {
    /// True if its writer has had enough time to write the claim too.
    pub fn is_settled(&self) -> bool {
        self.modified.elapsed().is_ok_and(|age| age >= SETTLED)
    }
}

impl Blobs {
    pub fn new(folder: PathBuf) -> Self {
        Self { folder }
    }

    pub fn path(&self, digest: &Digest) -> PathBuf {
        self.folder.join(digest.short(2)).join(format!("{digest}.zst"))
    }

    /// The bytes of a blob, their size and digest checked; decompression stops at the expected size.
    pub fn read(&self, blob: &Address) -> Result<Vec<u8>, Miss> {
        let path = self.path(&blob.digest);
        let unreadable = |error: io::Error| match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
                Miss::ContentMissing { path: path.clone() }
            }
            io::ErrorKind::InvalidData => {
                Miss::ContentDamaged { path: path.clone(), cause: error.to_string() }
            }
            _ => Miss::ContentUnreadable { path: path.clone(), cause: error.to_string() },
        };
        let damaged = |cause: &dyn std::fmt::Display| Miss::ContentDamaged {
            path: path.clone(),
            cause: cause.to_string(),
        };
        // Upper bound of Zstandard's expansion of incompressible input.
        let most = blob.size.saturating_add(blob.size / 128 + 1024);
        let packed = content::read_limited(&path, most).map_err(unreadable)?;
        let mut bytes = Vec::with_capacity(blob.size.min(1 << 30) as usize);
        let unpacker = zstd::Decoder::with_buffer(packed.as_slice()).map_err(|error| damaged(&error))?;
        unpacker
            .take(blob.size.saturating_add(1))
            .read_to_end(&mut bytes)
            .map_err(|error| damaged(&error))?;
        if bytes.len() as u64 != blob.size {
            let found = bytes.len() as u64;
            return Err(Miss::ContentSize { path, expected: blob.size, found });
        }
        match Digest::of(&bytes) {
            found if found == blob.digest => Ok(bytes),
            found => Err(Miss::ContentDigest { path, expected: blob.digest, found }),
        }
    }

    /// Writes a blob unless it exists; returns true if written. A damaged existing blob is detected when it is read.
    pub fn write(&self, blob: &Address, bytes: &[u8]) -> Result<bool, WriteError> {
        let path = self.path(&blob.digest);
        // Opened rather than stat'ed, since a network file system may cache a file that another machine has removed.
        match File::options().write(true).open(&path) {
            Ok(file) => {
                // Resets its age: its claim is about to be written.
                let _ = file.set_modified(SystemTime::now());
                return Ok(false);
            }
            // On a read-only file system, writing would fail anyway.
            Err(error) if error.kind() != io::ErrorKind::NotFound && path.is_file() => return Ok(false),
            Err(_) => {}
        }
        if let Some(shard) = path.parent() {
            atomic::remove_unfinished(shard, files::ABANDONED);
        }
        let packed = zstd::encode_all(bytes, LEVEL).map_err(WriteError::at(&path))?;
        if atomic::create(&path, &packed)? {
            return Ok(true);
        }
        if File::open(&path).is_ok() {
            return Ok(false);
        }
        // Cached by the file system, but removed.
        atomic::write(&path, &packed).map(|()| true)
    }

    pub fn remove(&self, digest: &Digest) {
        // On failure, the file only takes up space.
        let _ = fs::remove_file(self.path(digest));
    }

    /// Removes unfinished files of killed processes.
    pub fn tidy(&self) {
        files::tidy(&self.folder);
    }

    /// All files, blobs or not, with their sizes on disk.
    pub fn files(&self) -> Vec<(PathBuf, u64)> {
        files::all(&self.folder)
    }

    /// All blobs, unordered.
    pub fn list(&self) -> Vec<Stored> {
        files::map(&self.folder, |path, metadata| {
            let name = path.file_name()?.to_str()?.strip_suffix(".zst")?;
            let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            Some(Stored { digest: name.parse().ok()?, bytes: metadata.len(), modified })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_of_any_claimed_size_is_read_or_missed() {
        let folder = tempfile::tempdir().unwrap();
        let blobs = Blobs::new(folder.path().into());
        let blob = Address::of(b"bytes");
        blobs.write(&blob, b"bytes").unwrap();
        assert_eq!(blobs.read(&blob), Ok(b"bytes".to_vec()));
        for size in [0, 4, 6, u64::MAX - 1, u64::MAX] {
            let path = blobs.path(&blob.digest);
            let found = blob.size.min(size.saturating_add(1));
            assert_eq!(
                blobs.read(&Address { size, ..blob }),
                Err(Miss::ContentSize { path, expected: size, found })
            );
        }
    }
}
