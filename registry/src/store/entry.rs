//! Entries of the store.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::thread;

use super::export::{export, refused};
use super::staging::Staging;
use super::{StoreError, stamp};
use crate::git::Commit;
use crate::tree::{self, Limits, TreeError, TreeHash};

/// Maximum number of threads that check entries.
const CHECKERS: usize = 8;

/// The store of package sources.
#[derive(Debug, Clone)]
pub struct SourceStore {
    pub(super) folder: PathBuf,
    pub(super) limits: Limits,
}

/// An inserted package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inserted {
    /// The hash of its tree.
    pub hash: TreeHash,
    /// The folder with its files.
    pub path: PathBuf,
}

impl SourceStore {
    /// The store in `folder`, such as `<cache>/sources`, created by the first insertion.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), limits: Limits::default() }
    }

    /// The same store with other limits for insertions.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// The folder with the files of the tree `hash`; `None` if it is not in the store.
    ///
    /// Compares the stamp, and hashes the files only if it does not match. Files that have changed are moved away, and are
    /// an error.
    pub fn get(&self, hash: &TreeHash) -> Result<Option<PathBuf>, StoreError> {
        let entry = self.entry(hash);
        let tree = entry.join("tree");
        if stamp::matches(&entry) {
            return Ok(Some(tree));
        }
        self.verify(hash)
    }

    /// The trees of all entries, which are not checked.
    pub fn trees(&self) -> HashSet<TreeHash> {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        entries.filter_map(|entry| TreeHash::from_hex(entry.file_name().to_str()?)).collect()
    }

    /// The folders of those trees that are in the store as they were inserted, checked in several threads: most of the time
    /// goes into asking the operating system for the state of each file.
    pub fn get_all(&self, hashes: &[TreeHash]) -> HashMap<TreeHash, PathBuf> {
        let get = |hash: &TreeHash| Some((*hash, self.get(hash).ok()??));
        let threads = thread::available_parallelism().map_or(1, NonZero::get).min(CHECKERS);
        let parts: Vec<_> = hashes.chunks(hashes.len().div_ceil(threads).max(1)).collect();
        let Some((own, others)) = parts.split_first() else { return HashMap::new() };
        thread::scope(|scope| {
            let others: Vec<_> = others
                .iter()
                .map(|part| scope.spawn(move || part.iter().filter_map(get).collect::<Vec<_>>()))
                .collect();
            let mut found: HashMap<_, _> = own.iter().filter_map(get).collect();
            // Entries that a panicked thread had to check count as missing, and are fetched.
            found.extend(others.into_iter().filter_map(|thread| thread.join().ok()).flatten());
            found
        })
    }

    /// As [`get`](Self::get), but hashes the files always.
    pub fn verify(&self, hash: &TreeHash) -> Result<Option<PathBuf>, StoreError> {
        let entry = self.entry(hash);
        let tree = entry.join("tree");
        match fs::symlink_metadata(&entry) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            _ => {}
        }
        // Before the hash: a change meanwhile does not match the stamp.
        let stamped = stamp::of(&tree);
        let found = tree::hash(&tree);
        if found.as_ref().is_ok_and(|found| found == hash) {
            // Moved or copied; without the stamp the next use hashes again.
            if let Ok(stamped) = stamped {
                let _ = replace(&entry.join("stamp"), &stamped);
            }
            return Ok(Some(tree));
        }
        let moved = self.move_away(&entry)?;
        Err(StoreError::Damaged { path: entry, found, moved })
    }

    /// Inserts the tree of `commit`, or of its folder `subfolder` (with `/` between its parts). Nothing is inserted if the
    /// tree breaks a rule, or if its hash is not the expected one.
    pub fn insert(
        &self,
        commit: &Commit,
        subfolder: Option<&str>,
        expected: Option<&TreeHash>,
        interrupt: &AtomicBool,
    ) -> Result<Inserted, StoreError> {
        if let Some(hash) = expected
            && let Ok(Some(path)) = self.get(hash)
        {
            return Ok(Inserted { hash: *hash, path });
        }
        let subfolder = subfolder.unwrap_or_default();
        let id = if subfolder.is_empty() || tree::relative(subfolder).is_some() {
            commit.folder(subfolder)?
        } else {
            None
        };
        let Some(id) = id else {
            let (address, folder) = (commit.address().clone(), subfolder.escape_debug().to_string());
            return Err(StoreError::NoFolder { address, commit: commit.id(), folder });
        };

        let failed = |source| StoreError::Folder { path: self.folder.clone(), source };
        let staging = Staging::new(&self.folder).map_err(failed)?;
        let staged = staging.entry();
        let tree = staged.join("tree");
        fs::create_dir(&staged).map_err(failed)?;
        export(commit, id, &tree, self.limits, interrupt)?;
        let stamped = stamp::of(&tree).map_err(failed)?;
        // Of the files as they lie on the disk.
        let hash = tree::hash(&tree)
            .map_err(|source| refused(commit, TreeError::Io { path: tree.clone(), source }))?;
        if let Some(expected) = expected.filter(|expected| **expected != hash) {
            let address = commit.address().clone();
            return Err(StoreError::Changed {
                address,
                commit: commit.id(),
                expected: *expected,
                found: hash,
            });
        }
        fs::write(staged.join("stamp"), stamped).map_err(failed)?;
        let path = self.publish(&staged, &hash)?;
        Ok(Inserted { hash, path })
    }

    /// Moves the staged entry to its place, unless another process was faster.
    pub(super) fn publish(&self, staged: &Path, hash: &TreeHash) -> Result<PathBuf, StoreError> {
        let entry = self.entry(hash);
        // A folder that is not empty is not replaced.
        match fs::rename(staged, &entry) {
            Ok(()) => Ok(entry.join("tree")),
            Err(source) => match self.get(hash) {
                Ok(Some(path)) => Ok(path),
                Ok(None) => Err(StoreError::Folder { path: entry, source }),
                // A damaged one was in its place, and has been moved away.
                Err(_) => fs::rename(staged, &entry)
                    .map(|()| entry.join("tree"))
                    .map_err(|source| StoreError::Folder { path: entry, source }),
            },
        }
    }

    fn entry(&self, hash: &TreeHash) -> PathBuf {
        self.folder.join(hash.hex())
    }

    /// Moves an entry to the damaged ones; its new path.
    fn move_away(&self, entry: &Path) -> Result<PathBuf, StoreError> {
        let folder = self.folder.join("damaged");
        let failed = |source| StoreError::Folder { path: entry.into(), source };
        fs::create_dir_all(&folder).map_err(failed)?;
        let kept = tempfile::Builder::new().prefix("").tempdir_in(&folder).map_err(failed)?.keep();
        let moved = kept.join(entry.file_name().unwrap_or_default());
        match fs::rename(entry, &moved) {
            // Another process was faster.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(moved),
            result => result.map(|()| moved).map_err(failed),
        }
    }
}

/// Atomically replaces a small file.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let file = tempfile::NamedTempFile::new_in(folder)?;
    fs::write(file.path(), text)?;
    file.persist(path)?;
    Ok(())
}
