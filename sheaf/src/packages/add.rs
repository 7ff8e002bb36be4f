//! `sheaf add` and `sheaf remove`.

use std::collections::HashMap;
use std::fs;
use std::process::ExitCode;

use semver::{Version, VersionReq};
use sheaf_project::{
    DEFAULT_REGISTRY, MANIFEST_NAME, NewDependency, Project, SheafToml, add_dependency, package_name,
    remove_dependency, works_with,
};
use sheaf_registry::index::Entry;
use sheaf_registry::plan::{self, Access, Resolve, Universe};

use super::install::{changes, package_to_change};
use super::options::{AddOptions, RemoveOptions};
use super::{access, host_of, rules, shown, write};
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf add`.
pub fn add(options: &AddOptions) -> ExitCode {
    exit_code(&add_here(options))
}

fn add_here(options: &AddOptions) -> Result<(), Failed> {
    let (project, _turn) = package_to_change()?;
    let mut access = access(&project, options.offline)?;
    // Named by the user, as it will be in the manifest.
    access.named.extend(options.git.as_deref().and_then(host_of));
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
    if entries.is_empty() && access.offline && index.names().map_err(failed)?.is_none() {
        let help = "run the command once with a network";
        messages::error(
            format!("no line about {name} was read from {address} before, and --offline forbids to ask it"),
            Some(help),
        );
        return Err(Failed);
    }
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
    let wanted = given.as_ref().and_then(|range| range.parse().ok());
    let suiting = suiting(project, &entries, wanted.as_ref())?;
    let Some(known) = newest(suiting.iter().copied(), wanted.as_ref()) else {
        let all: Vec<_> = entries.iter().rev().map(|entry| entry.version.to_string()).take(8).collect();
        let message = match range {
            Some(range) => format!("no version of {name} matches {range}"),
            None => format!("every version of {name} is yanked"),
        };
        messages::error(message, Some(&format!("the registry has {}", all.join(", "))));
        return Err(Failed);
    };
    let entry = at_hand(&universe, &suiting, known, wanted.as_ref())?;
    let version = given.unwrap_or_else(|| entry.version.to_string());
    Ok((NewDependency { keys, version: Some(version) }, Some(about(entry))))
}

/// The versions that a resolution here would take: those of this Sheaf, and not newer than `exclude-newer`. All of them if none of
/// these matches: the resolution explains why.
fn suiting<'a>(
    project: &Project,
    entries: &'a [Entry],
    range: Option<&VersionReq>,
) -> Result<Vec<&'a Entry>, Failed> {
    let Resolve { exclude_newer, sheaf, .. } = rules(project)?;
    let suits = |entry: &&Entry| {
        let is_old = exclude_newer.is_none_or(|limit| entry.published.is_some_and(|time| time <= limit));
        let range = entry.sheaf.as_ref().zip(sheaf.as_ref());
        is_old && range.is_none_or(|(range, sheaf)| works_with(range, sheaf))
    };
    let suiting: Vec<_> = entries.iter().filter(suits).collect();
    let has_one = newest(suiting.iter().copied(), range).is_some();
    Ok(if has_one { suiting } else { entries.iter().collect() })
}

/// The newest version that the network permits to take: without one, the newest that is on this machine. `known` is the newest
/// of the registry.
fn at_hand<'a>(
    universe: &Universe<'_>,
    entries: &[&'a Entry],
    known: &'a Entry,
    range: Option<&VersionReq>,
) -> Result<&'a Entry, Failed> {
    let here: Vec<&Entry> = entries.iter().copied().filter(|entry| universe.is_at_hand(entry)).collect();
    let (name, version) = (&known.name, &known.version);
    match newest(here.iter().copied(), range) {
        Some(entry) if entry.version == known.version => Ok(entry),
        Some(entry) => {
            let taken = &entry.version;
            let message = format!(
                "{name} {taken} is the newest on this machine, and the registry has {version}, which --offline forbids to fetch"
            );
            messages::warning(message, None);
            Ok(entry)
        }
        None => {
            let only: Vec<_> = here.iter().map(|entry| entry.version.to_string()).collect();
            let here =
                if only.is_empty() { "no version".into() } else { format!("only {}", only.join(", ")) };
            let matching = range.map(|range| format!(" that matches {range}")).unwrap_or_default();
            let message = format!(
                "the newest {name}{matching} is {version}, but --offline or SHEAF_OFFLINE forbids to fetch it, and this machine \
                 has {here}"
            );
            messages::error(message, Some("run the command once with a network"));
            Err(Failed)
        }
    }
}

/// The newest version that matches and is not yanked; a pre-release only if there is no other.
fn newest<'a>(
    entries: impl Iterator<Item = &'a Entry> + Clone,
    range: Option<&VersionReq>,
) -> Option<&'a Entry> {
    let usable = entries
        .filter(|entry| entry.yanked.is_none() && range.is_none_or(|range| range.matches(&entry.version)));
    let stable = usable.clone().filter(|entry| entry.version.pre.is_empty());
    stable.max_by_key(|entry| &entry.version).or_else(|| usable.max_by_key(|entry| &entry.version))
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
    let (project, _turn) = package_to_change()?;
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
    let version = |range| newest(entries.iter(), range).map(|entry| entry.version.clone());
    (version(range), version(None))
}
