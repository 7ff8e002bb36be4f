//! Commits, read from the objects of a bare repository.

use std::collections::HashMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use gix::ObjectId;
use gix::bstr::ByteSlice;
use gix::objs::tree::EntryKind;

use super::{Address, GitError};

/// The id of a commit: SHA-1, in 40 lower-case hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(super) ObjectId);

/// A text that is no full commit id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no commit: one has 40 hexadecimal digits", .0.escape_debug())]
pub struct NotACommit(pub String);

impl FromStr for CommitId {
    type Err = NotACommit;

    fn from_str(text: &str) -> Result<Self, NotACommit> {
        ObjectId::from_hex(text.as_bytes()).map(Self).map_err(|_| NotACommit(text.into()))
    }
}

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A file of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its path, with `/` between its parts. Not checked: it may be hostile.
    pub path: String,
    id: ObjectId,
}

/// A commit whose objects are here.
pub struct Commit {
    pub(crate) repository: gix::Repository,
    pub(crate) tree: ObjectId,
    id: CommitId,
    address: Address,
}

impl fmt::Debug for Commit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Commit({} of {})", self.id, self.address)
    }
}

impl Commit {
    pub(super) fn open(
        mut repository: gix::Repository,
        address: Address,
        id: CommitId,
    ) -> Result<Self, GitError> {
        // Trees are read again for each file in them.
        repository.object_cache_size_if_unset(8 << 20);
        let tree = repository.find_commit(id.0).and_then(|commit| Ok(commit.tree_id()?.detach()));
        let tree = tree.map_err(|error| GitError::damaged(repository.path(), &error))?;
        Ok(Self { repository, tree, id, address })
    }

    /// Its id.
    pub fn id(&self) -> CommitId {
        self.id
    }

    /// The address of its repository.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The file at `path`, with `/` between its parts; `None` if there is no file. An error if it has more than `limit`
    /// bytes.
    pub fn blob(&self, path: &str, limit: u64) -> Result<Option<Vec<u8>>, GitError> {
        let tree = self.repository.find_tree(self.tree).map_err(|error| self.damaged(&error))?;
        let entry =
            tree.lookup_entry(path.split('/').map(str::as_bytes)).map_err(|error| self.damaged(&error))?;
        match entry {
            Some(entry) if entry.mode().is_blob() => self.bounded(path, entry.object_id(), limit).map(Some),
            _ => Ok(None),
        }
    }

    /// The contents of a file of [`files`](Self::files). An error if it has more than `limit` bytes.
    pub fn read(&self, entry: &Entry, limit: u64) -> Result<Vec<u8>, GitError> {
        self.bounded(&entry.path, entry.id, limit)
    }

    /// The files of the folder `path`, or of the root if it is empty, by name; none if there is no such folder. Links,
    /// submodules and names that are not UTF-8 are left out. An error if the folder has more than `limit` entries.
    pub fn blobs(&self, path: &str, limit: usize) -> Result<HashMap<String, Entry>, GitError> {
        let mut files = HashMap::new();
        let Some(id) = self.folder(path)? else { return Ok(files) };
        let tree = self.repository.find_tree(id).map_err(|error| self.damaged(&error))?;
        for (number, entry) in tree.iter().enumerate() {
            let entry = entry.map_err(|error| self.damaged(&error))?;
            if number == limit {
                let (address, limit) = (self.address.clone(), limit as u64);
                return Err(GitError::LargeFile { address, path: path.into(), size: limit + 1, limit });
            }
            if let (Ok(name), true) = (entry.filename().to_str(), entry.mode().is_blob()) {
                let path = if path.is_empty() { name.into() } else { format!("{path}/{name}") };
                files.insert(name.into(), Entry { path, id: entry.object_id() });
            }
        }
        Ok(files)
    }

    /// All files below the folder `path`, or below the root if it is empty, in git's order. Links, submodules and files
    /// whose path is not UTF-8 are left out. An error if there are more than `limit`, of files and folders together.
    pub fn files(&self, path: &str, limit: usize) -> Result<Vec<Entry>, GitError> {
        let Some(tree) = self.folder(path)? else { return Ok(Vec::new()) };
        let mut files = Vec::new();
        let mut seen = 0;
        // A stack instead of recursion: depth is bounded by the number of entries alone. Reversed, for the order.
        let mut stack = vec![(path.to_owned(), tree, EntryKind::Tree)];
        while let Some((path, id, kind)) = stack.pop() {
            if kind != EntryKind::Tree {
                files.push(Entry { path, id });
                continue;
            }
            let tree = self.repository.find_tree(id).map_err(|error| self.damaged(&error))?;
            let first = stack.len();
            for entry in tree.iter() {
                let entry = entry.map_err(|error| self.damaged(&error))?;
                seen += 1;
                if seen > limit {
                    let (address, limit) = (self.address.clone(), limit as u64);
                    return Err(GitError::LargeFile { address, path, size: limit + 1, limit });
                }
                let kind = entry.mode().kind();
                let wanted = matches!(kind, EntryKind::Tree | EntryKind::Blob | EntryKind::BlobExecutable);
                if let (Ok(name), true) = (entry.filename().to_str(), wanted) {
                    let path = if path.is_empty() { name.into() } else { format!("{path}/{name}") };
                    stack.push((path, entry.object_id(), kind));
                }
            }
            stack[first..].reverse();
        }
        Ok(files)
    }

    /// The tree of the folder at `path`; `None` if there is no such folder.
    pub(crate) fn folder(&self, path: &str) -> Result<Option<ObjectId>, GitError> {
        if path.is_empty() {
            return Ok(Some(self.tree));
        }
        let tree = self.repository.find_tree(self.tree).map_err(|error| self.damaged(&error))?;
        let entry =
            tree.lookup_entry(path.split('/').map(str::as_bytes)).map_err(|error| self.damaged(&error))?;
        Ok(entry.filter(|entry| entry.mode().is_tree()).map(|entry| entry.object_id()))
    }

    /// The object `id` with at most `limit` bytes.
    fn bounded(&self, path: &str, id: ObjectId, limit: u64) -> Result<Vec<u8>, GitError> {
        // Asked first: the contents of a large object would be unpacked.
        let size = self.repository.find_header(id).map_err(|error| self.damaged(&error))?.size();
        if size > limit {
            let (address, path) = (self.address.clone(), path.escape_debug().to_string());
            return Err(GitError::LargeFile { address, path, size, limit });
        }
        let mut blob = self.repository.find_blob(id).map_err(|error| self.damaged(&error))?;
        Ok(blob.take_data())
    }

    pub(crate) fn damaged(&self, error: &gix::Error) -> GitError {
        GitError::damaged(self.repository.path(), error)
    }

    /// The repository's folder.
    pub fn repository_folder(&self) -> PathBuf {
        self.repository.path().into()
    }
}
