//! Compiled programs of packages: sent by their author, trusted by their user.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use sheaf_engine as engine;
use sheaf_foundation::SecretKey;
use sheaf_project::{LockedPackage, Project};
use sheaf_registry::index::Programs;
use sheaf_registry::plan::Outcome;

use super::options::PublishOptions;
use crate::cli::NetworkOptions;
use crate::evaluator::{Failed, failed, home, report_error, secrets, settings};
use crate::messages;
use crate::output::print_line;

/// The key that this user signs with, if there is one.
pub fn signing_key() -> Result<Option<Arc<SecretKey>>, Failed> {
    engine::signing_key(&home()?, &secrets()?).map_err(report_error)
}

/// Compiles what the typed functions, tests and examples of a package need, and sends it to the remote cache that the
/// options name. `None` if they name none.
pub fn send(project: &Project, options: &PublishOptions) -> Result<Option<Programs>, Failed> {
    let Some(remote) = &options.programs else { return Ok(None) };
    if signing_key()?.is_none() {
        let help = "make one with `sheaf cache key new NAME`: users trust programs by their signature";
        messages::error("there is no key to sign compiled programs with", Some(help));
        return Err(Failed);
    }
    let sheaf = |arguments: &[&str], file: Option<&Path>| {
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(arguments).args(file).current_dir(&project.root);
        command.env("SHEAF_CACHE_REMOTE", remote).env("SHEAF_CACHE_MODE", "read-write");
        if command.status().map_err(failed)?.success() {
            return Ok(());
        }
        let message = format!("`sheaf {}` fails, so nothing is published", arguments.join(" "));
        messages::error(message, Some("correct what is said above, or publish without --programs"));
        Err(Failed)
    };
    let mut devices: Vec<Option<&str>> = options.devices.iter().map(|device| Some(device.as_str())).collect();
    if devices.is_empty() {
        devices.push(None);
    }
    for file in programs_in(&project.root.join("src")) {
        for device in &devices {
            let mut arguments = vec!["build"];
            arguments.extend(device.iter().flat_map(|device| ["--device", *device]));
            arguments.extend(options.cpu.iter().flat_map(|cpu| ["--cpu", cpu.as_str()]));
            sheaf(&arguments, Some(&file))?;
        }
    }
    sheaf(&["test"], None)?;
    for file in programs_in(&project.root.join("examples")) {
        sheaf(&["run"], Some(&file))?;
    }
    // Programs that a cache here had already are not sent by the commands above.
    sheaf(&["cache", "push"], None)?;
    let devices = if options.devices.is_empty() { vec!["cpu".to_owned()] } else { options.devices.clone() };
    Ok(Some(Programs { remote: remote.clone(), devices }))
}

/// The programs in a folder and those below it, sorted.
pub fn programs_in(folder: &Path) -> Vec<PathBuf> {
    let pattern = format!("{}/**/*.shf", glob::Pattern::escape(&folder.to_string_lossy()));
    // A folder that cannot be read was refused when its tree was hashed.
    glob::glob(&pattern).into_iter().flatten().filter_map(Result::ok).collect()
}

/// Prints how to trust the authors of packages that have come into the lock with compiled programs.
pub fn offer(project: &Project, outcome: &Outcome) -> Result<(), Failed> {
    let is_new = |package: &&LockedPackage| !outcome.before.packages.contains(package);
    let mut offered: Vec<(&LockedPackage, &str, &str)> = Vec::new();
    for package in outcome.lock.packages.iter().filter(is_new) {
        if let (Some(remote), Some(signer)) = (&package.programs, &package.signer) {
            offered.push((package, signer, remote));
        }
    }
    if offered.is_empty() {
        return Ok(());
    }
    let settings = settings(&NetworkOptions::default(), project, &home()?)?;
    let own = signing_key()?;
    let trusted = engine::trusted_keys(&settings, own.as_deref()).map_err(report_error)?;
    for (package, signer, remote) in offered {
        let is_trusted = signer.parse().is_ok_and(|key| trusted.trusts(&key, remote));
        if !is_trusted {
            print_line(&format!(
                "{} {} comes compiled, signed by its author; if you know that key:\n  sheaf cache key trust {signer} --from {remote}",
                package.name, package.version
            ))?;
        }
    }
    Ok(())
}
