//! Git repositories: shallow fetches into bare repositories, and reads from them.
//!
//! ```text
//! https, ssh, git ──▶ shallow fetch ──▶ <cache>/git/<name>-<hash>/
//!                                       ├── lock   held while a process fetches
//!                                       └── git/   a bare repository
//! file, a path ──▶ read in place
//! ```
//!
//! There is never a working tree, so hooks, filters and attributes have no occasion. Only the repository's own
//! configuration is read: not the user's, the system's or the environment's. No program is run but `ssh` for its
//! addresses; a repository of this machine is read without any. Credentials are those passed in.

mod address;
mod commit;
mod connect;
mod error;
mod folder;
mod local;
mod progress;
mod repository;
mod transfer;

pub use address::Address;
pub use commit::{Commit, CommitId, Entry, NotACommit};
pub use error::GitError;
pub use local::Local;
pub use progress::Progress;
pub use repository::Repository;
pub use transfer::{Credentials, Options};

pub use sheaf_project::GitReference as Want;
