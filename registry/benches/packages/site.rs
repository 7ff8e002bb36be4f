//! A registry and its packages in a folder, served on loopback.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use sheaf_project::{LockedPackage, Owners, Project};
use sheaf_registry::git::{Address, CommitId, Options, Repository, Want};
use sheaf_registry::index::{Entry, EntryDependency, package_path};
use sheaf_registry::plan::Access;
use sheaf_registry::resolve::Root;
use sheaf_registry::resolve::synthetic::{Memory, Size, registry};
use sheaf_registry::store::{Item, SourceStore};

use crate::git::{self, Daemon};

/// The registry.
const SIZE: Size = Size { packages: 10_000, versions: 10, graph: 200 };

/// Minimum number of packages of a resolution.
pub const LEAST: usize = 150;

/// Folder of a store with the packages of the graph.
const MADE: &str = "made";

/// Number of files of a package, and their size in bytes.
const FILES: (usize, usize) = (8, 4_000);

/// Number of packages that get a version in an update.
const PUBLISHED: usize = 10;

/// A git registry, repositories of the packages of one graph, and a project that needs them.
pub struct Site {
    pub folder: PathBuf,
    /// Address of the index.
    pub address: String,
    memory: Memory,
    root: Root,
    /// The lines of each package.
    lines: BTreeMap<String, String>,
    pub daemon: Daemon,
}

/// The name of a package, as the generator of registries gives it.
pub fn name(number: usize) -> String {
    format!("package-{number:05}")
}

impl Site {
    pub fn new(folder: &Path) -> Self {
        let daemon = Daemon::new(folder);
        let address = daemon.address("index");
        let (memory, root) = registry(SIZE, 0);
        let trees: Vec<(String, String)> = (0..SIZE.graph).map(|number| package(folder, number)).collect();
        let mut lines = BTreeMap::new();
        for (number, (id, candidates)) in memory.packages.iter().enumerate() {
            let unknown = || ("0".repeat(40), format!("sha256-{}=", "A".repeat(43)));
            let (commit, tree) = trees.get(number).cloned().unwrap_or_else(unknown);
            let text: String = candidates
                .iter()
                .map(|candidate| {
                    let dependencies = candidate.dependencies.iter().map(|requirement| EntryDependency {
                        name: requirement.name.clone(),
                        package: None,
                        range: requirement.range.clone(),
                        registry: None,
                    });
                    let entry = Entry {
                        form: 1,
                        name: id.name.clone(),
                        version: candidate.version.clone(),
                        dependencies: dependencies.collect(),
                        features: None,
                        repository: daemon.address(&id.name),
                        reference: "refs/tags/v1".into(),
                        commit: commit.clone(),
                        folder: None,
                        tree: tree.clone(),
                        size: 32_000,
                        published: "2026-01-02T03:04:05Z".parse().ok(),
                        yanked: None,
                        license: Some("Apache-2.0".into()),
                        description: Some("A generated package of a generated registry".into()),
                        sheaf: None,
                        programs: None,
                        signature: None,
                    };
                    format!("{}\n", entry.line())
                })
                .collect();
            lines.insert(id.name.clone(), text);
        }
        let mut files: Vec<(String, String)> =
            vec![("config.toml".into(), "version = 1\nname = \"bench\"\n".into())];
        files.extend(lines.iter().map(|(name, text)| (package_path(name).unwrap(), text.clone())));
        git::commit(&folder.join("index"), &files);
        let dependencies: String = root
            .requirements
            .iter()
            .map(|requirement| format!("{} = \"{}\"\n", requirement.name, requirement.range))
            .collect();
        fs::create_dir(folder.join("project")).unwrap();
        let manifest =
            format!("[package]\nname = \"bench\"\nversion = \"0.1.0\"\n\n[dependencies]\n{dependencies}");
        fs::write(folder.join("project/Sheaf.toml"), manifest).unwrap();
        Self { folder: folder.into(), address, memory, root, lines, daemon }
    }

