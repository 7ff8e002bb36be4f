//! `__sheaf__/`: compiled programs next to their source, distributed with it.
//!
//! ```text
//! __sheaf__/
//! ├── manifest.json              what there is; a VMFB counts only when it is listed here with its SHA-256
//! ├── forward.cuda.vmfb          the file names are for people: <function>[-vag].<device>.vmfb,
//! ├── loss-vag.cuda.vmfb
//! ├── loss-vag-3f9a01c2.cuda.vmfb    with a hash where the name is taken
//! └── .lock                      held while the folder is written
//! ```
//!
//! Only folders owned by the user are used ([`Guard`]): no links, and no folder created by another user.
//!
//! The manifest is untrusted: a file name that could lead out of the folder is refused, and only bytes with the
//! recorded SHA-256 are returned.
//!
//! Writers are serialised by the lock and merge with the manifest on disk. Readers take no lock, since files are
//! replaced atomically. Both files of a recording are complete on disk before the first is renamed, the VMFB first. A
//! process killed between the two renames leaves a VMFB that does not match its older entry: a miss, repaired by the
//! next recording.

use std::collections::HashSet;
use std::fs::{self, File, Metadata};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::action::{Action, ActionKey};
use crate::content;
use crate::file_name;
use crate::guard::Guard;
use crate::manifest::{Entry, Manifest, Specialisation};
use crate::miss::{self, Lookup, Miss};
use sheaf_foundation::Owners;
use sheaf_foundation::atomic::{self, Staged, WriteError};

/// The name of the file that lists a folder's entries.
pub const MANIFEST_FILE: &str = "manifest.json";
/// File that is held while a folder is written.
pub const LOCK_FILE: &str = ".lock";

/// Maximum wait for other writers of the folder.
const PATIENCE: Duration = Duration::from_secs(30);

/// A failed recording, which leaves the folder unchanged. The message gives the path and the cause;
/// [`remedy`](Self::remedy) the fix.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    /// A file could not be written.
    #[error(transparent)]
    Write(#[from] WriteError),
    /// Written by a newer Sheaf.
    #[error("{path} is written in format {found}, but this Sheaf reads format {known}")]
    Newer {
        /// The manifest.
        path: PathBuf,
        /// The version found.
        found: u64,
        /// The supported version.
        known: u64,
    },
    /// Not owned by the user.
    #[error("{line}")]
    Foreign {
        /// One line: the ignored file or setting, the reason and the remedy.
        line: String,
    },
    /// The manifest cannot be read, and may be intact.
    #[error("{path} cannot be read: {cause}")]
    Unreadable {
        /// The manifest.
        path: PathBuf,
        /// The operating system's error.
        cause: String,
    },
}

impl FolderError {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> Option<&'static str> {
        match self {
            Self::Write(error) => Some(error.remedy()),
            Self::Newer { .. } => Some(miss::UPDATE),
            Self::Unreadable { .. } => Some(miss::MAKE_READABLE),
            // Part of the line.
            Self::Foreign { .. } => None,
        }
    }
}

/// The artifact folder of one program or package.
#[derive(Debug)]
pub struct ArtifactFolder {
    folder: PathBuf,
    guard: Guard,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The manifest as last read or written.
    manifest: Option<Manifest>,
    /// Entries found or recorded in this run: part of the current program.
    in_use: HashSet<ActionKey>,
}

impl ArtifactFolder {
    /// The artifact folder at `folder`, created by the first [`record`](Self::record).
    pub fn open(folder: impl Into<PathBuf>) -> Self {
        Self::guarded(folder, Guard::default())
    }

    /// Like [`open`](Self::open), with a guard checked at each use: while it refuses the folder, nothing is read or
    /// written.
    pub fn guarded(folder: impl Into<PathBuf>, guard: Guard) -> Self {
        Self { folder: folder.into(), guard, state: Mutex::default() }
    }

    /// The folder that is used only while it is of these owners.
    pub fn owned(folder: impl Into<PathBuf>, owners: Owners) -> Self {
        let refusal = move |path: &Path, metadata: &Metadata| {
            let is_list = path.file_name().is_some_and(|name| name == MANIFEST_FILE);
            let foreign =
                if is_list { owners.foreign(path, metadata) } else { owners.foreign_folder(path, metadata) };
            foreign.map(|foreign| foreign.to_string())
        };
        Self::guarded(folder, Guard::new(refusal))
    }

    /// The folder's path.
    pub fn path(&self) -> &Path {
        &self.folder
    }

    /// The compiled program with this key, or with it but for a tuning record, its digest checked.
    pub fn find(&self, key: &ActionKey) -> Lookup<Entry> {
        let mut state = self.state();
        // The cached manifest usually suffices; on a miss, another process may have written since.
        if let Some(manifest) = &state.manifest
            && let Ok(hit) = self.load(manifest, key)
        {
            return state.hit(hit);
        }
        state.manifest = None;
        let loaded = self.manifest().and_then(|manifest| {
            let manifest = state.manifest.insert(manifest);
            self.load(manifest, key)
        });
        match loaded {
            Ok(hit) => state.hit(hit),
            Err(miss) => Lookup::Miss(miss),
        }
    }

