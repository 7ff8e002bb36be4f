//! `sheaf install` and `sheaf update`: dependencies resolved, recorded and fetched.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::process::ExitCode;

use sheaf_project::{Change, Project};
use sheaf_registry::plan::{self, Outcome, Resolve};

use super::options::{InstallOptions, UpdateOptions};
use super::{access, programs, rules, shown, write};
use crate::evaluator::{Failed, exit_code, project_here};
use crate::messages;
use crate::output::print_line;

/// Runs `sheaf install`.
pub fn install(options: &InstallOptions) -> ExitCode {
    exit_code(&install_here(options))
}

fn install_here(options: &InstallOptions) -> Result<(), Failed> {
    let (project, _turn) = package_to_change()?;
    let dependencies = &options.dependencies;
    let access = access(&project, dependencies.offline())?;
    let how =
        Resolve { locked: dependencies.locked(), minimal: options.minimal_versions, ..rules(&project)? };
    let outcome = plan::lock(&project, &access, &how).map_err(shown)?;
    write(&project, &outcome)?;
    let fetched = plan::fetch(&outcome.lock, &access).map_err(shown)?.fetched;
    changes(&project, &outcome)?;
    let count = outcome.lock.packages.len();
    print_line(&format!("{count} {} installed, {} fetched", words(count), fetched.len()))
}

/// Runs `sheaf update`.
pub fn update(options: &UpdateOptions) -> ExitCode {
    exit_code(&update_here(options))
}

fn update_here(options: &UpdateOptions) -> Result<(), Failed> {
    let (project, _turn) = package_to_change()?;
    let lock = super::tree::read_lock(&project)?;
    for name in &options.packages {
        if !lock.packages.iter().any(|package| package.name == *name) {
            let known = lock.packages.iter().map(|package| package.name.as_str());
            let near = sheaf_lang::builtins::nearest(name, known);
            let help = near.map_or_else(
                || "`sheaf tree` shows all packages".into(),
                |near| format!("did you mean {near}?"),
            );
            messages::error(format!("{name} is not among the dependencies"), Some(&help));
            return Err(Failed);
        }
    }
    let precise = match (&options.precise, &options.packages[..]) {
        (Some(version), [package]) => Some((package.clone(), version.clone())),
        (Some(_), _) => {
            messages::error(
                "--precise is for one package",
                Some("name it: `sheaf update attention-lib --precise 1.2.0`"),
            );
            return Err(Failed);
        }
        (None, _) => None,
    };
    let access = access(&project, options.offline)?;
    let forget = options.packages.clone();
    let how =
        Resolve { update: true, forget, precise, minimal: options.minimal_versions, ..rules(&project)? };
    let outcome = plan::lock(&project, &access, &how).map_err(shown)?;
    if options.dry_run {
        changes(&project, &outcome)?;
        return print_line("nothing is changed, as --dry-run says");
    }
    write(&project, &outcome)?;
    plan::fetch(&outcome.lock, &access).map_err(shown)?;
    changes(&project, &outcome)?;
    if outcome.lock == outcome.before {
        print_line("every package is as new as Sheaf.toml allows")
    } else {
        Ok(())
    }
}

/// The project of the current folder, which has a manifest.
pub fn package() -> Result<Project, Failed> {
    let project = project_here()?;
    if project.manifest.is_none() {
        let message = format!("there is no Sheaf.toml in {} or in a folder above", project.root.display());
        messages::error(message, Some("`sheaf init` makes a package of this folder"));
        return Err(Failed);
    }
    messages::ineffective(&project);
    Ok(project)
}

/// [`package`], and the lock under which a command reads the manifest and writes it and `Sheaf.lock`, so that the changes
/// of two commands at once both stay. No lock where the file system has none.
pub fn package_to_change() -> Result<(Project, Option<File>), Failed> {
    let turn = take_turn(project_here()?.lock_root());
    Ok((package()?, turn))
}

/// Locks a folder, waiting for other commands.
fn take_turn(folder: &Path) -> Option<File> {
    let file = File::open(folder).ok()?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let message =
                format!("another command changes the packages of {}; waiting for it", folder.display());
            messages::warning(message, None);
            file.lock().ok()?;
        }
        Err(TryLockError::Error(_)) => return None,
    }
    Some(file)
}

/// Prints what has changed in the lock.
pub fn changes(project: &Project, outcome: &Outcome) -> Result<(), Failed> {
    let lines = outcome.before.difference(&outcome.lock);
    lines.iter().map(Change::to_string).try_for_each(|line| print_line(&line))?;
    programs::offer(project, outcome)
}

fn words(count: usize) -> &'static str {
    if count == 1 { "package" } else { "packages" }
}
