//! The resolution of a project and its record in `Sheaf.lock`.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use jiff::Timestamp;
use semver::{Version, VersionReq};
use sheaf_project::{
    Dependency, EditError, FileError, Found, LOCK_NAME, LockedEdge, LockedPackage, Member, PackagesLock,
    Project, SheafToml, Source,
};

use super::universe::Origin;
use super::{Access, Universe, UniverseError};
use crate::git::{Address, CommitId, GitError, Want};
use crate::index::AlteredEntry;
use crate::resolve::{
    PackageId, PackageVersion, Policy, Requirement, Resolution, ResolveError, Root, resolve,
};
use crate::store::{Fetched, Item, SourceStore, StoreError, fetch_all};
use crate::tree::TreeHash;

/// Maximum number of fetches at a time.
const JOBS: usize = 8;

/// Rules of a resolution.
#[derive(Debug, Clone, Default)]
pub struct Resolve {
    /// The lock must not change.
    pub locked: bool,
    /// Prefers the lowest versions.
    pub minimal: bool,
    /// Passes over versions that were published later.
    pub exclude_newer: Option<Timestamp>,
    /// Packages whose locked versions are forgotten; all of them if empty and `update` is set.
    pub forget: Vec<String>,
    /// Forgets locked versions.
    pub update: bool,
    /// A version that a package must have afterwards.
    pub precise: Option<(String, Version)>,
    /// The running version of Sheaf.
    pub sheaf: Option<Version>,
}

/// A lock that answers the manifest.
#[derive(Debug)]
pub struct Outcome {
    /// The packages.
    pub lock: PackagesLock,
    /// The lock of before.
    pub before: PackagesLock,
}

/// Failure of a resolution. Nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The requirements have no solution, or an index cannot be read.
    #[error(transparent)]
    Resolve(#[from] Box<ResolveError<UniverseError>>),
    /// A dependency of the manifest has no origin.
    #[error(transparent)]
    Universe(#[from] Box<UniverseError>),
    /// The lock cannot be read.
    #[error(transparent)]
    Lock(#[from] Box<FileError>),
    /// The lock is another user's.
    #[error("{0}")]
    Foreign(String),
    /// The lock would change.
    #[error(
        "{LOCK_NAME} does not answer Sheaf.toml, and --locked forbids to change it: {change}; run the command without --locked, and commit {LOCK_NAME}"
    )]
    WouldChange {
        /// The first change.
        change: String,
    },
    /// A registry gives a locked version another tree.
    #[error(transparent)]
    Rewritten(#[from] Box<Rewritten>),
    /// The line of a version is not what its author signed.
    #[error(transparent)]
    Altered(#[from] Box<AlteredEntry>),
    /// The lock cannot be written.
    #[error(transparent)]
    Edit(#[from] Box<EditError>),
    /// The lock has no usable tree hash for a package.
    #[error(
        "{LOCK_NAME} has no valid tree hash of {name} {version}, so its sources cannot be verified; restore the file, or remove \
         the package's block and run `sheaf install`"
    )]
    NoHash {
        /// The package.
        name: String,
        /// Its version.
        version: String,
    },
    /// A package cannot be fetched.
    #[error("{name} {version}: {source}")]
    Fetch {
        /// The package.
        name: String,
        /// Its version.
        version: String,
        /// The failure.
        source: Box<StoreError>,
    },
}

/// A locked version that its registry gives another tree.
#[derive(Debug, thiserror::Error)]
#[error(
    "{origin} has changed {name} {version}: its tree was {before}, and is {now}; a published version never changes: ask who keeps the \
     registry, or accept the new tree by removing the package from {LOCK_NAME}"
)]
pub struct Rewritten {
    /// The package.
    pub name: String,
    /// Its version.
    pub version: Version,
    /// The registry.
    pub origin: String,
    /// The locked tree.
    pub before: String,
    /// The tree in the index.
    pub now: String,
}

