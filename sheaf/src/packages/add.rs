//! `sheaf add` and `sheaf remove`.

use std::collections::HashMap;
use std::fs;
use std::process::ExitCode;

use semver::{Version, VersionReq};
use sheaf_project::{
    DEFAULT_REGISTRY, MANIFEST_NAME, NewDependency, Project, SheafToml, add_dependency, package_name,
    remove_dependency,
};
use sheaf_registry::index::Entry;
use sheaf_registry::plan::{self, Access, Resolve, Universe};

use super::install::{changes, package};
use super::{access, rules, shown, write};
use crate::cli::{AddOptions, RemoveOptions};
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf add`.
pub fn add(options: &AddOptions) -> ExitCode {
    exit_code(&add_here(options))
}

fn add_here(options: &AddOptions) -> Result<(), Failed> {
    let project = package()?;
    let access = access(&project, options.offline)?;
    let table = if options.dev { "dev-dependencies" } else { "dependencies" };
    let mut added = Vec::new();
    for text in &options.packages {
        let (name, range) =
            text.split_once('@').map_or((text.as_str(), None), |(name, range)| (name, Some(range)));
        let (new, about) = new_dependency(options, &project, &access, name, range)?;
        let local = options.rename.as_deref().unwrap_or(name);
        added.push((local.to_owned(), new, about));
    }
    let edit = |path: &std::path::Path| {
        added.iter().try_for_each(|(name, new, _)| add_dependency(path, table, name, new))
    };
    change(&project, &access, edit)?;
    added.iter().filter_map(|(.., about)| about.as_ref()).try_for_each(|line| print_line(line))
}

/// Entry of the manifest for a package, and a line about it.
fn new_dependency(
    options: &AddOptions,
    project: &Project,
    access: &Access,
    name: &str,
    range: Option<&str>,
) -> Result<(NewDependency, Option<String>), Failed> {
    if let Err(error) = package_name(name) {
        messages::error(
            error,
            Some("a package is named as in `sheaf add attention-lib`; --path takes a folder"),
        );
        return Err(Failed);
    }
    let mut keys = Vec::new();
    if options.rename.is_some() {
        keys.push(("package", name.to_owned()));
    }
    let text = |range: &str| range.parse::<VersionReq>().map(|_| range.to_owned());
    let given = range.map(text).transpose().map_err(|error| {
        failed(format!(
            "{:?} is no range of versions: {error}; write one such as {name}@1.2",
            range.unwrap_or_default()
        ))
    })?;
    if let Some(path) = &options.path {
        keys.push(("path", path.clone()));
        return Ok((NewDependency { keys, version: given }, None));
    }
    if let Some(git) = &options.git {
        keys.push(("git", git.clone()));
        for (key, value) in [("tag", &options.tag), ("branch", &options.branch), ("rev", &options.rev)] {
            keys.extend(value.clone().map(|value| (key, value)));
        }
        return Ok((NewDependency { keys, version: given }, None));
    }
    let registry = options.registry.as_deref().unwrap_or(DEFAULT_REGISTRY);
    keys.extend(options.registry.clone().map(|registry| ("registry", registry)));
    let Some(address) = access.indexes.get(registry) else {
        let help = "name it in Sheaf.toml, [registries] default = \"https://registry.example/index\", or take a package from --git or --path";
        messages::error(format!("there is no address for the registry `{registry}`"), Some(help));
        return Err(Failed);
    };
    let universe = Universe::new(access, &project.root, &project.owners, HashMap::new());
    let index = universe.index(address).map_err(failed)?;
    let entries = index.entries(name).map_err(failed)?;
    if entries.is_empty() {
        let names = index.names().map_err(failed)?.unwrap_or_default();
        let near = sheaf_lang::builtins::nearest(name, names.iter().map(String::as_str));
        let help = near.map_or_else(
            || "`sheaf search WORD` looks for packages".to_owned(),
            |near| format!("did you mean {near}?"),
        );
        messages::error(format!("the registry {address} has no package {name}"), Some(&help));
        return Err(Failed);
    }
    let newest = newest(&entries, given.as_ref().and_then(|range| range.parse().ok()).as_ref());
    let Some(entry) = newest else {
        let all: Vec<_> = entries.iter().rev().map(|entry| entry.version.to_string()).take(8).collect();
        let message = match range {
            Some(range) => format!("no version of {name} matches {range}"),
            None => format!("every version of {name} is yanked"),
        };
        messages::error(message, Some(&format!("the registry has {}", all.join(", "))));
        return Err(Failed);
    };
    let version = given.unwrap_or_else(|| entry.version.to_string());
    Ok((NewDependency { keys, version: Some(version) }, Some(about(entry))))
}

/// The newest version that matches and is not yanked; a pre-release only if there is no other.
fn newest<'a>(entries: &'a [Entry], range: Option<&VersionReq>) -> Option<&'a Entry> {
    let usable =
        |entry: &&Entry| entry.yanked.is_none() && range.is_none_or(|range| range.matches(&entry.version));
    let stable = entries.iter().filter(usable).filter(|entry| entry.version.pre.is_empty());
    stable
        .max_by_key(|entry| &entry.version)
        .or_else(|| entries.iter().filter(usable).max_by_key(|entry| &entry.version))
}

fn about(entry: &Entry) -> String {
    let license = entry.license.as_deref().unwrap_or("no licence named");
    let size = entry.size as f64 / 1e3;
    let description = entry.description.as_deref().map(|text| format!(": {text}")).unwrap_or_default();
    format!("{} {} ({license}, {size:.1} kB){description}", entry.name, entry.version)
}

/// Runs `sheaf remove`.
pub fn remove(options: &RemoveOptions) -> ExitCode {
    exit_code(&remove_here(options))
}

fn remove_here(options: &RemoveOptions) -> Result<(), Failed> {
    let project = package()?;
    let Some(manifest) = &project.manifest else { return Err(Failed) };
    let table_of = |name: &str| {
        let has = |list: &[sheaf_project::Dependency]| list.iter().any(|dependency| dependency.name == name);
        if has(&manifest.dependencies) {
            Some("dependencies")
        } else {
            has(&manifest.dev_dependencies).then_some("dev-dependencies")
        }
    };
    for name in &options.packages {
        if table_of(name).is_none() {
            let known =
                manifest.dependencies.iter().chain(&manifest.dev_dependencies).map(|d| d.name.as_str());
            let near = sheaf_lang::builtins::nearest(name, known);
            let help =
                near.map_or_else(|| "Sheaf.toml lists them".into(), |near| format!("did you mean {near}?"));
            messages::error(format!("{name} is not a dependency of this package"), Some(&help));
            return Err(Failed);
        }
    }
    let access = access(&project, options.offline)?;
    let edit = |path: &std::path::Path| {
        options.packages.iter().try_for_each(|name| {
            table_of(name).map_or(Ok(()), |table| remove_dependency(path, table, name).map(drop))
        })
    };
    change(&project, &access, edit)
}

/// Changes the manifest, once its new form resolves and is fetched; before, nothing is changed.
fn change(
    project: &Project,
    access: &Access,
    edit: impl Fn(&std::path::Path) -> Result<(), sheaf_project::EditError>,
) -> Result<(), Failed> {
    let path = project.root.join(MANIFEST_NAME);
    let scratch =
        tempfile::tempdir().map_err(|error| failed(format!("no temporary folder can be made: {error}")))?;
    let copy = scratch.path().join(MANIFEST_NAME);
    fs::copy(&path, &copy).map_err(|error| failed(format!("{} cannot be read: {error}", path.display())))?;
    edit(&copy).map_err(failed)?;
    let text = fs::read_to_string(&copy).map_err(failed)?;
    let manifest = SheafToml::parse(&path, &text).map_err(failed)?;
    let changed = project.with_manifest(manifest).map_err(failed)?;
    let how = Resolve { ..rules(project)? };
    let outcome = plan::lock(&changed, access, &how).map_err(shown)?;
    plan::fetch(&outcome.lock, access).map_err(shown)?;
    edit(&path).map_err(failed)?;
    write(project, &outcome)?;
    changes(project, &outcome)
}

/// The newest version of a package that is not yanked, and the newest that matches a range.
pub fn newest_versions(entries: &[Entry], range: Option<&VersionReq>) -> (Option<Version>, Option<Version>) {
    let version = |range| newest(entries, range).map(|entry| entry.version.clone());
    (version(range), version(None))
}
