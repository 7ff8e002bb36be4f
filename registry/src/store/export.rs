//! Export of a git tree to a folder, with the rules for trees checked on the way.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use gix::objs::tree::EntryKind;
use gix::{ObjectId, Repository};

use super::StoreError;
use crate::git::{Commit, GitError};
use crate::tree::{Limits, Rules, Siblings, TreeError};

/// Maximum size of a tree object in bytes: room for as many entries as a package may have.
const TREE: u64 = 16 << 20;

/// Writes the tree `id` of `commit` into `folder`, which does not exist yet.
pub(super) fn export(
    commit: &Commit,
    id: ObjectId,
    folder: &Path,
    limits: Limits,
    interrupt: &AtomicBool,
) -> Result<(), StoreError> {
    let mut export = Export { commit, interrupt, rules: Rules::new(limits), links: Vec::new() };
    export.folder(id, "", folder)?;
    let Export { rules, links, .. } = export;
    rules.finish().map_err(|error| refused(commit, error))?;
    // Last of all, and checked: no file is written through a link.
    for (path, target) in links {
        link(&target, &path).map_err(|source| StoreError::Folder { path, source })?;
    }
    Ok(())
}

pub(super) fn refused(commit: &Commit, source: TreeError) -> StoreError {
    StoreError::Tree { address: commit.address().clone(), commit: commit.id(), source }
}

struct Export<'a> {
    commit: &'a Commit,
    interrupt: &'a AtomicBool,
    rules: Rules,
    /// Links to be made, with their targets.
    links: Vec<(PathBuf, String)>,
}

impl Export<'_> {
    fn folder(&mut self, id: ObjectId, path: &str, folder: &Path) -> Result<(), StoreError> {
        fs::create_dir(folder).map_err(|source| StoreError::Folder { path: folder.into(), source })?;
        let tree = self.read(id, path, TREE)?;
        let mut siblings = Siblings::default();
        for entry in gix::objs::TreeRefIter::from_bytes(&tree, id.kind()) {
            if self.interrupt.load(Ordering::Relaxed) {
                return Err(GitError::Interrupted { address: self.commit.address().clone() }.into());
            }
            let entry = entry.map_err(|error| self.commit.damaged(&error))?;
            let kind = entry.mode.kind();
            let entered = self.rules.enter(path, entry.filename, kind == EntryKind::Link, &mut siblings);
            let path = entered.map_err(|error| refused(self.commit, error))?;
            // A checked name: one part, and not `..`.
            let file = folder.join(path.rsplit('/').next().unwrap_or(&path));
            let id = entry.oid.to_owned();
            match kind {
                EntryKind::Tree => self.folder(id, &path, &file)?,
                EntryKind::Blob => self.file(id, &path, &file, false)?,
                EntryKind::BlobExecutable => self.file(id, &path, &file, true)?,
                EntryKind::Link => {
                    let target = self.read(id, &path, crate::tree::TARGET as u64)?;
                    let target = self.rules.link(&path, &target);
                    let target = target.map_err(|error| refused(self.commit, error))?.to_owned();
                    self.links.push((file, target));
                }
                EntryKind::Commit => return Err(refused(self.commit, TreeError::Submodule { path })),
            }
        }
        Ok(())
    }

    fn file(&mut self, id: ObjectId, path: &str, file: &Path, executable: bool) -> Result<(), StoreError> {
        let size = self.size(id)?;
        self.rules.size(path, size).map_err(|error| refused(self.commit, error))?;
        let contents = self.read(id, path, size)?;
        self.rules.contents(path, &contents).map_err(|error| refused(self.commit, error))?;
        let write = || create(file, executable)?.write_all(&contents);
        write().map_err(|source| StoreError::Folder { path: file.into(), source })
    }

    fn repository(&self) -> &Repository {
        &self.commit.repository
    }

    fn size(&self, id: ObjectId) -> Result<u64, StoreError> {
        let header = self.repository().find_header(id).map_err(|error| self.commit.damaged(&error))?;
        Ok(header.size())
    }

    /// The contents of an object with at most `limit` bytes.
    fn read(&self, id: ObjectId, path: &str, limit: u64) -> Result<Vec<u8>, StoreError> {
        let size = self.size(id)?;
        if size > limit {
            let what = format!("an object of {size} bytes, more than {limit},");
            return Err(refused(self.commit, TreeError::TooLarge { what, path: path.into() }));
        }
        let mut object = self.repository().find_object(id).map_err(|error| self.commit.damaged(&error))?;
        Ok(std::mem::take(&mut object.data))
    }
}

/// Creates a read-only file, open for writing.
#[cfg(unix)]
fn create(path: &Path, executable: bool) -> std::io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let mode = if executable { 0o555 } else { 0o444 };
    OpenOptions::new().write(true).create_new(true).mode(mode).open(path)
}

#[cfg(not(unix))]
fn create(path: &Path, _: bool) -> std::io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

#[cfg(unix)]
fn link(target: &str, path: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(target, path)
}

#[cfg(windows)]
fn link(target: &str, path: &Path) -> std::io::Result<()> {
    let is_folder = path.parent().is_some_and(|folder| folder.join(target).is_dir());
    if is_folder {
        std::os::windows::fs::symlink_dir(target, path)
    } else {
        std::os::windows::fs::symlink_file(target, path)
    }
}