/// The lock of a project that answers its manifest. Writes nothing.
pub fn lock(project: &Project, access: &Access, how: &Resolve) -> Result<Outcome, PlanError> {
    let found = PackagesLock::read(&project.lock_file(), &project.owners).map_err(Box::new)?;
    let before = match found {
        Found::File(lock) => lock,
        Found::Absent => PackagesLock::default(),
        Found::Foreign(foreign) => return Err(PlanError::Foreign(foreign.to_string())),
    };
    let (root, members) = whole(project)?;
    let project = &root;
    let mut requirements = requirements(project, access, &before)?;
    requirements.extend(members.iter().map(of_member));
    let members: HashMap<_, _> = members.into_iter().map(|member| (member.folder, member.manifest)).collect();
    if !how.update && how.precise.is_none() && answers(&before, &requirements, project, access, &members) {
        return Ok(Outcome { lock: before.clone(), before });
    }
    let locked = resolution_of(&before);
    let kept = match (&how.precise, how.update && how.forget.is_empty()) {
        (Some((name, _)), _) => without(&locked, std::slice::from_ref(name)),
        (None, true) => Resolution::default(),
        (None, false) => without(&locked, &how.forget),
    };
    let commits = before.packages.iter().filter(|package| kept.packages.contains_key(&version_of(package)));
    let commits: HashMap<Source, CommitId> = commits
        .filter(|package| matches!(package.source, Source::Git { .. }))
        .filter_map(|package| Some((package.source.clone(), package.commit.as_ref()?.parse().ok()?)))
        .collect();
    let mut universe = Universe::new(access, &project.root, &project.owners, commits);
    universe.precise.clone_from(&how.precise);
    universe.members = members;
    let is_kept = |package: &&LockedPackage| kept.packages.contains_key(&version_of(package));
    universe.kept = before.packages.iter().filter(is_kept).cloned().collect();
    let name = project.manifest.as_ref().and_then(|manifest| manifest.package.name.clone());
    let root = Root { name: name.unwrap_or_else(|| "the project".into()), requirements };
    let policy = Policy {
        minimal: how.minimal,
        locked: kept,
        exclude_newer: how.exclude_newer,
        ..Policy::new(how.sheaf.clone().unwrap_or(Version::new(0, 1, 0)))
    };
    let resolution = resolve(&root, &universe, &policy).map_err(Box::new)?;
    let lock = record(&resolution, &universe, &before)?;
    other_signers(&before, &lock).iter().for_each(|text| access.reporter.note(text));
    if how.locked && lock != before {
        let change = before.difference(&lock).into_iter().next().map(|change| change.to_string());
        return Err(PlanError::WouldChange { change: change.unwrap_or_default() });
    }
    Ok(Outcome { lock, before })
}

/// The root of a project's workspace, or else the project itself; and the members. The given project is as it is given,
/// whatever its file says.
fn whole(project: &Project) -> Result<(Project, Vec<Member>), PlanError> {
    let mut root = project.clone();
    let mut changed = None;
    if let Some(workspace) = root.workspace.take() {
        changed = root.manifest.take().map(|manifest| (workspace.member, manifest));
        root.root = workspace.root;
        root = root.with_manifest(workspace.manifest).map_err(Box::new)?;
    }
    let table = root.manifest.as_ref().and_then(|manifest| manifest.workspace.as_ref());
    let members = table.map(|table| table.members(&root.root, &root.owners)).transpose().map_err(Box::new)?;
    let mut members = members.unwrap_or_default();
    if let Some((folder, manifest)) = changed
        && let Some(member) = members.iter_mut().find(|member| member.folder == folder)
    {
        member.manifest = manifest;
    }
    Ok((root, members))
}

/// A member as a requirement of its workspace; its name there is that of no dependency.
fn of_member(member: &Member) -> Requirement {
    Requirement {
        name: format!("./{}", member.folder),
        package: PackageId {
            name: member.name.clone(),
            source: Source::Path { folder: member.folder.clone() },
        },
        range: VersionReq::STAR,
        location: None,
    }
}

