//! Full verification of an installed compiler.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{InstallError, file_error};
use crate::locate::{self, MARKER, marker_text};
use crate::progress::{Progress, Stage};
use sheaf_target::Release;

/// A damaged file of an installation.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {cause}", path.display())]
pub struct Difference {
    /// The file.
    pub path: PathBuf,
    /// The defect.
    pub cause: String,
}

/// Hashes every file of an installed release and returns those that differ from the table. All files of a release that
/// is not installed count as missing.
pub fn verify(
    release: &Release<'_>,
    home: &Path,
    progress: &dyn Progress,
) -> Result<Vec<Difference>, InstallError> {
    let folder = locate::folder(release, home);
    let mut differences = Vec::new();
    let mut differs = |path: PathBuf, cause: String| differences.push(Difference { path, cause });
    progress.begin(Stage::Verify, release.wheel, release.members().iter().map(|member| member.size).sum());
    let marker = folder.join(MARKER);
    match fs::read(&marker) {
        Ok(text) if text == marker_text(release).as_bytes() => {}
        Ok(_) => differs(marker, "it is not the marker of this release".to_owned()),
        Err(error) if is_absent(&error) => differs(marker, "it is missing".to_owned()),
        Err(error) => return Err(file_error("read", &marker, 0, error)),
    }
    for member in release.members() {
        let path = folder.join(member.file_name());
        match hash(&path, progress) {
            Ok((size, _)) if size != member.size => {
                differs(path, format!("it has {size} bytes instead of {}", member.size));
            }
            Ok((_, sha256)) if sha256 != member.sha256 => {
                differs(path, format!("its SHA-256 is {sha256} instead of {}", member.sha256));
            }
            Ok(_) => {}
            Err(error) if is_absent(&error) => {
                differs(path, "it is missing".to_owned());
            }
            Err(error) => return Err(file_error("read", &path, 0, error)),
        }
    }
    progress.finished(Stage::Verify);
    Ok(differences)
}

/// True if the file or its folder does not exist.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Size and SHA-256 of a file.
fn hash(path: &Path, progress: &dyn Progress) -> io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    let (mut hasher, mut size, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 20]);
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            return Ok((size, hex::encode(hasher.finalize())));
        }
        hasher.update(&buffer[..count]);
        size += count as u64;
        progress.advance(count as u64);
    }
}