    /// Records the program that `action` compiled `specialisation` to, by the attempt at this position, and returns its entry.
    ///
    /// An older entry for the same calls on the same kind of machine (function, transform, device, CPU, types of the
    /// arguments, statics) is removed with its file, unless it too was found or recorded in this run: the sources have
    /// changed since. An error leaves the folder unchanged and must not fail the build.
    pub fn record(
        &self,
        action: &Action,
        specialisation: Specialisation,
        bytes: &[u8],
        alternative: usize,
    ) -> Result<Entry, FolderError> {
        let mut state = self.state();
        self.check_owner()?;
        fs::create_dir_all(&self.folder).map_err(WriteError::at(&self.folder))?;
        // Another user may have created the folder meanwhile.
        self.check_owner()?;
        let _lock = self.lock()?;
        // Under the lock there are no other writers: unfinished files are of killed processes.
        atomic::remove_unfinished(&self.folder, Duration::ZERO);

        let mut manifest = self.read_to_replace()?;
        let mut entry = Entry::new(action, specialisation, bytes, alternative);
        let (useless, kept): (Vec<_>, Vec<_>) = manifest.entries.into_iter().partition(|older| {
            let replaced = entry.replaces(older) && !state.in_use.contains(&older.key);
            older.key == entry.key || replaced || !file_name::is_plain(&older.file)
        });
        entry.file = free_file_name(&entry, &kept);
        manifest.entries = kept;
        manifest.entries.push(entry.clone());

        let path = self.manifest_path();
        let json = manifest.to_json().map_err(io::Error::from).map_err(WriteError::at(&path))?;
        let content = Staged::write(&self.folder.join(&entry.file), bytes)?;
        let listing = Staged::write(&path, &json)?;
        content.publish()?;
        listing.publish()?;

        for older in useless {
            let is_needed = manifest.entries.iter().any(|entry| file_name::same(&entry.file, &older.file));
            if !is_needed && file_name::is_plain(&older.file) {
                // On failure, the file only takes up space.
                let _ = fs::remove_file(self.folder.join(&older.file));
            }
        }
        state.manifest = Some(manifest);
        state.in_use.insert(entry.key);
        Ok(entry)
    }

    /// True if the folder lists a program with this key; its file is not checked.
    pub fn lists(&self, key: &ActionKey) -> bool {
        let mut state = self.state();
        if state.manifest.is_none() {
            state.manifest = self.manifest().ok();
        }
        state.manifest.as_ref().is_some_and(|manifest| manifest.entry(key).is_some())
    }

    /// All entries listed in the folder; their files are not checked. Empty if the folder does not exist.
    pub fn entries(&self) -> Result<Vec<Entry>, Miss> {
        match self.manifest() {
            Ok(manifest) => Ok(manifest.entries),
            Err(Miss::Absent { .. }) => Ok(Vec::new()),
            Err(miss) => Err(miss),
        }
    }

    fn load(&self, manifest: &Manifest, key: &ActionKey) -> Result<(Vec<u8>, Entry), Miss> {
        let entry = manifest.entry(key).ok_or_else(|| Miss::Absent { folder: self.folder.clone() })?;
        if !file_name::is_plain(&entry.file) {
            return Err(Miss::UnsafeName { path: self.manifest_path(), name: entry.file.clone() });
        }
        let bytes = content::read_verified(&self.folder.join(&entry.file), entry.size, &entry.digest)?;
        Ok((bytes, entry.clone()))
    }

    /// The manifest on disk.
    fn manifest(&self) -> Result<Manifest, Miss> {
        self.guard.check_folder(&self.folder)?;
        Manifest::read(&self.manifest_path(), &self.guard)
    }

    /// Errors if the guard refuses the folder.
    fn check_owner(&self) -> Result<(), FolderError> {
        self.guard.check_folder(&self.folder).map_err(|miss| FolderError::Foreign { line: miss.to_string() })
    }

    /// The manifest to be replaced; a damaged one counts as empty.
    fn read_to_replace(&self) -> Result<Manifest, FolderError> {
        match self.manifest() {
            Ok(manifest) => Ok(manifest),
            Err(Miss::Foreign { line }) => Err(FolderError::Foreign { line }),
            Err(Miss::RecordVersion { path, found, known }) if found > known => {
                Err(FolderError::Newer { path, found, known })
            }
            Err(Miss::RecordUnreadable { path, cause }) => Err(FolderError::Unreadable { path, cause }),
            Err(_) => Ok(Manifest::default()),
        }
    }

    /// Waits until no other process writes the folder: milliseconds, unless one is stopped. Dropping the file releases
    /// the lock.
    fn lock(&self) -> Result<File, WriteError> {
        let path = self.folder.join(LOCK_FILE);
        let file = content::open_lock(&path).map_err(|error| {
            // An error at the lock is reported as one of the folder, unless another kind of file is in the lock's
            // place.
            let is_taken = error.kind() == io::ErrorKind::AlreadyExists;
            WriteError::at(if is_taken { &path } else { &self.folder })(error)
        })?;
        match content::lock_within(&file, PATIENCE) {
            // Without locks, two concurrent writers may lose an entry, which is then recompiled.
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(file),
            locked => locked.map(|()| file).map_err(WriteError::at(&self.folder)),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is one assignment, so a poisoned lock holds no half-done change.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn manifest_path(&self) -> PathBuf {
        self.folder.join(MANIFEST_FILE)
    }
}

impl State {
    fn hit(&mut self, (bytes, entry): (Vec<u8>, Entry)) -> Lookup<Entry> {
        self.in_use.insert(entry.key);
        Lookup::Hit { bytes, entry }
    }
}

/// The first name for `entry` that none of the `others` has.
fn free_file_name(entry: &Entry, others: &[Entry]) -> String {
    let mut names = file_name::candidates(&entry.function, &entry.transform, &entry.device, &entry.key);
    let is_free = |name: &String| !others.iter().any(|other| file_name::same(&other.file, name));
    // The last candidate holds the whole key, so it is unique.
    let free = names.iter().position(is_free).unwrap_or(names.len() - 1);
    names.swap_remove(free)
}
