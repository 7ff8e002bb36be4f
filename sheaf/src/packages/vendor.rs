//! `sheaf vendor`: the dependencies of a project as archives beside its `Sheaf.lock`.

use std::collections::BTreeSet;
use std::fs;
use std::process::ExitCode;

use sheaf_project::Source;
use sheaf_registry::plan::{self, Resolve, VENDOR_FOLDER, archive_name};
use sheaf_registry::store::SourceStore;

use super::install::package;
use super::options::VendorOptions;
use super::{access, rules, shown, write};
use crate::evaluator::{Failed, exit_code, failed};
use crate::output::print_line;

/// Runs `sheaf vendor`.
pub fn vendor(options: &VendorOptions) -> ExitCode {
    exit_code(&act(options))
}

fn act(options: &VendorOptions) -> Result<(), Failed> {
    let project = package()?;
    let access = access(&project, options.dependencies.offline())?;
    let how = Resolve { locked: options.dependencies.locked(), ..rules(&project)? };
    let outcome = plan::lock(&project, &access, &how).map_err(shown)?;
    plan::fetch(&outcome.lock, &access).map_err(shown)?;
    write(&project, &outcome)?;
    let folder = project.lock_root().join(VENDOR_FOLDER);
    let store = SourceStore::new(&access.sources);
    let mut names = BTreeSet::new();
    for locked in outcome.lock.packages.iter().filter(|p| !matches!(p.source, Source::Path { .. })) {
        let tree = locked.tree.as_deref().and_then(|tree| tree.parse().ok());
        let name = archive_name(locked, &outcome.lock);
        let packed = tree.map(|tree| store.pack(&tree, &folder.join(&name))).transpose().map_err(failed)?;
        if packed.flatten().is_none() {
            return Err(failed(format!(
                "the sources of {} {} are not here; run `sheaf install`",
                locked.name, locked.version
            )));
        }
        names.insert(name);
    }
    let others = fs::read_dir(&folder).into_iter().flatten().flatten();
    let names_of = others.filter_map(|entry| entry.file_name().into_string().ok());
    for name in names_of.filter(|name| name.ends_with(".tar.gz") && !names.contains(name)) {
        fs::remove_file(folder.join(&name))
            .map_err(|error| failed(format!("{name} cannot be removed: {error}")))?;
        print_line(&format!("removed {VENDOR_FOLDER}/{name}, which Sheaf.lock no longer has"))?;
    }
    print_line(&format!(
        "packed {} in {VENDOR_FOLDER}; with Sheaf.lock they are all that other machines need, without a network",
        sheaf_loader::counted(names.len(), "package")
    ))
}