    /// The project, and what its commands may reach.
    pub fn project(&self, offline: bool) -> (Project, Access) {
        project(&self.folder, &self.address, offline)
    }

    /// The same without a network, for resolutions: every package of the graph is in the store.
    pub fn at_hand(&self) -> (Project, Access) {
        at_hand(&self.folder, &self.address)
    }

    /// Adds a version to ten packages, others in each round.
    pub fn publish(&mut self, round: usize) {
        let mut files = Vec::new();
        for step in 0..PUBLISHED {
            let name = name(round + step * 501);
            let text = self.lines.get_mut(&name).unwrap();
            let last = text.lines().last().unwrap().replace("\"1.9.0\"", "\"1.10.0\"");
            writeln!(text, "{last}").unwrap();
            files.push((package_path(&name).unwrap(), text.clone()));
        }
        git::commit(&self.folder.join("index"), &files);
    }

    /// The registry as JSON: the project's requirements, and the versions of each package with theirs.
    pub fn graph(&self) -> String {
        let pairs = |requirements: &[sheaf_registry::resolve::Requirement]| {
            let pairs: Vec<_> = requirements.iter().map(|to| (&*to.name, to.range.to_string())).collect();
            serde_json::to_value(pairs).unwrap()
        };
        let packages: BTreeMap<&str, Vec<_>> = self
            .memory
            .packages
            .iter()
            .map(|(id, candidates)| {
                let versions =
                    candidates.iter().map(|one| (one.version.to_string(), pairs(&one.dependencies)));
                (&*id.name, versions.collect())
            })
            .collect();
        serde_json::json!({ "roots": pairs(&self.root.requirements), "packages": packages }).to_string()
    }
}

/// The project in the folder of a site, and what its commands may reach.
pub fn project(folder: &Path, address: &str, offline: bool) -> (Project, Access) {
    let owners = Owners::of_process(|_| None, &[]);
    let project = Project::locate_from(&folder.join("project"), owners).unwrap();
    (project, crate::access(folder, address, offline))
}

/// The same without a network, for resolutions: every package of the graph is in the store.
pub fn at_hand(folder: &Path, address: &str) -> (Project, Access) {
    let (project, access) = project(folder, address, true);
    (project, Access { sources: folder.join(MADE), ..access })
}

/// Makes the repository of a package; its commit and the hash of its tree.
fn package(folder: &Path, number: usize) -> (String, String) {
    let name = name(number);
    let mut files =
        vec![("Sheaf.toml".to_owned(), format!("[package]\nname = \"{name}\"\nversion = \"1.0.0\"\n"))];
    files.extend((0..FILES.0).map(|file| {
        let mut text = String::new();
        while text.len() < FILES.1 {
            writeln!(text, "(def value-{number}-{file}-{} {})", text.len(), text.len() * 7919 + number)
                .unwrap();
        }
        (format!("src/module-{file}.shf"), text)
    }));
    let place = folder.join(&name);
    git::commit(&place, &files);
    let address = Address::parse(place.to_str().unwrap()).unwrap();
    let go = AtomicBool::new(false);
    let repository = Repository::new("/nowhere", address, Options::default());
    let id: CommitId = repository.fetch(&Want::Tag("v1".into()), &go, |_| ()).unwrap();
    let commit = repository.commit(id).unwrap().unwrap();
    let made = SourceStore::new(folder.join(MADE)).insert(&commit, None, None, &go).unwrap();
    (id.to_string(), made.hash.to_string())
}

/// The fetch of a locked package.
pub fn item(package: &LockedPackage) -> Item {
    Item {
        name: package.name.clone(),
        address: Address::parse(package.repository.as_deref().unwrap()).unwrap(),
        want: Want::Tag("v1".into()),
        commit: package.commit.as_deref().and_then(|commit| commit.parse().ok()),
        subfolder: None,
        hash: package.tree.as_deref().and_then(|tree| tree.parse().ok()),
        options: Options::default(),
    }
}
