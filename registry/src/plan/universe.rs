//! The packages that exist, as the resolver asks for them: versions of registries, commits of git repositories, folders.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use semver::Version;
use sheaf_project::{
    Dependency, DependencySource, FileError, LockedPackage, MANIFEST_NAME, Owners, Project, SheafToml, Source,
};
use url::Url;

use super::Access;
use super::lock::archive_names;
use crate::git::{Address, Commit, CommitId, GitError, Progress, Repository, Want};
use crate::index::{Entry, Folder, GitFiles, HttpFiles, Index, IndexError, IndexFiles};
use crate::resolve::{Candidate, Index as Versions, PackageId, Requirement};
use crate::store::{SourceStore, StoreError};
use crate::tree::TreeHash;

/// Maximum size of a manifest in bytes.
const MAX_MANIFEST: u64 = 1 << 20;

/// Maximum number of files and folders in which the manifest of a package is looked for.
const MAX_FILES: usize = 100_000;

/// Failure to read what versions a package has.
#[derive(Debug, thiserror::Error)]
pub enum UniverseError {
    /// The index of a registry.
    #[error(transparent)]
    Index(#[from] IndexError),
    /// A git repository.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The store of sources.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The manifest of a package in a folder or a repository.
    #[error(transparent)]
    Manifest(#[from] Box<FileError>),
    /// A dependency on a registry that has no address.
    #[error(
        "{location}: {} has no address; name it under [registries], as in `{} = \"https://registry.example/index\"`",
        name.as_ref().map_or_else(|| "the default registry".into(), |name| format!("the registry {name}")),
        name.as_deref().unwrap_or("default")
    )]
    NoRegistry {
        /// Its name; `None` for the default.
        name: Option<String>,
        /// Location of the dependency.
        location: String,
    },
    /// No such package at its origin.
    #[error("{origin} has no package {package}; {remedy}")]
    NoPackage {
        /// The package.
        package: String,
        /// Its origin.
        origin: Source,
        /// The fix.
        remedy: String,
    },
    /// A package with a dependency that other machines cannot have.
    #[error(
        "{package} depends on {dependency} by a path, which only packages in folders can; ask its author to give a version"
    )]
    PathOfOther {
        /// The package.
        package: String,
        /// Its dependency.
        dependency: String,
    },
    /// A dependency that is to come from a workspace, in a package outside of any.
    #[error(
        "{location}: {package} is to come from a workspace, and this package is in none; ask its author to give a version"
    )]
    OutsideWorkspace {
        /// The dependency.
        package: String,
        /// Location of its line.
        location: String,
    },
    /// A manifest of another user.
    #[error("{0}")]
    Foreign(String),
}

/// Origin of the sources of a version.
#[derive(Debug, Clone)]
pub enum Origin {
    /// An entry of a registry.
    Entry(Box<Entry>),
    /// A commit of a git repository, whose sources are in the store.
    Commit {
        /// The commit.
        commit: CommitId,
        /// The folder of the package in the repository; empty for its root.
        folder: String,
        /// The hash of its tree.
        tree: TreeHash,
    },
    /// A folder of this machine.
    Folder(PathBuf),
}

/// The packages that a resolution can meet.
pub struct Universe<'a> {
    access: &'a Access,
    /// The folder of the project: paths start there.
    root: &'a Path,
    owners: &'a Owners,
    indexes: RefCell<BTreeMap<String, Rc<Index>>>,
    /// Failures that show when the index is asked.
    failed: RefCell<BTreeMap<String, UniverseError>>,
    candidates: RefCell<HashMap<PackageId, Arc<[Candidate]>>>,
    origins: RefCell<HashMap<(PackageId, Version), Origin>>,
    /// A package and the only one of its compatible versions that may be taken.
    pub precise: Option<(String, Version)>,
    /// Locked packages that stay: they are there even if their registry can no longer say so.
    pub kept: Vec<LockedPackage>,
    /// Manifests of the members of the project's workspace, by folder. What their development needs counts too.
    pub members: HashMap<String, SheafToml>,
    /// Commits that `Sheaf.lock` has for git repositories: taken instead of what their references name now.
    locked: HashMap<Source, CommitId>,
    /// The sources on this machine, listed when the first are looked for.
    here: OnceCell<Here>,
}

