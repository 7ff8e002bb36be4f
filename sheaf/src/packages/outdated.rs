//! `sheaf outdated` and `sheaf search`: what registries have.

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::json;
use sheaf_project::{DEFAULT_REGISTRY, Source};
use sheaf_registry::plan::Universe;

use super::access;
use super::add::newest_versions;
use super::install::package;
use super::options::{OutdatedOptions, SearchOptions};
use super::tree::read_lock;
use crate::evaluator::{Failed, exit_code, failed, project_here};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf outdated`.
pub fn outdated(options: &OutdatedOptions) -> ExitCode {
    exit_code(&outdated_here(options))
}

fn outdated_here(options: &OutdatedOptions) -> Result<(), Failed> {
    let project = package()?;
    let access = access(&project, options.offline)?;
    let universe = Universe::new(&access, &project.root, &project.owners, HashMap::new());
    let lock = read_lock(&project)?;
    let manifest = project.manifest.iter();
    let ranges: Vec<_> = manifest.flat_map(|m| m.dependencies.iter().chain(&m.dev_dependencies)).collect();
    let mut rows = Vec::new();
    for package in &lock.packages {
        let Source::Registry { index } = &package.source else { continue };
        let index = universe.index(index).map_err(failed)?;
        let entries = index.entries(&package.name).map_err(failed)?;
        let range = ranges.iter().find(|dependency| dependency.package == package.name).map(|d| &d.range);
        let (compatible, latest) = newest_versions(&entries, range);
        let yanked =
            entries.iter().find(|entry| entry.version == package.version).and_then(|e| e.yanked.clone());
        if yanked.is_some() || latest.as_ref().is_some_and(|latest| *latest > package.version) {
            rows.push((package.name.clone(), package.version.clone(), compatible, latest, yanked));
        }
    }
    if options.json {
        let row = |(name, locked, compatible, latest, yanked): &_| json!({ "name": name, "locked": locked, "compatible": compatible, "latest": latest, "yanked": yanked });
        return print_line(&format!("{:#}", json!(rows.iter().map(row).collect::<Vec<_>>())));
    }
    if rows.is_empty() {
        return print_line("every package is the newest");
    }
    print_line(&format!("{:<24} {:>10} {:>10} {:>10}", "package", "locked", "compatible", "newest"))?;
    for (name, locked, compatible, latest, yanked) in rows {
        let text =
            |version: Option<semver::Version>| version.map_or("-".into(), |version| version.to_string());
        let yanked = yanked.map(|reason| format!("  yanked: {reason}")).unwrap_or_default();
        let (compatible, latest) = (text(compatible), text(latest));
        print_line(&format!("{name:<24} {:>10} {compatible:>10} {latest:>10}{yanked}", locked.to_string()))?;
    }
    Ok(())
}

/// Runs `sheaf search`.
pub fn search(options: &SearchOptions) -> ExitCode {
    exit_code(&search_here(options))
}

fn search_here(options: &SearchOptions) -> Result<(), Failed> {
    let project = project_here()?;
    let access = access(&project, options.offline)?;
    let registry = options.registry.as_deref().unwrap_or(DEFAULT_REGISTRY);
    let Some(address) = access.indexes.get(registry) else {
        let help = "name it in Sheaf.toml, [registries] default = \"https://registry.example/index\", or set SHEAF_REGISTRY";
        messages::error(format!("there is no address for the registry `{registry}`"), Some(help));
        return Err(Failed);
    };
    let universe = Universe::new(&access, &project.root, &project.owners, HashMap::new());
    let index = universe.index(address).map_err(failed)?;
    let Some(names) = index.names().map_err(failed)? else {
        let help = "search the git repository that it is a copy of";
        messages::error(format!("{address} is a static copy, whose packages cannot be listed"), Some(help));
        return Err(Failed);
    };
    let word = options.word.to_lowercase();
    let mut found = Vec::new();
    for name in names {
        // A package with an invalid line is passed over; others can be found.
        let Ok(entries) = index.entries(&name) else { continue };
        let Some(entry) = entries.last() else { continue };
        let description = entry.description.clone().unwrap_or_default();
        if name.contains(&word) || description.to_lowercase().contains(&word) {
            found.push((name, entry.version.clone(), description));
        }
    }
    if options.json {
        let row = |(name, version, description): &_| json!({ "name": name, "version": version, "description": description });
        return print_line(&format!("{:#}", json!(found.iter().map(row).collect::<Vec<_>>())));
    }
    if found.is_empty() {
        return print_line(&format!(
            "no package of {address} has {:?} in its name or description",
            options.word
        ));
    }
    found
        .iter()
        .try_for_each(|(name, version, description)| print_line(&format!("{name} {version}  {description}")))
}