/// The project's own requirements, those of its development included.
fn requirements(
    project: &Project,
    access: &Access,
    before: &PackagesLock,
) -> Result<Vec<Requirement>, PlanError> {
    let dependencies = project
        .manifest
        .iter()
        .flat_map(|manifest| manifest.dependencies.iter().chain(&manifest.dev_dependencies));
    let requirement = |dependency: &Dependency| {
        let source = match access.source(dependency, "") {
            // A machine that does not know the registry can still use what is locked.
            Err(error @ UniverseError::NoRegistry { .. }) => {
                let locked = before.roots.iter().find(|edge| edge.name == dependency.name);
                let locked =
                    locked.filter(|edge| edge.package == dependency.package).map(|edge| edge.source.clone());
                locked
                    .filter(|source| matches!(source, Source::Registry { .. }))
                    .ok_or_else(|| Box::new(error))?
            }
            source => source.map_err(Box::new)?,
        };
        let location = &dependency.location;
        let file = location.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(Requirement {
            name: dependency.name.clone(),
            package: PackageId { name: dependency.package.clone(), source },
            range: dependency.range.clone(),
            location: Some(format!("{file}:{}", location.line)),
        })
    };
    dependencies.map(requirement).collect()
}

fn version_of(package: &LockedPackage) -> PackageVersion {
    PackageVersion {
        package: PackageId { name: package.name.clone(), source: package.source.clone() },
        version: package.version.clone(),
    }
}

/// A lock as the resolver's answer.
fn resolution_of(lock: &PackagesLock) -> Resolution {
    let mut by_name: HashMap<&str, Vec<&LockedPackage>> = HashMap::new();
    lock.packages.iter().for_each(|package| by_name.entry(&package.name).or_default().push(package));
    let target = |edge: &LockedEdge| {
        let package = by_name.get(&*edge.package)?.iter().find(|package| edge.names(package))?;
        Some((edge.name.clone(), version_of(package)))
    };
    let edges = |edges: &[LockedEdge]| edges.iter().filter_map(target).collect::<BTreeMap<_, _>>();
    Resolution {
        roots: edges(&lock.roots),
        packages: lock
            .packages
            .iter()
            .map(|package| (version_of(package), edges(&package.dependencies)))
            .collect(),
    }
}

/// True if the lock has a version for each requirement of the project, and of the packages in folders, whose manifests may
/// have changed; and nothing else.
fn answers(
    lock: &PackagesLock,
    requirements: &[Requirement],
    project: &Project,
    access: &Access,
    members: &HashMap<String, SheafToml>,
) -> bool {
    let are_met = |found: &[LockedEdge], requirements: &[Requirement]| {
        found.len() == requirements.len()
            && requirements.iter().all(|requirement| {
                let found = found.iter().find(|edge| edge.name == requirement.name);
                found.is_some_and(|found| {
                    found.package == requirement.package.name
                        && found.source == requirement.package.source
                        && requirement.range.matches(&found.version)
                })
            })
    };
    let mut universe = Universe::new(access, &project.root, &project.owners, HashMap::new());
    universe.members.clone_from(members);
    are_met(&lock.roots, requirements)
        && lock.packages.iter().all(|package| match &package.source {
            Source::Path { folder } => {
                universe.of_folder(&version_of(package).package, folder).is_ok_and(|now| {
                    now.version == package.version && are_met(&package.dependencies, &now.dependencies)
                })
            }
            _ => true,
        })
}

/// A resolution without the versions of some packages.
fn without(locked: &Resolution, names: &[String]) -> Resolution {
    let is_kept = |package: &PackageVersion| !names.contains(&package.package.name);
    Resolution {
        roots: locked
            .roots
            .iter()
            .filter(|(_, to)| is_kept(to))
            .map(|(name, to)| (name.clone(), to.clone()))
            .collect(),
        packages: locked
            .packages
            .iter()
            .filter(|(package, _)| is_kept(package))
            .map(|(package, edges)| (package.clone(), edges.clone()))
            .collect(),
    }
}