/// The sources on this machine, which are checked when they are used.
struct Here {
    /// Trees in the store.
    trees: HashSet<TreeHash>,
    /// Names of files in the folder of archives.
    archives: HashSet<String>,
}

impl Here {
    fn list(access: &Access) -> Self {
        let archives =
            access.vendor.iter().filter_map(|folder| fs::read_dir(folder).ok()).flatten().flatten();
        Self {
            trees: SourceStore::new(&access.sources).trees(),
            archives: archives.filter_map(|entry| entry.file_name().into_string().ok()).collect(),
        }
    }
}

impl<'a> Universe<'a> {
    /// The packages that a project in `root` can reach; git repositories have the `locked` commits.
    pub fn new(
        access: &'a Access,
        root: &'a Path,
        owners: &'a Owners,
        locked: HashMap<Source, CommitId>,
    ) -> Self {
        let (indexes, failed, candidates, origins) = Default::default();
        Self {
            access,
            root,
            owners,
            indexes,
            failed,
            candidates,
            origins,
            precise: None,
            kept: Vec::new(),
            members: HashMap::new(),
            locked,
            here: OnceCell::new(),
        }
    }

    /// The origin of a version that the resolver was given.
    pub fn origin(&self, package: &PackageId, version: &Version) -> Option<Origin> {
        if let Some(origin) = self.origins.borrow().get(&(package.clone(), version.clone())) {
            return Some(origin.clone());
        }
        let Source::Registry { index } = &package.source else { return None };
        let entries = self.index(index).ok()?.entries(&package.name).ok()?;
        let entry = entries.iter().find(|entry| entry.version == *version)?;
        Some(Origin::Entry(Box::new(entry.clone())))
    }

    /// True if the sources of a version may be fetched, or are on this machine.
    pub fn is_at_hand(&self, entry: &Entry) -> bool {
        if !self.access.offline {
            return true;
        }
        let here = self.here.get_or_init(|| Here::list(self.access));
        let Ok(tree) = entry.tree.parse() else { return false };
        let mut archives = archive_names(&entry.name, &entry.version, &tree).into_iter();
        here.trees.contains(&tree) || archives.any(|name| here.archives.contains(&name))
    }

    /// The index at an address, opened and brought up to date once.
    pub fn index(&self, address: &str) -> Result<Rc<Index>, UniverseError> {
        if let Some(index) = self.indexes.borrow().get(address) {
            return Ok(Rc::clone(index));
        }
        if let Some(error) = self.failed.borrow_mut().remove(address) {
            return Err(error);
        }
        let index = Rc::new(self.open(address)?);
        self.indexes.borrow_mut().insert(address.into(), Rc::clone(&index));
        Ok(index)
    }

    /// Opens the index at an address: the first of its mirrors that can be read, or else itself.
    fn open(&self, address: &str) -> Result<Index, UniverseError> {
        for mirror in self.access.mirrors.get(address).into_iter().flatten() {
            let opened =
                self.files(mirror).and_then(|files| Ok(Index::open_mirror(address.into(), mirror, files)?));
            match opened {
                Err(error) if !matches!(error, UniverseError::Git(GitError::Interrupted { .. })) => {
                    let note = format!("the mirror {mirror} of {address} is passed over: {error}");
                    self.access.reporter.note(&note);
                }
                opened => return opened,
            }
        }
        Ok(Index::open(address.into(), self.files(address)?)?)
    }

    /// The files of an index: `sparse+` and an address for a static copy, a folder, or else a git repository.
    fn files(&self, address: &str) -> Result<Box<dyn IndexFiles>, UniverseError> {
        let unreadable =
            |cause: String, remedy: String| IndexError::Unreadable { index: address.into(), cause, remedy };
        if let Some(copy) = address.strip_prefix("sparse+") {
            let url =
                Url::parse(copy).ok().filter(|url| matches!(url.scheme(), "http" | "https")).ok_or_else(
                    || unreadable("it is no http or https address".into(), "correct it in Sheaf.toml".into()),
                )?;
            let cache =
                self.access.registries.join(hex::encode(&<sha2::Sha256 as sha2::Digest>::digest(copy)[..16]));
            let token = self.access.login(&host_of(&url)).map(|login| login.token.as_str());
            let files = HttpFiles::new(url, cache, token, self.access.offline)
                .map_err(|error| unreadable(error.cause, error.remedy))?;
            return Ok(Box::new(files));
        }
        let folder = Path::new(address.strip_prefix("file://").unwrap_or(address));
        if folder.is_absolute() && folder.join(crate::index::CONFIG_NAME).is_file() {
            return Ok(Box::new(Folder::new(folder.into())));
        }
        let (repository, id) = self.fetch(address, &Want::Head)?;
        Ok(Box::new(GitFiles::new(commit(&repository, id)?)))
    }

