//! Repositories by their address.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use gix::ObjectId;
use sha2::{Digest, Sha256};

use super::folder::{self, Lock};
use super::transfer::{self, Outcome};
use super::{Address, Commit, CommitId, GitError, Options, Progress, Want};

/// Number of packs at which a repository is fetched anew instead: each fetch adds one, and each slows down reads.
const PACKS: usize = 50;

/// Maximum number of near names in a message.
const NEAR: usize = 3;

/// A git repository: a folder of this machine, or a bare copy of single commits of a remote one.
#[derive(Debug)]
pub struct Repository {
    address: Address,
    /// The folder with the lock and the bare repository; not used for a repository of this machine.
    folder: PathBuf,
    options: Options,
}

impl Repository {
    /// The repository at `address`, with its bare copy in `folder`, which the first fetch makes. Nothing is read yet.
    pub fn new(folder: impl Into<PathBuf>, address: Address, options: Options) -> Self {
        Self { address, folder: folder.into(), options }
    }

    /// The repository at `address`, with its bare copy in a folder of `cache`, such as `<cache>/git`.
    pub fn in_cache(cache: &Path, address: Address, options: Options) -> Self {
        let folder = cache.join(address.cache_name());
        Self::new(folder, address, options)
    }

    /// Its address.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Fetches the commit that `want` names now, and its tree. If it is here already, only the server's list of
    /// references is read; for a commit, nothing.
    pub fn fetch(
        &self,
        want: &Want,
        interrupt: &AtomicBool,
        mut progress: impl FnMut(Progress),
    ) -> Result<CommitId, GitError> {
        let commit = match want {
            Want::Commit(text) => Some(self.commit_id(text)?),
            _ => None,
        };
        if self.address.local().is_some() {
            return self.find_local(want, commit);
        }
        if let Some(commit) = commit.filter(|commit| self.has(*commit)) {
            return Ok(commit);
        }
        let path = self.bare();
        let lock = self.lock(interrupt, &mut progress)?;
        folder::open_or_create(&path)?;
        if folder::packs(&path) < PACKS {
            let (id, _lock) = self.receive(&path, want, lock, interrupt, &mut progress)?;
            return self.peel(&path, want, id);
        }
        // Beside it: a failure leaves the old one.
        let failed = |source| GitError::Folder { path: self.folder.clone(), source };
        let staged = tempfile::Builder::new().prefix("new-").tempdir_in(&self.folder).map_err(failed)?;
        let new = staged.path().join("git");
        folder::open_or_create(&new)?;
        let (id, _lock) = self.receive(&new, want, lock, interrupt, &mut progress)?;
        let id = self.peel(&new, want, id)?;
        folder::replace(&path, &new)?;
        Ok(id)
    }

    /// Fetches `commit`, which a lock file or an index names beside `reference`.
    ///
    /// Git servers need not give bare commits, so the reference comes first. A tag that names another commit is an error;
    /// a branch may move, and then the commit itself is asked for. Nothing is asked if the commit is here.
    pub fn fetch_locked(
        &self,
        reference: &Want,
        commit: CommitId,
        interrupt: &AtomicBool,
        mut progress: impl FnMut(Progress),
    ) -> Result<(), GitError> {
        if self.has(commit) {
            return Ok(());
        }
        let by_reference = match reference {
            Want::Commit(_) => None,
            _ => Some(self.fetch(reference, interrupt, &mut progress)),
        };
        match (by_reference, reference) {
            (Some(Ok(found)), _) if found == commit => return Ok(()),
            (Some(Ok(to)), Want::Tag(tag)) => {
                let address = self.address.clone();
                return Err(GitError::TagMoved {
                    address,
                    tag: tag.escape_debug().to_string(),
                    from: commit,
                    to,
                });
            }
            // The branch may have gone.
            (Some(Ok(_) | Err(GitError::NoReference { .. })) | None, _) => {}
            (Some(Err(error)), _) => return Err(error),
        }
        let found = self.fetch(&Want::Commit(commit.to_string()), interrupt, progress)?;
        if found == commit {
            return Ok(());
        }
        // The id of a tag that names a commit.
        let cause = "this is no commit".into();
        Err(GitError::NoCommit { address: self.address.clone(), commit, cause })
    }