/// The lock of a resolution. Packages that were locked before keep their record.
fn record(
    resolution: &Resolution,
    universe: &Universe<'_>,
    before: &PackagesLock,
) -> Result<PackagesLock, PlanError> {
    let edge = |(name, to): (&String, &PackageVersion)| LockedEdge {
        name: name.clone(),
        package: to.package.name.clone(),
        version: to.version.clone(),
        source: to.package.source.clone(),
    };
    let mut packages = Vec::new();
    for (package, edges) in &resolution.packages {
        let dependencies: Vec<_> = edges.iter().map(edge).collect();
        let known = before.packages.iter().find(|known| version_of(known) == *package);
        let mut locked = match (universe.origin(&package.package, &package.version), known) {
            (Some(Origin::Entry(entry)), Some(known)) if known.tree.as_deref() != Some(&entry.tree) => {
                return Err(Box::new(Rewritten {
                    name: package.package.name.clone(),
                    version: package.version.clone(),
                    origin: package.package.source.to_string(),
                    before: known.tree.clone().unwrap_or_default(),
                    now: entry.tree.clone(),
                })
                .into());
            }
            (Some(origin), _) => located(package, origin)?,
            (None, Some(known)) => known.clone(),
            (None, None) => continue,
        };
        locked.dependencies = dependencies;
        packages.push(locked);
    }
    Ok(PackagesLock { roots: resolution.roots.iter().map(edge).collect(), packages })
}

fn located(package: &PackageVersion, origin: Origin) -> Result<LockedPackage, PlanError> {
    let mut locked = LockedPackage::new(
        package.package.name.clone(),
        package.version.clone(),
        package.package.source.clone(),
    );
    match origin {
        Origin::Entry(entry) => {
            locked.signer = entry.signer().map_err(Box::new)?.map(ToString::to_string);
            // An unsigned line may name any remote.
            let programs = entry.programs.filter(|_| locked.signer.is_some());
            locked.programs = programs.map(|programs| programs.remote);
            locked.repository = Some(entry.repository);
            locked.reference = Some(entry.reference);
            locked.commit = Some(entry.commit);
            locked.folder = entry.folder;
            locked.tree = Some(entry.tree);
            locked.published = entry.published;
        }
        Origin::Commit { commit, folder, tree } => {
            locked.commit = Some(commit.to_string());
            locked.folder = (!folder.is_empty()).then_some(folder);
            locked.tree = Some(tree.to_string());
        }
        Origin::Folder(_) => {}
    }
    Ok(locked)
}

/// Packages whose new version another author has signed, or nobody, in sentences.
fn other_signers(before: &PackagesLock, now: &PackagesLock) -> Vec<String> {
    let mut sentences = Vec::new();
    for package in &now.packages {
        let same = |old: &&LockedPackage| old.name == package.name && old.source == package.source;
        let mut known =
            before.packages.iter().filter(same).filter_map(|old| old.signer.as_deref()).peekable();
        let Some(old) = known.peek().map(|old| (*old).to_owned()) else { continue };
        if !known.any(|old| package.signer.as_deref() == Some(old)) {
            let signer = package
                .signer
                .as_deref()
                .map_or("nobody has signed it".into(), |key| format!("{key} signed it"));
            sentences.push(format!(
                "{} {} is not signed by {old}, as the locked version is: {signer}; ask the author before you use it",
                package.name, package.version
            ));
        }
    }
    sentences
}

/// The sources of a lock, verified.
#[derive(Debug, Default)]
pub struct Sources {
    /// Folders in the store by the hash of their trees, without those that came from archives a moment ago.
    pub folders: HashMap<TreeHash, PathBuf>,
    /// Packages that were not in the store.
    pub fetched: Vec<(String, Fetched)>,
}

