//! New lines of a registry, and their sources.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use sheaf_project::{MANIFEST_NAME, SheafToml};

use super::{Problem, path_of, read_all};
use crate::git::{Address, Options};
use crate::index::{Entry, Folder, IndexFiles};
use crate::plan::want_of;
use crate::store::{FetchReporter, Item, SourceStore, fetch_all};

/// The versions in the registry's `folder` that its state before a change, `base`, does not have. Files that cannot be read are left
/// to the [check](super::check).
pub fn new_entries(folder: &Path, base: &dyn IndexFiles) -> Vec<Entry> {
    let mut ignored = Vec::new();
    let known = read_all(base, &mut ignored);
    let is_new = |entry: &Entry| {
        known.get(&entry.name).is_none_or(|old| old.iter().all(|old| old.version != entry.version))
    };
    let now = read_all(&Folder::new(folder.into()), &mut ignored);
    now.into_values().flatten().filter(is_new).collect()
}

/// Fetches the sources of versions as users get them, without credentials, and compares commit, tree, name and version. Versions whose
/// sources are in the store already are not fetched.
pub fn fetch(
    entries: &[Entry],
    store: &SourceStore,
    repositories: &Path,
    reporter: &dyn FetchReporter,
) -> Vec<Problem> {
    let problem = |entry: &Entry| {
        let cause = fetched(entry, store, repositories, reporter).err()?;
        Some(Problem {
            file: path_of(&entry.name),
            cause: format!("{} {}: {cause}", entry.name, entry.version),
        })
    };
    entries.iter().filter_map(problem).collect()
}

fn fetched(
    entry: &Entry,
    store: &SourceStore,
    repositories: &Path,
    reporter: &dyn FetchReporter,
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let item = Item {
        name: entry.name.clone(),
        address: Address::parse(&entry.repository).map_err(|error| text(&error))?,
        want: want_of(&entry.reference),
        commit: Some(entry.commit.parse().map_err(|_| format!("{:?} is no commit", entry.commit))?),
        subfolder: entry.folder.clone(),
        hash: Some(entry.tree.parse().map_err(|error| text(&error))?),
        options: Options::default(),
    };
    // One by one: after a failure the others are fetched all the same.
    let results = fetch_all(store, repositories, &[item], 1, &AtomicBool::new(false), reporter);
    for result in results {
        let found = result.map_err(|error| text(&error))?;
        let path = found.path.join(MANIFEST_NAME);
        let manifest =
            std::fs::read_to_string(&path).map_err(|_| format!("its sources have no {MANIFEST_NAME}"))?;
        let manifest =
            SheafToml::parse(Path::new(MANIFEST_NAME), &manifest).map_err(|error| text(&error))?.package;
        if manifest.name.as_ref() != Some(&entry.name) || manifest.version.as_ref() != Some(&entry.version) {
            let (name, version) = (manifest.name.unwrap_or_default(), manifest.version);
            let version = version.map(|version| version.to_string()).unwrap_or_default();
            return Err(format!("its {MANIFEST_NAME} is that of {name} {version}"));
        }
    }
    Ok(())
}
