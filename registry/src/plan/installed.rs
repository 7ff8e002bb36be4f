//! Folders of the packages of a lock.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use sheaf_project::{
    FileError, Found, LOCK_NAME, LockedPackage, Owners, PackagePrograms, PackagesLock, Project, Source,
};

use crate::store::{SourceStore, StoreError};
use crate::tree::TreeHash;

/// Cause why a program cannot use its dependencies. Each message has the remedy.
#[derive(Debug, thiserror::Error)]
pub enum NotInstalled {
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] Box<FileError>),
    /// The lock is another user's.
    #[error("{0}")]
    Foreign(String),
    /// The lock does not have the dependency.
    #[error("{name} is a dependency in Sheaf.toml, but {LOCK_NAME} does not have it; run `sheaf install`")]
    NotLocked {
        /// The dependency.
        name: String,
    },
    /// The sources are not in the store.
    #[error("the sources of {name} {version} are not here; run `sheaf install`")]
    NotFetched {
        /// The package.
        name: String,
        /// Its version.
        version: String,
    },
    /// The sources in the store have changed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The packages of a lock, by the folder of the package that asks.
#[derive(Debug)]
pub struct Installed {
    /// Dependencies of the project by their names there, as indices.
    roots: BTreeMap<String, usize>,
    packages: Vec<LockedPackage>,
    /// Dependencies of each package.
    edges: Vec<BTreeMap<String, usize>>,
    /// Indices by folder, of the packages that were asked for.
    folders: RefCell<HashMap<PathBuf, usize>>,
    /// Folders that this process has verified.
    verified: HashMap<TreeHash, PathBuf>,
    root: PathBuf,
    store: SourceStore,
}

impl Installed {
    /// Reads the lock of a project; the sources are looked for when they are asked for. `None` if the project has no
    /// dependencies.
    pub fn read(project: &Project, sources: &Path) -> Result<Option<Self>, NotInstalled> {
        let Some(manifest) = &project.manifest else { return Ok(None) };
        if manifest.dependencies.is_empty() && manifest.dev_dependencies.is_empty() {
            return Ok(None);
        }
        let found =
            PackagesLock::read(&project.lock_file(), &Owners::clone(&project.owners)).map_err(Box::new)?;
        let lock = match found {
            Found::File(lock) => lock,
            Found::Absent => PackagesLock::default(),
            Found::Foreign(foreign) => return Err(NotInstalled::Foreign(foreign.to_string())),
        };
        Ok(Some(Self::new(project, lock, SourceStore::new(sources), HashMap::new())))
    }

    /// The packages of a project's `lock`, whose sources are in `store`. Folders in `verified` are not verified again.
    pub fn new(
        project: &Project,
        lock: PackagesLock,
        store: SourceStore,
        verified: HashMap<TreeHash, PathBuf>,
    ) -> Self {
        let own = lock.dependencies_of(project).to_vec();
        let packages = lock.packages;
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        for (index, package) in packages.iter().enumerate() {
            by_name.entry(&package.name).or_default().push(index);
        }
        let index = |edge: &sheaf_project::LockedEdge| {
            by_name.get(&*edge.package)?.iter().copied().find(|index| edge.names(&packages[*index]))
        };
        let named = |edges: &[sheaf_project::LockedEdge]| {
            edges.iter().filter_map(|edge| Some((edge.name.clone(), index(edge)?))).collect()
        };
        let edges = packages.iter().map(|package| named(&package.dependencies)).collect();
        let roots = named(&own);
        let root = project.lock_root().to_path_buf();
        Self { roots, packages, edges, folders: RefCell::default(), verified, root, store }
    }

    /// Remote caches that the authors of signed packages name for their compiled programs.
    pub fn programs(&self) -> Vec<PackagePrograms> {
        let named = |package: &LockedPackage| {
            Some(PackagePrograms { remote: package.programs.clone()?, signer: package.signer.clone()? })
        };
        let mut programs: Vec<_> = self.packages.iter().filter_map(named).collect();
        programs.dedup();
        programs
    }

    /// The folder of the package that a package calls `name`, verified; `None` if it has no such dependency. `package` is the
    /// folder of the package that asks; `None` for the project itself.
    pub fn folder(&self, package: Option<&Path>, name: &str) -> Result<Option<PathBuf>, NotInstalled> {
        let found = match package {
            None => self.roots.get(name),
            Some(folder) => {
                let asking = self.folders.borrow().get(folder).copied();
                asking.and_then(|asking| self.edges.get(asking)?.get(name))
            }
        };
        let Some(&index) = found else { return Ok(None) };
        let package = &self.packages[index];
        let not_fetched =
            || NotInstalled::NotFetched { name: package.name.clone(), version: package.version.to_string() };
        let folder = match (&package.source, &package.tree) {
            (Source::Path { folder }, _) => self.root.join(folder),
            (_, Some(tree)) => {
                let hash: TreeHash = tree.parse().map_err(|_| not_fetched())?;
                match self.verified.get(&hash) {
                    Some(folder) => folder.clone(),
                    None => self.store.get(&hash)?.ok_or_else(not_fetched)?,
                }
            }
            (_, None) => return Err(not_fetched()),
        };
        self.folders.borrow_mut().insert(folder.clone(), index);
        Ok(Some(folder))
    }
}
