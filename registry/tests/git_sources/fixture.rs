//! Real git repositories in temporary folders.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::AtomicBool;

use sheaf_registry::git::{Address, Commit, CommitId, GitError, Options, Progress, Repository, Want};
use sheaf_registry::store::SourceStore;
use tempfile::TempDir;

/// A flag that interrupts nothing.
pub static GO: AtomicBool = AtomicBool::new(false);

/// A `git` command in `folder` that reads no configuration but the repository's.
pub fn git_command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    for role in ["AUTHOR", "COMMITTER"] {
        command
            .env(format!("GIT_{role}_NAME"), "A. Author")
            .env(format!("GIT_{role}_EMAIL"), "a@author.example");
        command.env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05Z");
    }
    command
}

/// A repository to fetch from.
pub struct Origin {
    /// Its working tree.
    pub folder: PathBuf,
}

impl Origin {
    pub fn new(folder: &Path) -> Self {
        fs::create_dir_all(folder).unwrap();
        let origin = Self { folder: folder.into() };
        origin.git(&["init", "--quiet", "--initial-branch=main"]);
        origin
    }

    /// Runs git; its output.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    pub fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut command = git_command(&self.folder);
        let child =
            command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.folder.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, contents).unwrap();
    }

    /// Commits all files.
    pub fn commit(&self) -> CommitId {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "change"]);
        self.git(&["rev-parse", "HEAD"]).parse().unwrap()
    }

    /// Writes a file and commits it.
    pub fn commit_file(&self, path: &str, contents: impl AsRef<[u8]>) -> CommitId {
        self.write(path, contents);
        self.commit()
    }

    pub fn blob(&self, contents: &[u8]) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], contents)
    }

    /// Writes a tree object, however malformed: modes, names and ids.
    pub fn tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend(hex::decode(id).unwrap());
        }
        self.git_with(&["hash-object", "-t", "tree", "-w", "--literally", "--stdin"], &bytes)
    }

    /// Makes a commit of a tree the head of `main`.
    pub fn commit_tree(&self, tree: &str) -> CommitId {
        let commit = self.git(&["commit-tree", "-m", "tree", tree]);
        self.git(&["update-ref", "refs/heads/main", &commit]);
        commit.parse().unwrap()
    }

    pub fn address(&self) -> Address {
        Address::parse(self.folder.to_str().unwrap()).unwrap()
    }

    /// The commit, read in place.
    pub fn open(&self, id: CommitId) -> Commit {
        self.repository().commit(id).unwrap().unwrap()
    }

    pub fn repository(&self) -> Repository {
        Repository::new("/nowhere", self.address(), Options::default())
    }
}

/// A temporary folder with an origin, a place for bare copies, and a store.
pub struct Place {
    folder: TempDir,
    pub origin: Origin,
    pub store: SourceStore,
}

impl Place {
    pub fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let origin = Origin::new(&folder.path().join("origin"));
        let store = SourceStore::new(folder.path().join("sources"));
        Self { folder, origin, store }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A message with the folder replaced.
    #[expect(clippy::needless_pass_by_value, reason = "errors are not used otherwise")]
    pub fn neutral(&self, error: impl ToString) -> String {
        error.to_string().replace(&*self.folder.path().to_string_lossy(), "~")
    }

    /// The entries of the store, staging folders and damaged entries.
    pub fn listing(&self) -> Vec<String> {
        let names = |folder: PathBuf| {
            let names: BTreeSet<_> = fs::read_dir(folder)
                .into_iter()
                .flatten()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names
        };
        let all = names(self.path("sources"));
        let entries = all.into_iter().filter(|name| !["lock", "staging", "damaged"].contains(&&**name));
        let staging = names(self.path("sources/staging")).into_iter().map(|name| format!("staging/{name}"));
        entries.chain(staging).collect()
    }

    /// The error of inserting `tree`, which is committed first. The store is as it was.
    pub fn refusal(&self, tree: &str) -> String {
        let commit = self.origin.commit_tree(tree);
        let before = self.listing();
        let error = self.store.insert(&self.origin.open(commit), None, None, &GO).unwrap_err();
        assert_eq!(self.listing(), before);
        self.neutral(error).replace(&commit.to_string(), "COMMIT")
    }
}

/// Fetches; the commit and the number of received bytes.
pub fn fetch(repository: &Repository, want: &Want) -> Result<(CommitId, u64), GitError> {
    let mut bytes = 0;
    let commit = repository.fetch(want, &GO, |progress| {
        if let Progress::Received(received) = progress {
            bytes = received;
        }
    })?;
    Ok((commit, bytes))
}

pub fn branch(name: &str) -> Want {
    Want::Branch(name.into())
}

pub fn tag(name: &str) -> Want {
    Want::Tag(name.into())
}
