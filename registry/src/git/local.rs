//! Checkouts of this machine: the repository around a folder, as `sheaf publish` and `sheaf registry check` read it.

use std::path::{Path, PathBuf};

use gix::ObjectId;
use gix::bstr::ByteSlice;

use super::{Address, Commit, CommitId, GitError, folder};

/// The git repository that a folder is in.
#[derive(Debug)]
pub struct Local {
    repository: gix::Repository,
    address: Address,
    root: PathBuf,
}

impl Local {
    /// Opens the repository of `folder`, or of a folder above.
    pub fn open(folder: &Path) -> Result<Self, GitError> {
        let absolute = std::fs::canonicalize(folder)
            .map_err(|source| GitError::Folder { path: folder.into(), source })?;
        let root = absolute.ancestors().find(|folder| folder.join(".git").exists());
        let root = root.unwrap_or(&absolute).to_owned();
        let address = Address::parse(&root.to_string_lossy())?;
        let opened = folder::isolated().open_path_as_is(false).open(&root);
        let repository = opened.map_err(|error| GitError::NotFound {
            address: address.clone(),
            cause: super::error::causes(&error),
        })?;
        Ok(Self { repository: repository.to_thread_local(), address, root })
    }

    /// The folder of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The commit that a branch, a tag or an id names, such as `HEAD`, `origin/main` or `v1.2.0`.
    pub fn commit(&self, revision: &str) -> Result<Commit, GitError> {
        let id = match ObjectId::from_hex(revision.as_bytes()) {
            Ok(id) => id,
            Err(_) => {
                let found = self.repository.try_find_reference(revision).ok().flatten();
                let mut found = found.ok_or_else(|| GitError::NoReference {
                    address: self.address.clone(),
                    wanted: format!("branch, tag or commit `{}`", revision.escape_debug()),
                    near_names: Vec::new(),
                })?;
                found.peel_to_id().map_err(|error| GitError::damaged(&self.root, &error))?.detach()
            }
        };
        Commit::open(self.repository.clone(), self.address.clone(), CommitId(id))
    }

    /// The tags that name a commit, sorted.
    pub fn tags_of(&self, commit: CommitId) -> Result<Vec<String>, GitError> {
        let damaged = |error: gix::Error| GitError::damaged(&self.root, &error);
        let references = self.repository.references().map_err(damaged)?;
        let mut names = Vec::new();
        for tag in references.tags().map_err(damaged)?.flatten() {
            let name = tag.name().shorten().to_str().map(str::to_owned);
            let mut tag = tag;
            if let (Ok(name), Ok(id)) = (name, tag.peel_to_id())
                && id.detach() == commit.0
            {
                names.push(name);
            }
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The address of the remote `origin`, if there is one.
    pub fn origin(&self) -> Option<String> {
        let address = self.repository.config_snapshot().string("remote.origin.url")?;
        address.to_str().ok().map(str::to_owned)
    }

    /// The path of a folder in the repository, with `/` between its parts; empty for its root, `None` if it is elsewhere.
    pub fn path_of(&self, folder: &Path) -> Option<String> {
        let absolute = std::fs::canonicalize(folder).ok()?;
        let parts: Option<Vec<&str>> =
            absolute.strip_prefix(&self.root).ok()?.iter().map(|part| part.to_str()).collect();
        Some(parts?.join("/"))
    }
}