    /// The commit of a reference of a repository: fetched, or without a network the last that was.
    fn fetch(&self, address: &str, want: &Want) -> Result<(Repository, CommitId), UniverseError> {
        let address = Address::parse(address)?;
        let options = self.access.git_options(&address);
        let repository = Repository::in_cache(&self.access.repositories, address, options);
        let key = (repository.address().as_str().to_owned(), want.clone());
        // Commits that are here are not asked for.
        let here = match want {
            Want::Commit(_) => repository.last(want)?,
            _ => self.access.fetched.borrow().get(&key).copied(),
        };
        let id = if let Some(id) = here {
            id
        } else if self.access.offline {
            let last = repository.last(want)?;
            last.ok_or_else(|| GitError::Unreachable {
                address: repository.address().clone(),
                cause: "it was not fetched before, and --offline or SHEAF_OFFLINE forbids to fetch it".into(),
            })?
        } else {
            let reporter = &self.access.reporter;
            reporter.updating(repository.address().as_str());
            let found = repository
                .fetch(want, &self.access.interrupt, |progress: Progress| reporter.waiting(progress));
            reporter.updated();
            found?
        };
        self.access.fetched.borrow_mut().insert(key, id);
        Ok((repository, id))
    }

    /// The commit that the tag of a locked package names now, or without a network named last; `None` for a package that is
    /// not fetched by a tag of its own.
    ///
    /// # Errors
    ///
    /// If the repository cannot be asked, or has no such tag.
    pub fn tagged(&self, locked: &LockedPackage) -> Result<Option<String>, UniverseError> {
        match &locked.source {
            Source::Git { url, reference: want @ Want::Tag(_) } => {
                Ok(Some(self.fetch(url, want)?.1.to_string()))
            }
            _ => Ok(None),
        }
    }

    fn is_kept(&self, package: &PackageId) -> bool {
        self.kept.iter().any(|kept| kept.name == package.name && kept.source == package.source)
    }

    /// The locked versions of a package, which need what they have.
    fn kept_candidates(&self, package: &PackageId) -> Arc<[Candidate]> {
        let exactly = |version: &Version| {
            let comparator = semver::Comparator {
                op: semver::Op::Exact,
                major: version.major,
                minor: Some(version.minor),
                patch: Some(version.patch),
                pre: version.pre.clone(),
            };
            semver::VersionReq { comparators: vec![comparator] }
        };
        let kept = self.kept.iter().filter(|kept| kept.name == package.name && kept.source == package.source);
        kept.map(|kept| Candidate {
            dependencies: kept
                .dependencies
                .iter()
                .map(|edge| Requirement {
                    name: edge.name.clone(),
                    package: PackageId { name: edge.package.clone(), source: edge.source.clone() },
                    range: exactly(&edge.version),
                    location: None,
                })
                .collect(),
            published: kept.published,
            ..Candidate::new(kept.version.clone())
        })
        .collect()
    }

    /// False for versions that `precise` excludes.
    fn is_wanted(&self, package: &str, version: &Version) -> bool {
        let bucket = |version: &Version| match (version.major, version.minor) {
            (0, 0) => (0, 0, version.patch),
            (0, minor) => (0, minor, 0),
            (major, _) => (major, 0, 0),
        };
        let precise = self.precise.as_ref().filter(|(name, _)| name == package);
        precise.is_none_or(|(_, precise)| precise == version || bucket(precise) != bucket(version))
    }

