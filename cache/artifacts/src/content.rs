//! Reading untrusted cache contents.

use std::fs::{File, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::miss::Miss;
use sheaf_foundation::Digest;

/// Interval between attempts to lock.
const PAUSE: Duration = Duration::from_millis(10);

/// The bytes of the regular file at `path`, of at most `limit` bytes.
pub fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    read_all(file, &metadata, limit)
}

/// The bytes of an opened file of at most `limit` bytes.
pub fn read_all(file: File, metadata: &Metadata, limit: u64) -> io::Result<Vec<u8>> {
    let size = metadata.len();
    if size > limit {
        let message = format!("it has {size} bytes, more than the {limit} that are expected at most");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    read(file, limit)
}

/// The bytes of the file at `path`, if size and digest match.
pub fn read_verified(path: &Path, size: u64, digest: &Digest) -> Result<Vec<u8>, Miss> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Miss::ContentMissing { path: path.into() },
        _ => Miss::ContentUnreadable { path: path.into(), cause: error.to_string() },
    };
    let (file, metadata) = open(path).map_err(unreadable)?;
    let found = metadata.len();
    if found != size {
        return Err(Miss::ContentSize { path: path.into(), expected: size, found });
    }
    let bytes = read(file, size).map_err(unreadable)?;
    match Digest::of(&bytes) {
        found if found == *digest => Ok(bytes),
        found => Err(Miss::ContentDigest { path: path.into(), expected: *digest, found }),
    }
}

/// Opens the regular file at `path`. Links are followed, since build tools lay out their folders with them. Pipes and
/// devices are refused without blocking.
pub fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK);
    regular(options.open(path)?)
}

/// Opens the regular file at `path` for writing, creating it if needed. Links are refused: they may lead to any file of
/// the user.
pub fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, NONBLOCK | NOFOLLOW);
    let opened = options.open(path).and_then(regular);
    opened.map(|(file, _)| file).map_err(|error| match std::fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            io::Error::new(io::ErrorKind::AlreadyExists, "it is not a regular file")
        }
        _ => error,
    })
}

/// Waits at most `patience` for the lock of a file: its holder may be stopped.
pub fn lock_within(file: &File, patience: Duration) -> io::Result<()> {
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(error)) => return Err(error),
            Err(TryLockError::WouldBlock) if began.elapsed() >= patience => {
                let text = format!("another process has kept the lock for {patience:?}; is one stopped?");
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
        }
    }
}

/// Checks the opened file rather than its path, which may have changed since.
fn regular(file: File) -> io::Result<(File, Metadata)> {
    let metadata = file.metadata()?;
    if metadata.is_file() { Ok((file, metadata)) } else { Err(io::Error::other("it is not a regular file")) }
}

#[cfg(unix)]
const NONBLOCK: i32 = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
#[cfg(unix)]
const NOFOLLOW: i32 = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();

fn read(file: File, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    /// A stopped process that holds the lock does not block others forever.
    #[test]
    fn a_lock_is_waited_for_no_longer_than_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(".lock");
        let (held, file) = (super::open_lock(&path).unwrap(), super::open_lock(&path).unwrap());
        held.lock().unwrap();
        let error = super::lock_within(&file, std::time::Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::TimedOut);
        assert!(error.to_string().contains("another process has kept the lock for 30ms"), "{error}");
        drop(held);
        super::lock_within(&file, std::time::Duration::ZERO).unwrap();
    }

    use std::fs;

    use super::*;

    #[test]
    fn only_the_recorded_bytes_are_handed_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let digest = Digest::of(b"bytes");
        let get = || read_verified(&path, 5, &digest);

        assert_eq!(get(), Err(Miss::ContentMissing { path: path.clone() }));
        fs::write(&path, b"bytes").unwrap();
        assert_eq!(get(), Ok(b"bytes".to_vec()));
        fs::write(&path, b"byte").unwrap();
        assert_eq!(get(), Err(Miss::ContentSize { path: path.clone(), expected: 5, found: 4 }));
        fs::write(&path, b"Bytes").unwrap();
        let found = Digest::of(b"Bytes");
        assert_eq!(get(), Err(Miss::ContentDigest { path: path.clone(), expected: digest, found }));
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(matches!(get(), Err(Miss::ContentUnreadable { .. })));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_to_devices() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"bytes").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert!(read_verified(&link, 5, &Digest::of(b"bytes")).is_ok());
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &link).unwrap();
        let get = read_verified(&link, 0, &Digest::of(b""));
        assert!(matches!(get, Err(Miss::ContentUnreadable { .. })));
    }

    #[test]
    fn a_record_of_absurd_size_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, b"bytes").unwrap();
        assert_eq!(read_limited(&path, 5).unwrap(), b"bytes");
        insta::assert_snapshot!(read_limited(&path, 4).unwrap_err(), @"it has 5 bytes, more than the 4 that are expected at most");
    }
}
