//! Export of a git tree to a folder, with the rules for trees checked on the way.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use gix::ObjectId;
use gix::objs::tree::EntryKind;

use super::StoreError;
use crate::git::{Commit, GitError};
use crate::tree::{Limits, Rules, Siblings, TARGET, TreeError};

/// Maximum size of a tree object in bytes: room for as many entries as a package may have.
const TREE: u64 = 16 << 20;

/// Writes the tree `id` of `commit` into `folder`, which does not exist yet. The rules are checked before the first file
/// is written, but for those on contents.
pub(super) fn export(
    commit: &Commit,
    id: ObjectId,
    folder: &Path,
    limits: Limits,
    interrupt: &AtomicBool,
) -> Result<(), StoreError> {
    let mut plan = Plan { commit, interrupt, rules: Rules::new(limits), entries: Vec::new() };
    plan.folder(id, "")?;
    let Plan { rules, entries, .. } = plan;
    rules.finish().map_err(|error| refused(commit, error))?;
    write(commit, &entries, folder, interrupt)
}

pub(super) fn refused(commit: &Commit, source: TreeError) -> StoreError {
    StoreError::Tree { address: commit.address().clone(), commit: commit.id(), source }
}

/// A checked entry: its path consists of names, none of them `..`.
struct Entry {
    path: String,
    kind: Kind,
}

enum Kind {
    Folder,
    File { id: ObjectId, executable: bool },
    Link { target: String },
}

/// The entries to be written, folders before what is in them. At most as many as the rules allow.
struct Plan<'a> {
    commit: &'a Commit,
    interrupt: &'a AtomicBool,
    rules: Rules,
    entries: Vec<Entry>,
}

impl Plan<'_> {
    fn folder(&mut self, id: ObjectId, path: &str) -> Result<(), StoreError> {
        stop_if(self.commit, self.interrupt)?;
        let tree = read(self.commit, id, path, TREE)?;
        let mut siblings = Siblings::default();
        for entry in gix::objs::TreeRefIter::from_bytes(&tree, id.kind()) {
            let entry = entry.map_err(|error| self.commit.damaged(&error))?;
            let (mode, id) = (entry.mode.kind(), entry.oid.to_owned());
            let entered = self.rules.enter(path, entry.filename, mode == EntryKind::Link, &mut siblings);
            let path = entered.map_err(|error| refused(self.commit, error))?;
            let kind = match mode {
                EntryKind::Tree => Kind::Folder,
                EntryKind::Blob | EntryKind::BlobExecutable => {
                    let size = size(self.commit, id)?;
                    self.rules.size(&path, size).map_err(|error| refused(self.commit, error))?;
                    Kind::File { id, executable: mode == EntryKind::BlobExecutable }
                }
                EntryKind::Link => {
                    let target = read(self.commit, id, &path, TARGET as u64)?;
                    let target = self.rules.link(&path, &target);
                    let target = target.map_err(|error| refused(self.commit, error))?.to_owned();
                    Kind::Link { target }
                }
                EntryKind::Commit => return Err(refused(self.commit, TreeError::Submodule { path })),
            };
            self.entries.push(Entry { path: path.clone(), kind });
            if mode == EntryKind::Tree {
                self.folder(id, &path)?;
            }
        }
        Ok(())
    }
}

/// Writes the entries into `folder`. Links come last, so that no file is written through one.
fn write(
    commit: &Commit,
    entries: &[Entry],
    folder: &Path,
    interrupt: &AtomicBool,
) -> Result<(), StoreError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| StoreError::Folder { path, source }
    };
    fs::create_dir(folder).map_err(failed(folder))?;
    for Entry { path, kind } in entries {
        stop_if(commit, interrupt)?;
        let file = folder.join(path);
        match kind {
            Kind::Folder => fs::create_dir(&file).map_err(failed(&file))?,
            Kind::File { id, executable } => {
                let contents = read(commit, *id, path, u64::MAX)?;
                Rules::contents(path, &contents).map_err(|error| refused(commit, error))?;
                let create = || create(&file, *executable)?.write_all(&contents);
                create().map_err(failed(&file))?;
            }
            Kind::Link { .. } => {}
        }
    }
    for Entry { path, kind } in entries {
        if let Kind::Link { target } = kind {
            let file = folder.join(path);
            link(target, &file).map_err(failed(&file))?;
        }
    }
    Ok(())
}

fn stop_if(commit: &Commit, interrupt: &AtomicBool) -> Result<(), StoreError> {
    if interrupt.load(Ordering::Relaxed) {
        return Err(GitError::Interrupted { address: commit.address().clone() }.into());
    }
    Ok(())
}

/// The size of an object in bytes; it is not unpacked.
fn size(commit: &Commit, id: ObjectId) -> Result<u64, StoreError> {
    let header = commit.repository.find_header(id).map_err(|error| commit.damaged(&error))?;
    Ok(header.size())
}

/// The contents of an object with at most `limit` bytes.
fn read(commit: &Commit, id: ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
    let size = size(commit, id)?;
    if size > limit {
        let what = format!("an object of {size} bytes, more than {limit},");
        return Err(refused(commit, TreeError::TooLarge { what, path: path.into() }));
    }
    let mut object = commit.repository.find_object(id).map_err(|error| commit.damaged(&error))?;
    Ok(std::mem::take(&mut object.data))
}

/// Creates a read-only file, open for writing.
#[cfg(unix)]
pub(super) fn create(path: &Path, executable: bool) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if executable { 0o555 } else { 0o444 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(not(unix))]
pub(super) fn create(path: &Path, _: bool) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
pub(super) fn link(target: &str, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
pub(super) fn link(target: &str, path: &Path) -> std::io::Result<()> {
    let is_folder = path.parent().is_some_and(|folder| folder.join(target).is_dir());
    if is_folder {
        std::os::windows::fs::symlink_dir(target, path)
    } else {
        std::os::windows::fs::symlink_file(target, path)
    }
}
