//! Folders of cached repositories: their lock, their creation, and leftovers of killed processes.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use gix::create;

use super::error::GitError;
use super::{Address, Progress};

/// Maximum size of a single object in memory, in bytes: declared sizes are not trusted.
const OBJECT: &str = "gitoxide.objects.allocLimit=536870912";

/// Interval at which a lock is polled.
const PAUSE: Duration = Duration::from_millis(25);

/// Options that read the repository's own configuration and nothing else, and follow no replacements of objects.
pub(super) fn isolated() -> gix::open::Options {
    gix::open::Options::isolated()
        .open_path_as_is(true)
        .config_overrides([OBJECT, "core.useReplaceRefs=false"])
}

/// The lock of a repository's folder; released when dropped, or when the process ends.
#[derive(Debug)]
pub(super) struct Lock(#[expect(dead_code, reason = "dropping the file releases the lock")] Option<File>);

/// Waits for the lock of `folder`, created if needed. Without locks in the file system there is no exclusion.
pub(super) fn lock(
    folder: &Path,
    address: &Address,
    patience: Duration,
    interrupt: &AtomicBool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Lock, GitError> {
    let failed = |source| GitError::Folder { path: folder.into(), source };
    fs::create_dir_all(folder).map_err(failed)?;
    let file =
        File::options().create(true).truncate(false).write(true).open(folder.join("lock")).map_err(failed)?;
    let begun = Instant::now();
    let mut told = false;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Lock(Some(file))),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(_)) => return Ok(Lock(None)),
        }
        if interrupt.load(Ordering::Relaxed) {
            return Err(GitError::Interrupted { address: address.clone() });
        }
        if begun.elapsed() >= patience {
            return Err(GitError::Locked { address: address.clone(), seconds: patience.as_secs() });
        }
        if !told {
            told = true;
            progress(Progress::Waiting);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Makes an empty bare repository at `path` unless there is a sound one, and removes leftovers. The caller has the
/// lock.
pub(super) fn open_or_create(path: &Path) -> Result<(), GitError> {
    if open(path).is_ok() {
        remove_leftovers(path);
        return Ok(());
    }
    let failed = |source| GitError::Folder { path: path.into(), source };
    remove(path).map_err(failed)?;
    let parent = path.parent().unwrap_or(Path::new("."));
    let staged = tempfile::Builder::new().prefix("new-").tempdir_in(parent).map_err(failed)?;
    let bare = staged.path().join("git");
    let damaged = |error: gix::Error| GitError::damaged(path, &error);
    create::into(&bare, create::Kind::Bare, create::Options::default()).map_err(damaged)?;
    // Samples that are never run.
    remove(&bare.join("hooks")).map_err(failed)?;
    fs::rename(&bare, path).map_err(failed)?;
    open(path).map(|_| ()).map_err(damaged)
}

/// Opens the bare repository at `path`.
pub(super) fn open(path: &Path) -> Result<gix::Repository, gix::Error> {
    // Reads nothing outside it, whoever owns it.
    isolated().with(gix::sec::Trust::Full).open(path).map(|repository| repository.to_thread_local())
}

/// Removes files that a killed process has left. The caller has the lock, so no other process uses them.
fn remove_leftovers(path: &Path) {
    for folder in [path.to_owned(), path.join("refs/sheaf"), path.join("objects/pack")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.path();
            let is_lock = file.extension().is_some_and(|kind| kind == "lock" || kind == "keep");
            // Names of gix's temporary files.
            if is_lock || entry.file_name().to_string_lossy().starts_with(".tmp") {
                let _ = fs::remove_file(file);
            }
        }
    }
    for entry in path.parent().and_then(|parent| fs::read_dir(parent).ok()).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| name.starts_with("new-")) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Number of packs of the repository at `path`.
pub(super) fn packs(path: &Path) -> usize {
    let entries = fs::read_dir(path.join("objects/pack")).into_iter().flatten().flatten();
    entries.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "pack")).count()
}

/// Puts the repository at `new` in the place of the one at `path`.
pub(super) fn replace(path: &Path, new: &Path) -> Result<(), GitError> {
    let mut old: PathBuf = new.into();
    old.as_mut_os_string().push("-old");
    let swap = || {
        fs::rename(path, &old)?;
        fs::rename(new, path)?;
        remove(&old)
    };
    swap().map_err(|source| GitError::Folder { path: path.into(), source })
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
