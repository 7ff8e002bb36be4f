//! Errors of the store.

use std::io;
use std::path::PathBuf;

use crate::git::{Address, CommitId, GitError};
use crate::tree::{TreeError, TreeHash};

/// Sources that cannot be had. Each message has the location, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A repository that cannot be fetched or read.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A tree that a package cannot have.
    #[error("{address}, commit {commit}: {source}")]
    Tree {
        /// The repository.
        address: Address,
        /// The commit.
        commit: CommitId,
        /// The defect.
        source: TreeError,
    },
    /// Other sources than the expected ones.
    #[error(
        "the sources of {address} changed: commit {commit} has the tree hash {found}, but {expected} was expected; a \
         registry or a lock file names other sources than its author published: tell them, and do not use either"
    )]
    Changed {
        /// The repository.
        address: Address,
        /// The commit.
        commit: CommitId,
        /// The hash in the lock file or the index.
        expected: TreeHash,
        /// The commit's tree hash.
        found: TreeHash,
    },
    /// A package's folder that the commit does not have.
    #[error("{address} has no folder `{folder}` in commit {commit}; check the package's folder")]
    NoFolder {
        /// The repository.
        address: Address,
        /// The commit.
        commit: CommitId,
        /// The folder.
        folder: String,
    },
    /// An archive that is not the package's.
    #[error("{}: {cause}", path.display())]
    Archive {
        /// The archive.
        path: PathBuf,
        /// The defect, and its remedy.
        cause: String,
    },
    /// An entry that has changed since it was inserted.
    #[error(
        "the sources in {} changed after they were verified ({}); they are moved to {}: run the command again to fetch \
         them anew",
        path.display(),
        found.as_ref().map_or_else(ToString::to_string, |hash| format!("their tree hash is {hash} now")),
        moved.display()
    )]
    Damaged {
        /// The entry.
        path: PathBuf,
        /// The hash of the files there, or the error of reading them.
        found: Result<TreeHash, io::Error>,
        /// Current folder of the files.
        moved: PathBuf,
    },
    /// A folder of the store that cannot be used.
    #[error("{}: {source}; make the folder readable and writable, with room on the disk", path.display())]
    Folder {
        /// The folder or file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}
