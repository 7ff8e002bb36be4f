//! Dependencies of a project, for every command that needs them.

pub mod add;
pub mod audit;
pub mod install;
pub mod options;
pub mod outdated;
mod programs;
pub mod publish;
mod record;
mod reporter;
pub mod sbom;
pub mod tree;
pub mod vendor;
pub mod yank;

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use semver::Version;
use sheaf_engine::Dependencies;
use sheaf_lang::host::HostError;
use sheaf_project::{DependencySource, PackagePrograms, Project, UserConfig};
use sheaf_registry::Logins;
use sheaf_registry::plan::{self, Access, Installed, Outcome, Resolve};
use sheaf_registry::store::SourceStore;
use url::Url;

pub use programs::programs_in;
pub use reporter::TerminalFetches;

use options::DependencyOptions;

use crate::evaluator::{Failed, environment, failed, home, outside};
use crate::messages;

/// Folders of a project's dependencies, read when the first is used.
struct Lazy {
    project: Project,
    sources: PathBuf,
    installed: OnceCell<Option<Installed>>,
}

impl Lazy {
    fn installed(&self) -> Result<Option<&Installed>, HostError> {
        let installed = match self.installed.get() {
            Some(installed) => installed,
            None => {
                let read = Installed::read(&self.project, &self.sources).map_err(host_error)?;
                self.installed.get_or_init(|| read)
            }
        };
        Ok(installed.as_ref())
    }
}

impl Dependencies for Lazy {
    fn folder(&self, package: Option<&Path>, name: &str) -> Result<Option<PathBuf>, HostError> {
        let Some(installed) = self.installed()? else { return Ok(None) };
        installed.folder(package, name).map_err(host_error)
    }

    fn programs(&self) -> Result<Vec<PackagePrograms>, HostError> {
        Ok(self.installed()?.map(Installed::programs).unwrap_or_default())
    }
}

/// A message as the evaluator shows it: the remedy apart.
fn host_error(error: impl std::fmt::Display) -> HostError {
    let text = error.to_string();
    // A message with an excerpt of a file has its remedy before that.
    match text.rsplit_once("; ").filter(|(_, help)| !help.contains('\n')) {
        Some((message, help)) => HostError { message: message.into(), help: Some(help.into()) },
        None => HostError { message: text, help: None },
    }
}

/// Folders of the dependencies that a project has installed.
pub fn dependencies(project: &Project) -> Result<Box<dyn Dependencies>, Failed> {
    if !has_dependencies(project) {
        return Ok(Box::new(()));
    }
    let sources = home()?.sources();
    Ok(Box::new(Lazy { project: project.clone(), sources, installed: OnceCell::new() }))
}

fn has_dependencies(project: &Project) -> bool {
    let manifest = project.manifest.as_ref();
    manifest
        .is_some_and(|manifest| !manifest.dependencies.is_empty() || !manifest.dev_dependencies.is_empty())
}

/// Resolves and fetches what a program of the project may use, and gives the folders.
///
/// It is an error if the project is for another Sheaf, by its manifest or its lock.
pub fn prepare(project: &Project, how: &DependencyOptions) -> Result<Box<dyn Dependencies>, Failed> {
    messages::ineffective(project);
    if let (Some(manifest), Some(sheaf)) = (&project.manifest, this_sheaf()) {
        manifest.check_sheaf(&sheaf).map_err(failed)?;
    }
    if !has_dependencies(project) {
        project.check_lock().map_err(failed)?;
        return Ok(Box::new(()));
    }
    let access = access(project, how.offline())?;
    let resolve = Resolve { locked: how.locked(), ..rules(project)? };
    let outcome = plan::lock(project, &access, &resolve).map_err(shown)?;
    write(project, &outcome)?;
    let sources = plan::fetch(&outcome.lock, &access).map_err(shown)?;
    let store = SourceStore::new(&access.sources);
    let installed = Installed::new(project, outcome.lock, store, sources.folders);
    let installed = OnceCell::from(Some(installed));
    Ok(Box::new(Lazy { project: project.clone(), sources: access.sources, installed }))
}

/// Writes the lock if it has changed, and says so.
pub fn write(project: &Project, outcome: &Outcome) -> Result<(), Failed> {
    if outcome.lock == outcome.before {
        return Ok(());
    }
    outcome.lock.write(&project.lock_file()).map_err(failed)
}

/// The rules of resolutions that the project and the user set.
pub fn rules(project: &Project) -> Result<Resolve, Failed> {
    let home = home()?;
    let user = UserConfig::read(&home.config_file()).map_err(failed)?;
    let exclude_newer =
        sheaf_project::exclude_newer(project.manifest.as_ref(), &user, environment).map_err(failed)?;
    Ok(Resolve { exclude_newer, sheaf: this_sheaf(), ..Resolve::default() })
}

/// The running version.
fn this_sheaf() -> Option<Version> {
    env!("CARGO_PKG_VERSION").parse().ok()
}

/// Resources that commands of this project may reach.
pub fn access(project: &Project, offline: bool) -> Result<Access, Failed> {
    let home = home()?;
    outside(&home, project)?;
    let user = UserConfig::read(&home.config_file()).map_err(failed)?;
    let indexes = sheaf_project::registries(project.manifest.as_ref(), &user, environment);
    let offline = offline || sheaf_project::offline(environment).map_err(failed)?;
    let logins = Logins::read(&home.credentials()).map_err(failed)?;
    Ok(Access {
        registries: home.registries(),
        repositories: home.registries().join("git"),
        sources: home.sources(),
        vendor: Some(project.lock_root().join(plan::VENDOR_FOLDER)),
        logins,
        named: named(project, &indexes),
        indexes,
        mirrors: user.mirrors,
        offline,
        // Ctrl-C ends the process; the next one cleans up.
        interrupt: Arc::new(AtomicBool::new(false)),
        fetched: RefCell::default(),
        reporter: Box::new(reporter::TerminalFetches::default()),
    })
}

/// Hosts that the user's own files name: registries, and git repositories of the manifest.
fn named(project: &Project, indexes: &BTreeMap<String, String>) -> BTreeSet<String> {
    let manifest = project.manifest.iter();
    let dependencies =
        manifest.flat_map(|manifest| manifest.dependencies.iter().chain(&manifest.dev_dependencies));
    let repositories = dependencies.filter_map(|dependency| match &dependency.source {
        DependencySource::Git { url, .. } => Some(url.as_str()),
        _ => None,
    });
    let all =
        indexes.values().map(|index| index.strip_prefix("sparse+").unwrap_or(index)).chain(repositories);
    all.filter_map(host_of).collect()
}

/// The host of an address, with its port if it is not the usual one.
fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// Shows a failure, its remedy apart.
pub fn shown(error: plan::PlanError) -> Failed {
    let error = host_error(error);
    messages::error(error.message, error.help.as_deref());
    Failed
}
