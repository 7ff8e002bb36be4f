//! Staging folders of entries in the making.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// Age at which a staging folder counts as left behind on file systems without locks.
const ABANDONED: Duration = Duration::from_secs(24 * 60 * 60);

/// A staging folder, removed when dropped.
#[derive(Debug)]
pub(super) struct Staging {
    /// Held while the folder is in use.
    _lock: File,
    folder: TempDir,
}

impl Staging {
    /// A new staging folder of the store `folder`. Removes those of killed processes.
    pub(super) fn new(store: &Path) -> io::Result<Self> {
        let all = store.join("staging");
        fs::create_dir_all(&all)?;
        // A new folder is not seen before its lock is held.
        let guard = open(&store.join("lock"))?;
        let _ = guard.lock();
        remove_abandoned(&all);
        let folder = tempfile::Builder::new().prefix("").tempdir_in(&all)?;
        let lock = open(&folder.path().join("lock"))?;
        let _ = lock.lock();
        Ok(Self { _lock: lock, folder })
    }

    /// The path of the entry in the making; it does not exist yet.
    pub(super) fn entry(&self) -> PathBuf {
        self.folder.path().join("entry")
    }
}

fn open(path: &Path) -> io::Result<File> {
    File::options().create(true).truncate(false).write(true).open(path)
}

/// Removes the staging folders that no process holds.
fn remove_abandoned(all: &Path) {
    for entry in fs::read_dir(all).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_held = open(&path.join("lock")).is_ok_and(|lock| match lock.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) => true,
            Err(TryLockError::Error(_)) => !is_old(&path),
        });
        if !is_held {
            let _ = fs::remove_dir_all(path);
        }
    }
}

fn is_old(path: &Path) -> bool {
    let modified = fs::metadata(path).and_then(|metadata| metadata.modified());
    modified.is_ok_and(|time| SystemTime::now().duration_since(time).is_ok_and(|age| age > ABANDONED))
}