    /// The commit `id`, which was fetched before; `None` if it is not here.
    pub fn commit(&self, id: CommitId) -> Result<Option<Commit>, GitError> {
        let Some(repository) = self.open()? else { return Ok(None) };
        let is_here = repository.try_find_header(id.0).map_err(|error| self.damaged(&error))?;
        match is_here.map(|header| header.kind()) {
            Some(gix::objs::Kind::Commit) => Commit::open(repository, self.address.clone(), id).map(Some),
            _ => Ok(None),
        }
    }

    /// The commit that `want` named at the last fetch; `None` if it was never fetched. For a repository of this machine,
    /// the commit that it names now.
    pub fn last(&self, want: &Want) -> Result<Option<CommitId>, GitError> {
        if let Want::Commit(text) = want {
            let id = self.commit_id(text)?;
            return Ok(Some(id).filter(|id| self.has(*id)));
        }
        if self.address.local().is_some() {
            return self.find_local(want, None).map(Some);
        }
        let Some(repository) = self.open()? else { return Ok(None) };
        let found = repository.try_find_reference(&local_name(want)).map_err(|error| self.damaged(&error))?;
        let Some(mut found) = found else { return Ok(None) };
        let id = found.peel_to_id().map_err(|error| self.damaged(&error))?;
        Ok(Some(CommitId(id.detach())))
    }

    /// True if the commit is here.
    fn has(&self, id: CommitId) -> bool {
        matches!(self.commit(id), Ok(Some(_)))
    }

    fn bare(&self) -> PathBuf {
        self.folder.join("git")
    }

    fn lock(&self, interrupt: &AtomicBool, progress: &mut dyn FnMut(Progress)) -> Result<Lock, GitError> {
        folder::lock(&self.folder, &self.address, self.options.patience, interrupt, progress)
    }

    /// The repository on this machine, if there is one.
    fn open(&self) -> Result<Option<gix::Repository>, GitError> {
        let Some(path) = self.address.local() else {
            let path = self.bare();
            // Written whole and never changed; else the next fetch makes it anew.
            return Ok(folder::open(&path).ok());
        };
        let not_found = |cause| GitError::NotFound { address: self.address.clone(), cause };
        if !path.is_dir() {
            return Err(not_found("there is no such folder".into()));
        }
        // Its owner may be another user: with reduced trust, gix ignores what its configuration asks for.
        let options = folder::isolated().open_path_as_is(false).with(gix::sec::Trust::Reduced);
        let repository = options.open(path).map_err(|error| not_found(super::error::causes(&error)))?;
        Ok(Some(repository.to_thread_local()))
    }