/// Fetches the packages of a lock that are not in the store.
pub fn fetch(lock: &PackagesLock, access: &Access) -> Result<Sources, PlanError> {
    let store = SourceStore::new(&access.sources);
    let failed = |package: &LockedPackage, source: StoreError| PlanError::Fetch {
        name: package.name.clone(),
        version: package.version.to_string(),
        source: Box::new(source),
    };
    let mut packages = Vec::new();
    for package in lock.packages.iter().filter(|package| !matches!(package.source, Source::Path { .. })) {
        let hash = package.tree.as_deref().and_then(|tree| tree.parse().ok());
        // Without it nothing would be verified.
        let hash = hash.ok_or_else(|| PlanError::NoHash {
            name: package.name.clone(),
            version: package.version.to_string(),
        })?;
        packages.push((package, hash));
    }
    let hashes: Vec<TreeHash> = packages.iter().map(|(_, hash)| *hash).collect();
    let mut folders = store.get_all(&hashes);
    let mut wanted = Vec::new();
    for (package, hash) in packages {
        if folders.contains_key(&hash) {
            continue;
        }
        let item = item(package, hash, access).map_err(|error| failed(package, error.into()))?;
        let archive = access.vendor.as_ref().map(|folder| folder.join(archive_name(package, lock)));
        if let Some(archive) = archive.filter(|archive| archive.is_file()) {
            store.insert_archive(&archive, &hash).map_err(|error| failed(package, error))?;
            continue;
        }
        if access.offline {
            let cause =
                "it was not fetched before, and --offline or SHEAF_OFFLINE forbids to fetch it".into();
            return Err(failed(package, GitError::Unreachable { address: item.address, cause }.into()));
        }
        wanted.push((package, item));
    }
    let items: Vec<Item> = wanted.iter().map(|(_, item)| item.clone()).collect();
    let reporter = &access.reporter;
    let results = fetch_all(&store, &access.repositories, &items, JOBS, &access.interrupt, &**reporter);
    // A failure of one package leaves others undone; it, and not they, is the cause.
    let mut fetched = Vec::new();
    let mut left_out = None;
    for ((package, _), result) in wanted.iter().zip(results) {
        match result {
            Ok(found) => {
                folders.insert(found.hash, found.path.clone());
                fetched.push((package.name.clone(), found));
            }
            Err(error @ StoreError::Git(GitError::Interrupted { .. })) => {
                left_out = Some(failed(package, error));
            }
            Err(error) => return Err(failed(package, error)),
        }
    }
    left_out.map_or(Ok(Sources { folders, fetched }), Err)
}

/// Folder beside `Sheaf.lock` with archives of its packages.
pub const VENDOR_FOLDER: &str = "vendor";

/// Name of the archive of a package of a lock. It has a part of the tree's hash if another package is called alike.
pub fn archive_name(package: &LockedPackage, lock: &PackagesLock) -> String {
    let LockedPackage { name, version, tree, .. } = package;
    let alike = lock.packages.iter().filter(|other| other.name == *name && other.version == *version);
    let hash: Option<TreeHash> = tree.as_deref().and_then(|tree| tree.parse().ok());
    match hash.filter(|_| alike.count() > 1) {
        Some(hash) => {
            let [_, with_hash] = archive_names(name, version, &hash);
            with_hash
        }
        None => format!("{name}-{version}.tar.gz"),
    }
}

/// Names that the archive of a package may have.
pub(super) fn archive_names(name: &str, version: &Version, tree: &TreeHash) -> [String; 2] {
    [format!("{name}-{version}.tar.gz"), format!("{name}-{version}-{}.tar.gz", &tree.hex()[..8])]
}

/// Want of a fetch, by the full name of a ref.
pub(crate) fn want_of(reference: &str) -> Want {
    match (reference.strip_prefix("refs/tags/"), reference.strip_prefix("refs/heads/")) {
        (Some(tag), _) => Want::Tag(tag.into()),
        (_, Some(branch)) => Want::Branch(branch.into()),
        _ => Want::Head,
    }
}

/// The fetch of a locked package.
fn item(package: &LockedPackage, hash: TreeHash, access: &Access) -> Result<Item, GitError> {
    let (address, want) = match &package.source {
        Source::Git { url, reference } => (url.as_str(), reference.clone()),
        _ => {
            let reference = package.reference.as_deref().unwrap_or_default();
            (package.repository.as_deref().unwrap_or_default(), want_of(reference))
        }
    };
    let address = Address::parse(address)?;
    Ok(Item {
        name: package.name.clone(),
        options: access.git_options(&address),
        address,
        want,
        commit: package.commit.as_deref().and_then(|commit| commit.parse().ok()),
        subfolder: package.folder.clone(),
        hash: Some(hash),
    })
}
