//! Verification: each file is as the manifest lists it, and nothing else is there.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};
use sheaf_foundation::{Digest, PublicKey};

use crate::manifest::{BundledFile, MANIFEST, Manifest, ManifestError, SIGNATURE, Signature};

/// A difference between a bundle and its manifest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A listed file is not there.
    Missing(String),
    /// A file has other bytes.
    Altered(String),
    /// A file is not listed, or is no plain file.
    Unlisted(String),
    /// The manifest is not what was signed.
    Signature(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing(path) => write!(f, "{path} is missing"),
            Fault::Altered(path) => write!(f, "{path} has been altered"),
            Fault::Unlisted(path) => write!(f, "{path} is not part of the bundle"),
            Fault::Signature(why) => write!(f, "{MANIFEST} is not what was signed: {why}"),
        }
    }
}

/// The manifest of a bundle, its signer if it is signed, and all differences.
///
/// # Errors
///
/// It has no usable manifest, or a folder cannot be read.
pub fn verify(folder: &Path) -> Result<(Manifest, Option<PublicKey>, Vec<Fault>), ManifestError> {
    let path = folder.join(MANIFEST);
    let unreadable = |error| ManifestError::Unreadable { path: path.clone(), error };
    let bytes = std::fs::read(&path).map_err(unreadable)?;
    let manifest = Manifest::parse(&path, &bytes)?;
    let mut faults = Vec::new();
    let signer = match std::fs::read(folder.join(SIGNATURE)) {
        Ok(text) => match signer(&bytes, &text) {
            Ok(key) => Some(key),
            Err(why) => {
                faults.push(Fault::Signature(why));
                None
            }
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(ManifestError::Unreadable { path: folder.join(SIGNATURE), error }),
    };
    let found = files_in(folder).map_err(|error| ManifestError::Unreadable { path: folder.into(), error })?;
    let mut found: BTreeMap<String, BundledFile> =
        found.into_iter().map(|file| (file.path.clone(), file)).collect();
    for listed in &manifest.files {
        match found.remove(&listed.path) {
            None => faults.push(Fault::Missing(listed.path.clone())),
            Some(file) if (file.size, file.sha256) != (listed.size, listed.sha256) => {
                faults.push(Fault::Altered(listed.path.clone()));
            }
            Some(_) => {}
        }
    }
    faults.extend(found.into_keys().map(Fault::Unlisted));
    Ok((manifest, signer, faults))
}

fn signer(manifest: &[u8], text: &[u8]) -> Result<PublicKey, String> {
    let Signature { key, signature } =
        serde_json::from_slice(text).map_err(|error| format!("{SIGNATURE} is damaged: {error}"))?;
    key.verify(manifest, &signature).map_err(|error| error.to_string())?;
    Ok(key)
}

/// The files in a folder and those below, without the manifest and its signature, sorted by path. A link is listed as an empty
/// file of its name: no bundle has one.
///
/// # Errors
///
/// One cannot be read.
pub fn files_in(folder: &Path) -> io::Result<Vec<BundledFile>> {
    let mut files = Vec::new();
    collect(folder, "", &mut files)?;
    files.sort_unstable_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

fn collect(folder: &Path, prefix: &str, files: &mut Vec<BundledFile>) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name();
        let path = format!("{prefix}{}", name.to_string_lossy());
        let kind = entry.file_type()?;
        if kind.is_dir() {
            collect(&entry.path(), &format!("{path}/"), files)?;
        } else if kind.is_file() {
            if path != MANIFEST && path != SIGNATURE {
                let (size, sha256) = digest(&entry.path())?;
                files.push(BundledFile { path, size, sha256, executable: is_executable(&entry.metadata()?) });
            }
        } else {
            files.push(BundledFile { path, size: 0, sha256: Digest::of(b""), executable: false });
        }
    }
    Ok(())
}

/// Length and digest of a file, which may be larger than the memory.
fn digest(path: &Path) -> io::Result<(u64, Digest)> {
    let mut hash = Sha256::new();
    let size = io::copy(&mut File::open(path)?, &mut Hashing(&mut hash))?;
    Ok((size, Digest(hash.finalize().into())))
}

struct Hashing<'a>(&'a mut Sha256);

impl io::Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(unix)]
fn is_executable(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    metadata.permissions().mode() & 0o111 != 0
}

#[cfg(not(unix))]
fn is_executable(_: &std::fs::Metadata) -> bool {
    false
}
