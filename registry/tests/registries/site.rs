//! A project, what its commands may reach, and lines of registries.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use sheaf_project::{Owners, Project};
use sheaf_registry::index::package_path;
use sheaf_registry::plan::{self, Access, Outcome, PlanError, Resolve};
use sheaf_registry::store::Silent;
use sheaf_registry::{Login, Logins};
use tempfile::TempDir;

/// First file of a registry.
pub const CONFIG: &str = "version = 1\nname = \"test\"\n";

pub const TREE: &str = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=";

/// A line of a registry; `dependencies` in JSON.
pub fn line(
    name: &str,
    version: &str,
    repository: &str,
    commit: &str,
    tree: &str,
    dependencies: &str,
) -> String {
    format!(
        r#"{{"name":"{name}","version":"{version}","dependencies":[{dependencies}],"repository":"{repository}","ref":"refs/tags/v1","commit":"{commit}","tree":"{tree}"}}"#
    ) + "\n"
}

/// A line whose sources are nowhere.
pub fn plain(name: &str, version: &str, dependencies: &str) -> String {
    line(name, version, "https://git.example/x", &"0".repeat(40), TREE, dependencies)
}

/// Writes a registry into a folder.
pub fn write(folder: &Path, packages: &[(&str, String)]) {
    fs::create_dir_all(folder).unwrap();
    fs::write(folder.join("config.toml"), CONFIG).unwrap();
    for (name, text) in packages {
        let path = folder.join(package_path(name).unwrap());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A project in a temporary folder.
pub struct Site {
    folder: TempDir,
    /// Addresses of registries.
    pub indexes: BTreeMap<String, String>,
    pub mirrors: BTreeMap<String, Vec<String>>,
    pub logins: Logins,
    /// Hosts that the user's files name.
    pub named: BTreeSet<String>,
    pub offline: bool,
}

impl Site {
    /// A project with these lines under `[dependencies]`, and a default registry.
    pub fn new(dependencies: &str, index: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let indexes = [("default".to_owned(), index.to_owned())].into();
        let (mirrors, logins, named) = Default::default();
        let site = Self { folder, indexes, mirrors, logins, named, offline: false };
        fs::create_dir(site.path("project")).unwrap();
        site.depend(dependencies);
        site
    }

    pub fn depend(&self, dependencies: &str) {
        let text =
            format!("[package]\nname = \"demo\"\nversion = \"0.1.0\"\n\n[dependencies]\n{dependencies}\n");
        fs::write(self.path("project/Sheaf.toml"), text).unwrap();
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Keeps credentials for a host, as `sheaf login` does.
    pub fn log_in(&mut self, host: &str) {
        self.logins.set(host, Some(Login { user: Some("ada".into()), token: "secret".into() }));
    }

    pub fn project(&self) -> Project {
        Project::locate_from(&self.path("project"), Owners::of_process(|_| None, &[])).unwrap()
    }

    pub fn access(&self) -> Access {
        Access {
            registries: self.path("registries"),
            repositories: self.path("registries/git"),
            sources: self.path("sources"),
            vendor: None,
            logins: self.logins.clone(),
            named: self.named.clone(),
            indexes: self.indexes.clone(),
            mirrors: self.mirrors.clone(),
            offline: self.offline,
            interrupt: Arc::default(),
            fetched: RefCell::default(),
            reporter: Box::new(Silent),
        }
    }

    pub fn lock(&self) -> Result<Outcome, PlanError> {
        plan::lock(&self.project(), &self.access(), &Resolve::default())
    }

    /// Resolves, writes the lock, and fetches.
    pub fn install(&self) -> Result<(), PlanError> {
        let outcome = self.lock()?;
        outcome.lock.write(&self.project().lock_file()).unwrap();
        plan::fetch(&outcome.lock, &self.access()).map(drop)
    }

    /// The packages of a new lock, with their origins.
    pub fn packages(&self) -> Vec<String> {
        let packages = self.lock().unwrap().lock.packages;
        packages
            .iter()
            .map(|package| format!("{} {} {}", package.name, package.version, package.source))
            .collect()
    }

    /// Puts something in the place of the sources of [`plain`] lines: an entry of the store, never used.
    pub fn pretend_sources(&self) {
        let tree: sheaf_registry::tree::TreeHash = TREE.parse().unwrap();
        fs::create_dir_all(self.path("sources").join(tree.hex()).join("tree")).unwrap();
    }

    /// The entries of the store of sources.
    pub fn stored(&self) -> Vec<String> {
        let entries = fs::read_dir(self.path("sources")).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.len() == 64).collect()
    }
}

/// The message of a refusal, with its causes.
pub fn message<T>(result: Result<T, PlanError>) -> String {
    let Err(error) = result else { panic!("it is not refused") };
    error.to_string()
}