    /// The only version of a package in a git repository.
    fn of_git(&self, package: &PackageId, url: &str, want: &Want) -> Result<Candidate, UniverseError> {
        let want = match self.locked.get(&package.source) {
            Some(commit) => Want::Commit(commit.to_string()),
            None => want.clone(),
        };
        let (repository, id) = self.fetch(url, &want)?;
        let commit = commit(&repository, id)?;
        let no_package = || UniverseError::NoPackage {
            package: package.name.clone(),
            origin: package.source.clone(),
            remedy: format!("commit {id} has no {MANIFEST_NAME} with that name"),
        };
        let (folder, manifest) = find(&commit, &package.name)?.ok_or_else(no_package)?;
        let store = SourceStore::new(&self.access.sources);
        let subfolder = (!folder.is_empty()).then_some(folder.as_str());
        let tree = store.insert(&commit, subfolder, None, &AtomicBool::new(false))?.hash;
        let requirements = self.requirements(&manifest, package, None)?;
        Ok(self.single(package, &manifest, requirements, Origin::Commit { commit: id, folder, tree }))
    }

    /// The only version of a package in a folder.
    pub(super) fn of_folder(&self, package: &PackageId, folder: &str) -> Result<Candidate, UniverseError> {
        let path = self.root.join(folder);
        let file = path.join(MANIFEST_NAME);
        let no_package = |remedy: String| UniverseError::NoPackage {
            package: package.name.clone(),
            origin: package.source.clone(),
            remedy,
        };
        let manifest = match self.members.get(folder) {
            Some(manifest) => manifest.clone(),
            None => {
                let found = Project::locate_from(&path, self.owners.clone()).map_err(Box::new)?;
                let path = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
                let is_own = path == found.root;
                let mut passed_over = found.passed_over.iter();
                let foreign = passed_over.find(|other| other.path.parent() == Some(&path));
                match (foreign, found.manifest.filter(|_| is_own)) {
                    (Some(foreign), _) => return Err(UniverseError::Foreign(foreign.to_string())),
                    (None, Some(manifest)) => manifest,
                    (None, None) => return Err(no_package(format!("{} does not exist", file.display()))),
                }
            }
        };
        if let Some(name) = manifest.package.name.as_ref().filter(|name| **name != package.name) {
            return Err(no_package(format!("{} is the package {name}", path.display())));
        }
        let requirements = self.requirements(&manifest, package, Some(folder))?;
        Ok(self.single(package, &manifest, requirements, Origin::Folder(path)))
    }

    fn single(
        &self,
        package: &PackageId,
        manifest: &SheafToml,
        dependencies: Vec<Requirement>,
        origin: Origin,
    ) -> Candidate {
        let version = manifest.package.version.clone().unwrap_or(Version::new(0, 0, 0));
        self.origins.borrow_mut().insert((package.clone(), version.clone()), origin);
        Candidate { dependencies, sheaf: manifest.package.sheaf.clone(), ..Candidate::new(version) }
    }

    /// The requirements of a package that is not of a registry; `folder` is that of a package in a folder.
    fn requirements(
        &self,
        manifest: &SheafToml,
        package: &PackageId,
        folder: Option<&str>,
    ) -> Result<Vec<Requirement>, UniverseError> {
        let requirement = |dependency: &Dependency| {
            let source = match (&dependency.source, folder) {
                (DependencySource::Path { .. }, None) => {
                    return Err(UniverseError::PathOfOther {
                        package: package.name.clone(),
                        dependency: dependency.name.clone(),
                    });
                }
                _ => self.access.source(dependency, folder.unwrap_or_default())?,
            };
            Ok(Requirement {
                name: dependency.name.clone(),
                package: PackageId { name: dependency.package.clone(), source },
                range: dependency.range.clone(),
                location: folder.is_some().then(|| dependency.location.to_string()),
            })
        };
        let is_member = folder.is_some_and(|folder| self.members.contains_key(folder));
        let development = manifest.dev_dependencies.iter().filter(|_| is_member);
        manifest.dependencies.iter().chain(development).map(requirement).collect()
    }
}

