//! Reading what a cache holds, without trust.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::Path;

use crate::digest::Digest;
use crate::miss::Miss;

/// The bytes of the file at `path`, which is a regular one of at most `limit` bytes.
pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let size = regular_file_size(path)?;
    if size > limit {
        let message = format!("it has {size} bytes, more than the {limit} that are expected at most");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    read(path, limit)
}

/// The bytes of the file at `path`, if they are `size` many and have this digest.
pub(crate) fn read_verified(path: &Path, size: u64, digest: &Digest) -> Result<Vec<u8>, Miss> {
    let unreadable = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Miss::ContentMissing { path: path.into() },
        _ => Miss::ContentUnreadable { path: path.into(), cause: error.to_string() },
    };
    let found = regular_file_size(path).map_err(unreadable)?;
    if found != size {
        return Err(Miss::ContentSize { path: path.into(), expected: size, found });
    }
    let bytes = read(path, size).map_err(unreadable)?;
    match Digest::of(&bytes) {
        found if found == *digest => Ok(bytes),
        found => Err(Miss::ContentDigest { path: path.into(), expected: *digest, found }),
    }
}

/// The size in bytes of the file at `path`. Links are followed, since build tools lay out their folders with them. Pipes
/// and devices are refused, since opening one could block for ever.
fn regular_file_size(path: &Path) -> io::Result<u64> {
    let metadata = fs::metadata(path)?;
    if metadata.is_file() { Ok(metadata.len()) } else { Err(io::Error::other("it is not a regular file")) }
}

fn read(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(limit).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
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
