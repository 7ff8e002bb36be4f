//! Installs the pinned compiler: fetch, verify, unpack, and only then move into place.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write};
use std::path::Path;

use tempfile::TempDir;

use crate::error::{InstallError, file_error};
use crate::fetch::{Fetch, discard};
use crate::locate::{self, MARKER, TOOLCHAINS, Toolchain};
use crate::progress::{Progress, Stage};
use crate::releases::Release;
use crate::source::Settings;
use crate::unpack::unpack;

/// Held while something is installed; the file stays, the lock goes with the process.
const LOCK: &str = ".lock";

/// What folders of unfinished installations are called.
const STAGING: &str = ".staging-";

/// What files of unfinished downloads are called, before a part of the hash that the whole must have. They are kept where a
/// network broke off or the process was killed.
const PARTIAL: &str = ".partial-";

/// Makes sure that the compiler pinned for this machine is installed under the data folder `home`, and tells where it
/// is. An installation that is complete already costs three look-ups in the file system.
///
/// Processes that install at the same time wait for each other. One that is killed leaves nothing that the next
/// one does not clear away.
pub fn install(home: &Path, settings: &Settings, progress: &dyn Progress) -> Result<Toolchain, InstallError> {
    let release = Release::host().ok_or(InstallError::UnsupportedPlatform {
        system: std::env::consts::OS,
        processor: std::env::consts::ARCH,
    })?;
    install_release(&release, home, settings, progress)
}

/// The same for a given release, whatever its platform.
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
                // Else the next attempt goes on with it.
                let spent = matches!(error, InstallError::Archive { .. } | InstallError::DiskFull { .. });
                if spent || fs::metadata(&wheel).is_ok_and(|wheel| wheel.len() == 0) {
                    let _ = fs::remove_file(&wheel);
                }
                Err(error)
            }
        }
    })
}

/// The name of the file with what was fetched of a wheel.
fn partial(release: &Release<'_>) -> String {
    format!("{PARTIAL}{}", release.sha256.get(..16).unwrap_or(release.sha256))
}

/// Installs a release whose verified files `fill` puts into the folder it is given, unless it is installed already.
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
    // Another process may have finished while this one waited.
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

/// Removes an installed release, or what is left of one. Whether there was anything.
pub fn remove(release: &Release<'_>, home: &Path, progress: &dyn Progress) -> Result<bool, InstallError> {
    let folder = locate::folder(release, home);
    let failed = |action, path: &Path, error| file_error(action, path, 0, error);
    if !folder.exists() {
        return Ok(false);
    }
    let toolchains = home.join(TOOLCHAINS);
    let _lock = lock(&toolchains.join(LOCK), release, progress)?;
    // Out of the way at once, so that nobody finds half of it; what a killed process leaves is cleared away by the next.
    let staging = tempfile::Builder::new().prefix(STAGING).tempdir_in(&toolchains);
    let staging = staging.map_err(|error| failed("make a folder in", &toolchains, error))?;
    fs::rename(&folder, staging.path().join("removed")).map_err(|error| failed("remove", &folder, error))?;
    staging.close().map_err(|error| failed("remove", &folder, error))?;
    Ok(true)
}

/// Takes the lock, waiting for another process if need be.
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

/// Removes what killed processes left, but for the beginning of this release's wheel. Only the holder of the lock makes
/// such folders and files, so none is in use.
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

/// Marks the unpacked content as complete and renames it to its place, both for good before this returns.
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
    // Something incomplete or damaged may be in the way; it goes where the staging folder takes it along.
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

/// Brings a folder's list of names to the disk, where the system can.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}
