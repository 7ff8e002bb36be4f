//! `sheaf publish`: a version of the package, for a registry.

use std::process::{Command, ExitCode};

use jiff::Timestamp;
use semver::Version;
use sheaf_project::{DEFAULT_REGISTRY, DependencySource, Package, Project};
use sheaf_registry::git::{Address, GitError, Local, Repository, Want};
use sheaf_registry::index::{Entry, EntryDependency};
use sheaf_registry::plan::Access;
use sheaf_registry::store::SourceStore;
use sheaf_registry::tree::{self, Limits};

use super::access;
use super::install::package;
use super::options::PublishOptions;
use super::programs;
use super::record::{record, refused};
use crate::evaluator::{Failed, exit_code, failed};
use crate::output::print_line;

/// Runs `sheaf publish`.
pub fn publish(options: &PublishOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &PublishOptions) -> Result<(), Failed> {
    let project = package()?;
    let access = access(&project, false)?;
    let Some(manifest) = &project.manifest else { return Err(Failed) };
    let (name, version) = named(&manifest.package)?;
    let registry = options.registry.as_deref().unwrap_or(DEFAULT_REGISTRY);
    let Some(index) = access.indexes.get(registry).cloned() else {
        let help = "name it in Sheaf.toml, [registries] default = \"https://registry.example/index\", or set SHEAF_REGISTRY";
        return Err(refused(format!("there is no address for the registry `{registry}`"), help));
    };
    if !options.no_test {
        tested(&project)?;
    }
    let source = Pushed::find(&project, &access, &name, &version)?;
    let dependencies = dependencies(&project, &access, &index)?;
    let entry = Entry {
        form: 1,
        name,
        version,
        dependencies,
        features: None,
        repository: source.repository,
        reference: format!("refs/tags/{}", source.tag),
        commit: source.commit,
        folder: source.folder,
        tree: source.tree,
        size: source.size,
        published: Some(Timestamp::now().round(jiff::Unit::Second).unwrap_or_else(|_| Timestamp::now())),
        yanked: None,
        license: manifest.package.license.clone(),
        description: manifest.package.description.clone(),
        sheaf: manifest.package.sheaf.clone(),
        programs: if options.dry_run { None } else { programs::send(&project, options)? },
        signature: None,
    };
    let entry = match programs::signing_key()? {
        Some(key) => entry.signed(&key),
        None => entry,
    };
    if options.dry_run {
        print_line(&entry.line())?;
        return print_line("nothing is published, as --dry-run says");
    }
    record(&index, &entry)?;
    print_line(&format!("published {} {} to {index}", entry.name, entry.version))
}

/// The name and the version; what users of a package look for first is there as well.
fn named(package: &Package) -> Result<(String, Version), Failed> {
    let missing = |key: &str, example: &str| {
        refused(format!("[package] in Sheaf.toml has no `{key}`"), &format!("add {key} = {example}"))
    };
    let name = package.name.clone().ok_or_else(|| missing("name", "\"my-package\""))?;
    let version = package.version.clone().ok_or_else(|| missing("version", "\"0.1.0\""))?;
    if package.license.is_none() {
        return Err(missing("license", "\"Apache-2.0\""));
    }
    if package.description.is_none() {
        return Err(missing("description", "\"one sentence about the package\""));
    }
    Ok((name, version))
}

/// Checks the package and its examples, in a process of their own.
fn tested(project: &Project) -> Result<(), Failed> {
    let program = std::env::current_exe().map_err(failed)?;
    for arguments in [&["check"][..], &["test", "--no-jit"]] {
        let status =
            Command::new(&program).args(arguments).current_dir(&project.root).status().map_err(failed)?;
        if !status.success() {
            let help = "correct what is said above; --no-test publishes all the same";
            return Err(refused(format!("`sheaf {}` fails", arguments.join(" ")), help));
        }
    }
    Ok(())
}

