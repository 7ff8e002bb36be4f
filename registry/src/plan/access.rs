//! Resources that a command may reach: folders, network, credentials, registries.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use sheaf_project::{Dependency, DependencySource, Source};
use url::Url;

use super::UniverseError;
use super::universe::host_of;
use crate::git::{Address, CommitId, Credentials, Options, Progress, Want};
use crate::login::{Login, Logins};
use crate::store::FetchReporter;

/// Receiver of the progress of a resolution. Each method does nothing by default.
pub trait Reporter: FetchReporter + Send {
    /// A registry or a repository is brought up to date.
    fn updating(&self, _address: &str) {}
    /// Progress of that.
    fn waiting(&self, _progress: Progress) {}
    /// The end of it.
    fn updated(&self) {}
    /// Another event that users should know of, in a sentence.
    fn note(&self, _text: &str) {}
}

impl Reporter for crate::store::Silent {}

/// Resources that a command may reach.
pub struct Access {
    /// Folder of copies of indexes.
    pub registries: PathBuf,
    /// Folder of copies of git repositories.
    pub repositories: PathBuf,
    /// Folder of the store of sources.
    pub sources: PathBuf,
    /// Folder with archives of packages, which are taken instead of fetches.
    pub vendor: Option<PathBuf>,
    /// Credentials of hosts.
    pub logins: Logins,
    /// Hosts that the user's own files name. Others get no credentials, whatever an index says.
    pub named: BTreeSet<String>,
    /// Addresses of registries by name; that of `default` for dependencies that name none.
    pub indexes: BTreeMap<String, String>,
    /// Addresses that the user has put before that of an index, in the order in which they are asked.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// True if the network may not be used.
    pub offline: bool,
    /// Set to stop.
    pub interrupt: Arc<AtomicBool>,
    /// Commits of references that this command has fetched: it asks once.
    pub fetched: RefCell<HashMap<(String, Want), CommitId>>,
    /// Receiver of progress.
    pub reporter: Box<dyn Reporter>,
}

impl Access {
    /// The credentials of a host that the user's own files name.
    pub(super) fn login(&self, host: &str) -> Option<&Login> {
        let is_named = self.named.contains(host) || self.has_mirror(host);
        is_named.then(|| self.logins.of(host)).flatten()
    }

    /// True if a mirror is on this host.
    fn has_mirror(&self, host: &str) -> bool {
        let url = |mirror: &String| Url::parse(mirror.strip_prefix("sparse+").unwrap_or(mirror)).ok();
        self.mirrors.values().flatten().filter_map(url).any(|url| host_of(&url) == host)
    }

    /// Settings of fetches from an address.
    pub fn git_options(&self, address: &Address) -> Options {
        let url = Url::parse(address.as_str()).ok();
        let login = url.and_then(|url| self.login(&host_of(&url)));
        let credentials = login.map(|login| Credentials {
            // Servers that take tokens as passwords ignore the name.
            user: login.user.clone().unwrap_or_else(|| "token".into()),
            password: login.token.clone(),
        });
        Options { credentials, ..Options::default() }
    }

    /// The origin of a dependency of a package in `folder`, which is relative to the project.
    pub(super) fn source(&self, dependency: &Dependency, folder: &str) -> Result<Source, UniverseError> {
        Ok(match &dependency.source {
            DependencySource::Registry { name } => {
                let key = name.as_deref().unwrap_or("default");
                let index = self.indexes.get(key).cloned();
                let index = index.ok_or_else(|| UniverseError::NoRegistry {
                    name: name.clone(),
                    location: dependency.location.to_string(),
                })?;
                Source::Registry { index }
            }
            DependencySource::Git { url, reference } => {
                Source::Git { url: url.clone(), reference: reference.clone() }
            }
            // A project takes these from its workspace when it is located.
            DependencySource::Workspace => {
                let (package, location) = (dependency.name.clone(), dependency.location.to_string());
                return Err(UniverseError::OutsideWorkspace { package, location });
            }
            DependencySource::Path { folder: path, .. } => Source::Path { folder: joined(folder, path) },
        })
    }
}

/// The folder `path` relative to `folder`, without `.` and with `..` only at its beginning, so that one folder has one
/// name.
pub(super) fn joined(folder: &str, path: &str) -> String {
    if path.starts_with('/') {
        return path.into();
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split(['/', '\\'])) {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let start = if folder.starts_with('/') { "/" } else { "" };
    format!("{start}{}", parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index may name any repository; the user's credentials for its host are for what the user's own files name.
    #[test]
    fn a_host_that_only_an_index_names_gets_no_credentials() {
        let mut logins = Logins::default();
        for host in ["named.example", "other.example"] {
            logins.set(host, Some(Login { user: None, token: "secret".into() }));
        }
        let access = Access {
            registries: PathBuf::new(),
            repositories: PathBuf::new(),
            sources: PathBuf::new(),
            vendor: None,
            logins,
            named: ["named.example".to_owned()].into(),
            indexes: BTreeMap::new(),
            mirrors: BTreeMap::new(),
            offline: true,
            interrupt: Arc::default(),
            fetched: RefCell::default(),
            reporter: Box::new(crate::store::Silent),
        };
        let given =
            |address: &str| access.git_options(&Address::parse(address).unwrap()).credentials.is_some();
        assert!(given("https://named.example/a"));
        for address in [
            "https://other.example/a",
            "https://named.example:8443/a",
            "https://named.example.other.example/a",
            "https://sub.named.example/a",
        ] {
            assert!(!given(address), "{address}");
        }
    }

    #[test]
    fn one_folder_has_one_name() {
        for (folder, path, found) in [
            ("", "../a", "../a"),
            ("../a", "../b", "../b"),
            ("../a", "b/./c", "../a/b/c"),
            ("", "/x/y", "/x/y"),
            ("/x/y", "../z", "/x/z"),
            ("a/b", "../../c", "c"),
            ("..", "..", "../.."),
        ] {
            assert_eq!(joined(folder, path), found);
        }
    }
}
