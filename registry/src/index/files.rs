//! Files of an index, wherever it is.

use std::cell::RefCell;
use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::git::{Commit, Entry, GitError};

use super::entry::MAX_FILE;
use super::layout::package_of;

/// A failed read of an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesError {
    /// The cause.
    pub cause: String,
    /// The fix.
    pub remedy: String,
}

impl FilesError {
    /// The failure of a git repository, whose message has the remedy in it.
    pub(crate) fn of_git(error: &crate::git::GitError) -> Self {
        let text = error.to_string();
        let (cause, remedy) = text.rsplit_once("; ").unwrap_or((&text, "check its address"));
        Self { cause: cause.into(), remedy: remedy.into() }
    }
}

/// Read access to the files of an index.
pub trait IndexFiles {
    /// The contents of a file, of which the path is relative to the index, with `/` between its parts; `None` if it does
    /// not exist.
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError>;

    /// Reads files that are wanted soon, side by side. Failures show when the file is read.
    fn prefetch(&self, _paths: &[String]) {}

    /// Drops the copy of a file whose contents cannot be used, so that it is read anew.
    fn forget(&self, _path: &str) {}

    /// The names of all packages, sorted; `None` if the index cannot be listed.
    fn list(&self) -> Result<Option<Vec<String>>, FilesError>;
}

/// An index in a folder of this machine.
#[derive(Debug, Clone)]
pub struct Folder {
    root: PathBuf,
}

impl Folder {
    /// The index in the folder `root`.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }
}

impl IndexFiles for Folder {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        let path = self.root.join(path);
        let bytes = fs::metadata(&path).and_then(|metadata| {
            if metadata.len() > MAX_FILE as u64 {
                return Err(io::Error::other(format!(
                    "it has {} bytes, and {MAX_FILE} are the most",
                    metadata.len()
                )));
            }
            fs::read(&path)
        });
        match bytes {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound && self.root.is_dir() => Ok(None),
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    fn list(&self) -> Result<Option<Vec<String>>, FilesError> {
        let mut names = Vec::new();
        let mut open = vec![(self.root.clone(), 0)];
        while let Some((folder, depth)) = open.pop() {
            for item in fs::read_dir(&folder).map_err(|error| unreadable(&folder, &error))? {
                let item = item.map_err(|error| unreadable(&folder, &error))?;
                let kind = item.file_type().map_err(|error| unreadable(&item.path(), &error))?;
                // A package is two folders below the root at most.
                if kind.is_dir() && depth < 2 {
                    open.push((item.path(), depth + 1));
                } else if let Some(path) = relative(&self.root, &item.path())
                    && let Some(name) = package_of(&path)
                {
                    names.push(name.to_owned());
                }
            }
        }
        names.sort_unstable();
        Ok(Some(names))
    }
}

/// Maximum number of files and folders of an index.
const MAX_ENTRIES: usize = 2_000_000;

/// An index in a commit of a git repository.
pub struct GitFiles {
    commit: Commit,
    /// The files of folders by name. A folder may have thousands, which a tree object only lists one after the other.
    folders: RefCell<HashMap<String, HashMap<String, Entry>>>,
}

impl GitFiles {
    /// The index in this commit.
    pub fn new(commit: Commit) -> Self {
        Self { commit, folders: RefCell::default() }
    }

    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, GitError> {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let mut folders = self.folders.borrow_mut();
        if !folders.contains_key(folder) {
            folders.insert(folder.into(), self.commit.blobs(folder, MAX_ENTRIES)?);
        }
        let entry = folders.get(folder).and_then(|names| names.get(name));
        entry.map(|entry| self.commit.read(entry, MAX_FILE as u64)).transpose()
    }
}

impl IndexFiles for GitFiles {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, FilesError> {
        self.file(path).map_err(|error| FilesError::of_git(&error))
    }

    fn list(&self) -> Result<Option<Vec<String>>, FilesError> {
        let files = self.commit.files("", MAX_ENTRIES).map_err(|error| FilesError::of_git(&error))?;
        let mut names: Vec<_> =
            files.iter().filter_map(|file| package_of(&file.path).map(str::to_owned)).collect();
        names.sort_unstable();
        Ok(Some(names))
    }
}

/// The path of a file in an index, with `/` between its parts.
fn relative(root: &Path, path: &Path) -> Option<String> {
    let parts: Option<Vec<&str>> = path.strip_prefix(root).ok()?.iter().map(|part| part.to_str()).collect();
    Some(parts?.join("/"))
}

fn unreadable(path: &Path, error: &io::Error) -> FilesError {
    FilesError {
        cause: format!("{}: {error}", path.display()),
        remedy: "check the folder's path, and that you may read it".into(),
    }
}
