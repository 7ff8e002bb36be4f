//! Errors of trees.

use std::io;
use std::path::PathBuf;

use super::TreeHash;

/// A tree that a package cannot have. Each message has the path inside the package, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum TreeError {
    /// A name that is not a name on every system.
    #[error("the name `{path}` {reason}; the package's author must rename it")]
    Name {
        /// The path, escaped for the terminal.
        path: String,
        /// The defect, as a predicate.
        reason: &'static str,
    },
    /// Two names that are one on file systems that ignore case or normalise Unicode.
    #[error("`{first}` and `{second}` are one file on some systems; the package's author must rename one")]
    Collision {
        /// The path that came first.
        first: String,
        /// The other path.
        second: String,
    },
    /// A link out of the tree.
    #[error(
        "the link `{path}` -> `{target}` {reason}; the package's author must replace it by the file itself"
    )]
    Link {
        /// The link's path.
        path: String,
        /// Its target.
        target: String,
        /// The defect, as a predicate.
        reason: &'static str,
    },
    /// A git submodule.
    #[error(
        "`{path}` is a git submodule, which is not fetched; the package's author must copy its files into the package \
         or make it a dependency"
    )]
    Submodule {
        /// Its path.
        path: String,
    },
    /// A file whose contents are kept by Git LFS.
    #[error(
        "`{path}` is a pointer of Git LFS instead of the file itself; the package's author must commit the file without \
         LFS, or have programs download it"
    )]
    Lfs {
        /// Its path.
        path: String,
    },
    /// Neither a file, a folder nor a link.
    #[error("`{path}` is neither a file, a folder nor a link; remove it")]
    Kind {
        /// Its path.
        path: String,
    },
    /// More than the limit.
    #[error("{what} at `{path}`; the package's author must leave out what programs do not need")]
    TooLarge {
        /// The excess, with found and allowed sizes.
        what: String,
        /// The path at which the limit was exceeded.
        path: String,
    },
    /// A tree with another hash than the expected one.
    #[error("the tree's hash is {found}, but {expected} was expected")]
    Hash {
        /// The expected hash.
        expected: TreeHash,
        /// The tree's hash.
        found: TreeHash,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}; make it readable and writable, with room on the disk", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}