/// The package in its git repository, as others get it.
struct Pushed {
    repository: String,
    tag: String,
    commit: String,
    folder: Option<String>,
    tree: String,
    size: u64,
}

impl Pushed {
    fn find(project: &Project, access: &Access, name: &str, version: &Version) -> Result<Self, Failed> {
        let local = Local::open(&project.root).map_err(failed)?;
        let head = local.commit("HEAD").map_err(failed)?.id();
        let tags = local.tags_of(head).map_err(failed)?;
        let names = [
            format!("v{version}"),
            format!("{name}-v{version}"),
            format!("{name}-{version}"),
            version.to_string(),
        ];
        let Some(tag) = names.iter().find(|name| tags.contains(name)) else {
            let help =
                format!("run `git tag {0} && git push origin {0}` on the commit of this version", names[0]);
            return Err(refused(
                format!("no tag of {version} names the commit {head} that is checked out"),
                &help,
            ));
        };
        let stated = project.manifest.as_ref().and_then(|manifest| manifest.package.repository.clone());
        let Some(repository) = stated.or_else(|| local.origin()) else {
            let help = "add `repository` to [package], or `git remote add origin ADDRESS`";
            return Err(refused("others cannot fetch this package: its repository has no address", help));
        };
        let address = Address::parse(&repository).map_err(failed)?;
        let options = access.git_options(&address);
        let remote = Repository::in_cache(&access.repositories, address, options);
        let found = match remote.fetch(&Want::Tag(tag.clone()), &access.interrupt, |_| {}) {
            Err(GitError::NoReference { .. }) => {
                let help = format!("push it: `git push origin {tag}`");
                return Err(refused(
                    format!("the tag {tag} is here, and not at {repository}, where users fetch it"),
                    &help,
                ));
            }
            found => found.map_err(failed)?,
        };
        if found != head {
            let help = format!(
                "push the tag: `git push origin {tag}`; a pushed tag stays as it is, so a change needs another version"
            );
            return Err(refused(
                format!("at {repository} the tag {tag} names {found}, and here {head}"),
                &help,
            ));
        }
        let Some(commit) = remote.commit(found).map_err(failed)? else { return Err(Failed) };
        let folder = local.path_of(&project.root).unwrap_or_default();
        let folder = (!folder.is_empty()).then_some(folder);
        let store = SourceStore::new(&access.sources);
        let inserted = store.insert(&commit, folder.as_deref(), None, &access.interrupt).map_err(failed)?;
        let summary = tree::check(&inserted.path, &Limits::default()).map_err(failed)?;
        Ok(Self {
            repository,
            tag: tag.clone(),
            commit: found.to_string(),
            folder,
            tree: inserted.hash.to_string(),
            size: summary.bytes,
        })
    }
}

/// The dependencies as an index has them: those of registries.
fn dependencies(project: &Project, access: &Access, index: &str) -> Result<Vec<EntryDependency>, Failed> {
    let mut all = Vec::new();
    for dependency in project.manifest.iter().flat_map(|manifest| &manifest.dependencies) {
        let location = &dependency.location;
        let registry = match &dependency.source {
            DependencySource::Registry { name } => {
                let key = name.as_deref().unwrap_or(DEFAULT_REGISTRY);
                access.indexes.get(key).filter(|address| *address != index).cloned()
            }
            DependencySource::Path { .. } if dependency.range != semver::VersionReq::STAR => None,
            _ => {
                let help = "publish it too, and give its version, which may stand beside `path`";
                let message = format!(
                    "{location}: {} is not in a registry, where users of this package could get it",
                    dependency.name
                );
                return Err(refused(message, help));
            }
        };
        let package = (dependency.package != dependency.name).then(|| dependency.package.clone());
        let (name, range) = (dependency.name.clone(), dependency.range.clone());
        all.push(EntryDependency { name, package, range, registry });
    }
    Ok(all)
}
