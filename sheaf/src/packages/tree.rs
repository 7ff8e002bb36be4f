//! `sheaf tree`: the dependencies of the project.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;

use super::options::TreeOptions;
use crate::evaluator::{Failed, exit_code, failed, project_here};
use crate::messages;
use crate::output::print_line;
use serde_json::json;
use sheaf_project::{Found, LockedEdge, LockedPackage, PackagesLock, Project};

/// Runs `sheaf tree`.
pub fn tree(options: &TreeOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &TreeOptions) -> Result<(), Failed> {
    let project = project_here()?;
    let lock = read_lock(&project)?;
    if options.json {
        let packages: Vec<_> = lock
            .packages
            .iter()
            .map(|package| {
                let dependencies: Vec<_> =
                    package.dependencies.iter().map(|edge| format!("{} {}", edge.package, edge.version)).collect();
                json!({ "name": package.name, "version": package.version, "source": package.source.to_string(),
                        "tree": package.tree, "dependencies": dependencies })
            })
            .collect();
        return print_line(&format!("{:#}", json!(packages)));
    }
    let name = project.manifest.as_ref().and_then(|manifest| manifest.package.name.clone());
    let name = name.unwrap_or_else(|| project.root.display().to_string());
    let own = lock.dependencies_of(&project);
    if let Some(wanted) = &options.why {
        return why(&lock, own, &name, wanted);
    }
    if options.duplicates {
        return duplicates(&lock);
    }
    print_line(&name)?;
    let mut seen = BTreeSet::new();
    let mut lines = Vec::new();
    branches(&lock, own, "", &mut seen, &mut lines);
    lines.iter().try_for_each(|line| print_line(line))
}

/// The lock of a project; empty if there is none.
pub fn read_lock(project: &Project) -> Result<PackagesLock, Failed> {
    match PackagesLock::read(&project.lock_file(), &project.owners).map_err(failed)? {
        Found::File(lock) => Ok(lock),
        Found::Absent => Ok(PackagesLock::default()),
        Found::Foreign(foreign) => Err(failed(foreign)),
    }
}

fn target<'a>(lock: &'a PackagesLock, edge: &LockedEdge) -> Option<&'a LockedPackage> {
    lock.packages.iter().find(|package| edge.names(package))
}

fn branches(
    lock: &PackagesLock,
    edges: &[LockedEdge],
    indent: &str,
    seen: &mut BTreeSet<String>,
    lines: &mut Vec<String>,
) {
    for (position, edge) in edges.iter().enumerate() {
        let last = position + 1 == edges.len();
        let Some(package) = target(lock, edge) else { continue };
        let shown = format!("{} {}", package.name, package.version);
        let renamed = if edge.name == package.name || edge.name.starts_with("./") {
            String::new()
        } else {
            format!(" as {}", edge.name)
        };
        let again = !package.dependencies.is_empty() && !seen.insert(format!("{shown} {}", package.source));
        let mark = if again { " (*)" } else { "" };
        lines.push(format!("{indent}{} {shown}{renamed}{mark}", if last { "└──" } else { "├──" }));
        if !again {
            let deeper = format!("{indent}{}", if last { "    " } else { "│   " });
            branches(lock, &package.dependencies, &deeper, seen, lines);
        }
    }
}

/// Prints the shortest way from the project, with its `own` dependencies, to each version of a package.
fn why(lock: &PackagesLock, own: &[LockedEdge], project: &str, wanted: &str) -> Result<(), Failed> {
    let mut ways: Vec<Vec<String>> = Vec::new();
    let mut open: Vec<(Vec<String>, &[LockedEdge])> = vec![(vec![project.to_owned()], own)];
    let mut seen = BTreeSet::new();
    while !open.is_empty() {
        let mut next = Vec::new();
        for (way, edges) in open {
            for edge in edges {
                let Some(package) = target(lock, edge) else { continue };
                let shown = format!("{} {}", package.name, package.version);
                let way: Vec<String> = way.iter().cloned().chain([shown.clone()]).collect();
                if package.name == wanted {
                    ways.push(way.clone());
                }
                if seen.insert(shown) {
                    next.push((way, package.dependencies.as_slice()));
                }
            }
        }
        open = next;
    }
    if ways.is_empty() {
        let help = "`sheaf tree` shows all packages";
        messages::error(format!("{wanted} is not among the dependencies of {project}"), Some(help));
        return Err(Failed);
    }
    ways.iter().try_for_each(|way| print_line(&way.join(" needs ")))
}

/// Prints packages of which there are several versions, with what needs each.
fn duplicates(lock: &PackagesLock) -> Result<(), Failed> {
    let mut versions: BTreeMap<&str, Vec<&LockedPackage>> = BTreeMap::new();
    for package in &lock.packages {
        versions.entry(&package.name).or_default().push(package);
    }
    versions.retain(|_, packages| packages.len() > 1);
    if versions.is_empty() {
        return print_line("no package is there in several versions");
    }
    for package in versions.values().flatten() {
        let needs = |edges: &[LockedEdge]| edges.iter().any(|edge| edge.names(package));
        let mut users: Vec<String> = lock
            .packages
            .iter()
            .filter(|user| needs(&user.dependencies))
            .map(|user| format!("{} {}", user.name, user.version))
            .collect();
        if needs(&lock.roots) {
            users.insert(0, "the project".into());
        }
        print_line(&format!("{} {}, for {}", package.name, package.version, users.join(", ")))?;
    }
    Ok(())
}
