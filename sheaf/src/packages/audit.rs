//! `sheaf audit`: what registries and the store say today of locked packages.

use std::collections::HashMap;
use std::process::ExitCode;

use serde_json::json;
use sheaf_project::{LockedPackage, Source};
use sheaf_registry::index::Entry;
use sheaf_registry::plan::Universe;
use sheaf_registry::store::SourceStore;

use super::access;
use super::install::package;
use super::options::AuditOptions;
use super::tree::read_lock;
use crate::evaluator::{Failed, exit_code, failed};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf audit`.
pub fn audit(options: &AuditOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &AuditOptions) -> Result<(), Failed> {
    let project = package()?;
    let access = access(&project, options.offline)?;
    let lock = read_lock(&project)?;
    let universe = Universe::new(&access, &project.root, &project.owners, HashMap::new());
    let store = SourceStore::new(&access.sources);
    let mut findings: Vec<(&LockedPackage, &str, String)> = Vec::new();
    for locked in &lock.packages {
        if let Source::Registry { index } = &locked.source {
            let entries =
                universe.index(index).and_then(|index| Ok(index.entries(&locked.name)?)).map_err(failed)?;
            let entry = entries.iter().find(|entry| entry.version == locked.version);
            findings.extend(of_entry(locked, entry).map(|(kind, text)| (locked, kind, text)));
        }
        findings.extend(moved_tag(locked, &universe)?.map(|text| (locked, "moved", text)));
        let tree = locked.tree.as_deref().and_then(|tree| tree.parse().ok());
        if let Some(Err(error)) = tree.map(|tree| store.verify(&tree)) {
            findings.push((locked, "damaged", error.to_string()));
        }
    }
    if options.json {
        let finding = |(locked, kind, text): &(&LockedPackage, &str, String)| json!({ "name": locked.name, "version": locked.version, "kind": kind, "message": text });
        let findings_json: Vec<_> = findings.iter().map(finding).collect();
        print_line(&format!("{:#}", json!({ "packages": lock.packages.len(), "findings": findings_json })))?;
    } else {
        for (locked, _, text) in &findings {
            messages::error(format!("{} {}: {text}", locked.name, locked.version), None);
        }
    }
    if !findings.is_empty() {
        return Err(Failed);
    }
    if options.json {
        Ok(())
    } else {
        print_line(&format!(
            "nothing is known against {}",
            sheaf_loader::counted(lock.packages.len(), "package")
        ))
    }
}

/// The change of the tag by which a package is fetched, if it names another commit than `Sheaf.lock`.
fn moved_tag(locked: &LockedPackage, universe: &Universe<'_>) -> Result<Option<String>, Failed> {
    let Some((named, commit)) = universe.tagged(locked).map_err(failed)?.zip(locked.commit.as_deref()) else {
        return Ok(None);
    };
    let text = || {
        format!(
            "its tag moved from commit {commit} to {named}; ask its author why, and run `sheaf update {}` only if you believe it",
            locked.name
        )
    };
    Ok((named != commit).then(text))
}

/// The registry's answer about a locked version.
fn of_entry(locked: &LockedPackage, entry: Option<&Entry>) -> Option<(&'static str, String)> {
    let Some(entry) = entry else {
        return Some((
            "gone",
            "the registry does not have it any more; update, or ask who keeps the registry".into(),
        ));
    };
    if let Some(reason) = &entry.yanked {
        return Some((
            "yanked",
            format!("yanked: {reason}; `sheaf update {}` takes another version", locked.name),
        ));
    }
    if locked.tree.as_deref() != Some(&entry.tree) {
        return Some((
            "rewritten",
            "the registry gives it another tree now; ask who keeps the registry".into(),
        ));
    }
    match entry.signer() {
        Err(error) => Some(("altered", error.to_string())),
        Ok(signer) if signer.map(ToString::to_string) != locked.signer => Some((
            "signer",
            "the registry names another signer than Sheaf.lock; ask who keeps the registry".into(),
        )),
        Ok(_) => None,
    }
}