    /// Receives the object that `want` names.
    fn receive(
        &self,
        path: &Path,
        want: &Want,
        lock: Lock,
        interrupt: &AtomicBool,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<(ObjectId, Lock), GitError> {
        let name = remote_name(want);
        let source = name.as_deref().unwrap_or(match want {
            Want::Commit(id) => id,
            _ => "HEAD",
        });
        let spec = format!("+{source}:{}", local_name(want));
        let address = &self.address;
        if name.as_ref().is_some_and(|name| gix::validate::reference::name(name.as_str().into()).is_err()) {
            return Err(self.no_reference(want, &[]));
        }
        let result = transfer::transfer(path, address, spec, &self.options, lock, interrupt, progress);
        match (result, want) {
            (Ok((Outcome::Object(id), lock)), _) => Ok((id, lock)),
            (Ok((Outcome::Absent(names), _)), _) => Err(self.no_reference(want, &names)),
            // The server's way to say that it does not have it, or does not give it.
            (Err(GitError::Protocol { cause, .. } | GitError::NotFound { cause, .. }), Want::Commit(id))
                if cause.contains("not our ref") || cause.contains("unadvertised object") =>
            {
                Err(GitError::NoCommit { address: address.clone(), commit: self.commit_id(id)?, cause })
            }
            (Err(error), _) => Err(error),
        }
    }

    /// The commit that `id` is, or that the tag `id` names, recorded as that of `want`.
    fn peel(&self, path: &Path, want: &Want, id: ObjectId) -> Result<CommitId, GitError> {
        let repository = folder::open(path).map_err(|error| self.damaged(&error))?;
        let commit = self.peeled(&repository, id)?;
        // The transfer writes it only if it receives something.
        let name = local_name(want);
        let any = gix::refs::transaction::PreviousValue::Any;
        repository.reference(name, commit, any, "fetch").map_err(|error| self.damaged(&error))?;
        Ok(CommitId(commit))
    }

    /// The commit that `want` names in a repository of this machine.
    fn find_local(&self, want: &Want, commit: Option<CommitId>) -> Result<CommitId, GitError> {
        let Some(repository) = self.open()? else { return Err(self.no_reference(want, &[])) };
        if let Some(commit) = commit {
            let cause = || "it is not in the repository".to_owned();
            let absent = || GitError::NoCommit { address: self.address.clone(), commit, cause: cause() };
            return self.commit(commit)?.map(|commit| commit.id()).ok_or_else(absent);
        }
        let name = remote_name(want).unwrap_or_else(|| "HEAD".into());
        let found = match gix::refs::PartialName::try_from(name.as_str()) {
            Ok(name) => repository.try_find_reference(&name).map_err(|error| self.damaged(&error))?,
            Err(_) => None,
        };
        let id = found.map(|mut found| found.peel_to_id().map(gix::Id::detach));
        let Some(Ok(id)) = id else {
            let all = repository.references().map_err(|error| self.damaged(&error))?;
            let all = all.all().map_err(|error| self.damaged(&error))?.flatten();
            let names: Vec<_> = all.map(|reference| reference.name().as_bstr().to_string()).collect();
            return Err(self.no_reference(want, &names));
        };
        self.peeled(&repository, id).map(CommitId)
    }

    /// The commit that the object `id` is, or that the tag `id` names.
    fn peeled(&self, repository: &gix::Repository, id: ObjectId) -> Result<ObjectId, GitError> {
        let object = repository.find_object(id).map_err(|error| self.damaged(&error))?;
        let none = |error| {
            let cause = format!("object {id} leads to no commit: {}", super::error::causes(&error));
            GitError::Protocol { address: self.address.clone(), cause }
        };
        object.peel_to_commit().map(|commit| commit.id).map_err(none)
    }

    fn commit_id(&self, text: &str) -> Result<CommitId, GitError> {
        let short = |_| GitError::ShortCommit {
            address: self.address.clone(),
            text: text.escape_debug().to_string(),
        };
        text.parse().map_err(short)
    }

    /// The error for a missing reference, with near names among `names`, full ones of the server.
    fn no_reference(&self, want: &Want, names: &[String]) -> GitError {
        let (prefix, name, kind) = match want {
            Want::Tag(name) => ("refs/tags/", name.as_str(), "tag"),
            Want::Branch(name) => ("refs/heads/", name.as_str(), "branch"),
            Want::Head | Want::Commit(_) => ("", "", "commit yet"),
        };
        let wanted = match want {
            Want::Head | Want::Commit(_) => kind.to_owned(),
            _ => format!("{kind} `{}`", name.escape_debug()),
        };
        let mut near: Vec<(f64, &str)> = names
            .iter()
            .filter_map(|full| full.strip_prefix(prefix))
            .filter(|_| !prefix.is_empty())
            .map(|other| (strsim::jaro_winkler(name, other), other))
            .filter(|(likeness, _)| *likeness > 0.7)
            .collect();
        near.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
        let near_names = near.iter().take(NEAR).map(|(_, name)| name.escape_debug().to_string()).collect();
        GitError::NoReference { address: self.address.clone(), wanted, near_names }
    }

    fn damaged(&self, error: &gix::Error) -> GitError {
        GitError::damaged(self.address.local().unwrap_or(&self.bare()), error)
    }
}

/// The full name of the reference on the server; `None` for the head and for commits.
fn remote_name(want: &Want) -> Option<String> {
    match want {
        Want::Head | Want::Commit(_) => None,
        Want::Tag(name) => Some(format!("refs/tags/{name}")),
        Want::Branch(name) => Some(format!("refs/heads/{name}")),
    }
}

/// The name of the reference in the bare copy. A digest: branches `a` and `a/b`, which cannot exist together, may follow
/// each other.
fn local_name(want: &Want) -> String {
    let name = match want {
        Want::Head => "HEAD".into(),
        Want::Commit(id) => format!("commit {id}"),
        Want::Tag(name) => format!("tag {name}"),
        Want::Branch(name) => format!("branch {name}"),
    };
    format!("refs/sheaf/{}", &hex::encode(Sha256::digest(name.as_bytes()))[..32])
}