impl Versions for Universe<'_> {
    type Error = UniverseError;

    fn candidates(&self, package: &PackageId) -> Result<Arc<[Candidate]>, UniverseError> {
        if let Some(candidates) = self.candidates.borrow().get(package) {
            return Ok(Arc::clone(candidates));
        }
        let candidates: Arc<[Candidate]> = match &package.source {
            Source::Registry { index } => {
                let entries = match self.index(index)?.entries(&package.name) {
                    Err(error @ IndexError::Package { .. }) if self.is_kept(package) => {
                        self.access.reporter.note(&format!("{error}; the locked version is kept"));
                        return Ok(self.kept_candidates(package));
                    }
                    entries => entries?,
                };
                let wanted = entries.iter().filter(|entry| self.is_wanted(&package.name, &entry.version));
                let seen = |entry| Candidate { absent: !self.is_at_hand(entry), ..candidate(entry, index) };
                wanted.map(seen).collect()
            }
            Source::Git { url, reference } => Arc::from([self.of_git(package, url, reference)?]),
            Source::Path { folder } => Arc::from([self.of_folder(package, folder)?]),
        };
        self.candidates.borrow_mut().insert(package.clone(), Arc::clone(&candidates));
        Ok(candidates)
    }

    fn prefetch(&self, packages: &[&PackageId]) {
        let mut names: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for package in packages {
            if let Source::Registry { index } = &package.source {
                names.entry(index).or_default().push(&package.name);
            }
        }
        for (address, names) in names {
            match self.index(address) {
                Ok(index) => index.prefetch(names.into_iter()),
                Err(error) => drop(self.failed.borrow_mut().insert(address.into(), error)),
            }
        }
    }
}

/// An entry as the resolver sees it.
fn candidate(entry: &Entry, index: &str) -> Candidate {
    let requirement = |dependency: &crate::index::EntryDependency| Requirement {
        name: dependency.name.clone(),
        package: PackageId {
            name: dependency.package().to_owned(),
            source: Source::Registry { index: dependency.registry.as_deref().unwrap_or(index).to_owned() },
        },
        range: dependency.range.clone(),
        location: None,
    };
    Candidate {
        dependencies: entry.dependencies.iter().map(requirement).collect(),
        yanked: entry.yanked.clone(),
        published: entry.published,
        sheaf: entry.sheaf.clone(),
        version: entry.version.clone(),
        absent: false,
    }
}

/// A commit that was just fetched.
fn commit(repository: &Repository, id: CommitId) -> Result<Commit, GitError> {
    let gone = || GitError::NoCommit {
        address: repository.address().clone(),
        commit: id,
        cause: "it was removed meanwhile".into(),
    };
    repository.commit(id)?.ok_or_else(gone)
}

/// The folder and the manifest of a package in a commit: at its root, or else the first in the order of paths.
pub(crate) fn find(commit: &Commit, name: &str) -> Result<Option<(String, SheafToml)>, UniverseError> {
    let read = |path: &str, bytes: &[u8]| -> Option<SheafToml> {
        let shown = PathBuf::from(format!("{}/{path}", commit.address()));
        SheafToml::parse(&shown, str::from_utf8(bytes).ok()?).ok()
    };
    let is_named = |manifest: &SheafToml| manifest.package.name.as_deref() == Some(name);
    let root = commit.blob(MANIFEST_NAME, MAX_MANIFEST)?.and_then(|bytes| read(MANIFEST_NAME, &bytes));
    let workspace = root.as_ref().and_then(|manifest| manifest.workspace.clone());
    if let Some(manifest) = root.filter(is_named) {
        return Ok(Some((String::new(), manifest)));
    }
    for file in commit.files("", MAX_FILES)? {
        let Some(folder) = file.path.strip_suffix(MANIFEST_NAME).and_then(|path| path.strip_suffix('/'))
        else {
            continue;
        };
        let bytes = commit.read(&file, MAX_MANIFEST)?;
        if let Some(mut manifest) = read(&file.path, &bytes).filter(is_named) {
            let workspace = workspace.as_ref().filter(|workspace| workspace.includes(folder));
            manifest.inherit(workspace.map(|workspace| (workspace, folder))).map_err(Box::new)?;
            return Ok(Some((folder.into(), manifest)));
        }
    }
    Ok(None)
}

/// The host of an address, with its port if it is not the usual one.
pub(super) fn host_of(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}
