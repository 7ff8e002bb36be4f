//! `sheaf toolchain`: the compilers on this machine, and which of them a project uses.

mod options;
mod show;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sheaf_engine::fetching;
use sheaf_engine::release::{Unusable, addresses, choose, loadable, lock};
use sheaf_project::{Found, Home, LOCK_NAME, MANIFEST_NAME, Project, Settings, pin_toolchain};
use sheaf_target::{Platform, Release};
use sheaf_toolchain::{InstallError, Toolchain};

use crate::cli::{NetworkOptions, PlaceOptions};
use crate::evaluator::{self, Failed, failed};
use crate::messages;
use crate::progress::{InstallProgress, TerminalReporter};
use options::Action;

pub use options::ToolchainOptions;

/// Runs `sheaf toolchain`.
pub fn toolchain(options: &ToolchainOptions) -> ExitCode {
    match act(&options.action) {
        Ok(()) => ExitCode::SUCCESS,
        Err(Failed) => ExitCode::from(1),
    }
}

/// Inputs of the commands about compilers.
struct ToolchainContext {
    home: Home,
    project: Project,
    settings: Settings,
}

impl ToolchainContext {
    /// With the settings alone.
    fn new() -> Result<ToolchainContext, Failed> {
        Self::at(&PlaceOptions::default())
    }

    /// With the network options of the command line.
    fn at(place: &PlaceOptions) -> Result<ToolchainContext, Failed> {
        let home = evaluator::home()?;
        let project = evaluator::project_here()?;
        let options = NetworkOptions { place: place.clone(), ..NetworkOptions::default() };
        let settings = evaluator::settings(&options, &project, &home)?;
        Ok(ToolchainContext { home, project, settings })
    }

    /// The release that is used here: of the lock, the project, the user, or the usual one.
    fn release(mut self) -> Result<(ToolchainContext, Release<'static>), Failed> {
        let release = used(&mut self.settings, &self.project)?.ok_or_else(no_compiler)?;
        Ok((self, release))
    }

    /// A release of the table, or the one that is used here.
    fn or_named(self, version: Option<&str>) -> Result<(ToolchainContext, Release<'static>), Failed> {
        match version {
            Some(version) => {
                let release = host(version)?;
                Ok((self, release))
            }
            None => self.release(),
        }
    }

    /// The installed release; otherwise an error with a remedy.
    fn located(&self, release: &Release<'_>) -> Result<Toolchain, Failed> {
        sheaf_toolchain::locate_release(release, self.home.data()).ok_or_else(|| {
            show::not_installed(release);
            Failed
        })
    }
}

/// The release that a project uses on this machine, its `Sheaf.lock` taken over into the settings; `None` on a machine
/// without compilers.
pub fn used(settings: &mut Settings, project: &Project) -> Result<Option<Release<'static>>, Failed> {
    choose(settings, project, &TerminalReporter).map_err(said)
}

fn act(action: &Action) -> Result<(), Failed> {
    match action {
        Action::List { json } => list(*json),
        Action::Install { what, place } => install(what.as_deref(), place),
        Action::Remove { versions } => remove(versions),
        Action::Which { json } => which(*json),
        Action::Verify { version, json } => verify(*version, *json),
        Action::Pin { version, place } => pin(version, place),
        Action::Update { place } => update(place),
        Action::Bundle { version, output } => bundle(*version, output.as_deref()),
    }
}

/// Shows why a release cannot be used.
fn said(unusable: Unusable) -> Failed {
    messages::error(unusable.why, unusable.remedy.as_deref());
    Failed
}

/// Shows an error of the toolchain.
fn error(error: &InstallError) -> Failed {
    messages::error(error, Some(&error.remedy()));
    Failed
}

fn no_compiler() -> Failed {
    error(&InstallError::UnsupportedPlatform {
        system: std::env::consts::OS,
        processor: std::env::consts::ARCH,
    })
}

/// A release of the table for this machine.
fn host(version: &str) -> Result<Release<'static>, Failed> {
    Platform::host().and_then(|platform| Release::find(version, platform)).ok_or_else(no_compiler)
}

fn list(json: bool) -> Result<(), Failed> {
    let mut context = ToolchainContext::new()?;
    let platform = Platform::host().ok_or_else(no_compiler)?;
    let chosen =
        choose(&mut context.settings, &context.project, &TerminalReporter).unwrap_or_else(|unusable| {
            // The list is shown all the same.
            messages::warning(unusable.why, unusable.remedy.as_deref());
            None
        });
    let releases = Release::versions().into_iter().filter_map(|version| Release::find(version, platform));
    let rows = releases.map(|release| show::Row {
        chosen: chosen == Some(release),
        installed: sheaf_toolchain::locate_release(&release, context.home.data()).is_some(),
        release,
    });
    show::list(platform, &rows.collect::<Vec<_>>(), json);
    Ok(())
}

fn install(what: Option<&str>, place: &PlaceOptions) -> Result<(), Failed> {
    let context = ToolchainContext::at(place)?;
    let progress = InstallProgress::default();
    let file = what.filter(|what| !Release::versions().contains(what)).map(Path::new);
    if let Some(file) = file {
        let installed = sheaf_toolchain::install_bundle(file, context.home.data(), &progress);
        let (release, toolchain) = installed.map_err(|e| error(&e))?;
        show::installed(&release, &toolchain);
        return Ok(());
    }
    let (context, release) = context.or_named(what)?;
    if let Err(why) = loadable(&release) {
        messages::warning(
            why,
            Some("its programs run elsewhere; here `sheaf toolchain update` chooses another"),
        );
    }
    let settings = fetching(&context.settings);
    let installed = sheaf_toolchain::install_release(&release, context.home.data(), &settings, &progress);
    show::installed(&release, &installed.map_err(|e| error(&e))?);
    Ok(())
}

fn remove(versions: &[&'static str]) -> Result<(), Failed> {
    let context = ToolchainContext::new()?;
    for version in versions {
        let release = host(version)?;
        let progress = InstallProgress::default();
        let removed =
            sheaf_toolchain::remove(&release, context.home.data(), &progress).map_err(|e| error(&e))?;
        let what = if removed { "removed" } else { "was not installed" };
        println!("the compiler {version}: {what}");
    }
    Ok(())
}

fn which(json: bool) -> Result<(), Failed> {
    let (context, release) = ToolchainContext::new()?.release()?;
    let toolchain = context.located(&release)?;
    let origin = context.settings.iree.as_ref().map(|iree| iree.origin.to_string());
    show::which(&release, &toolchain, origin.as_deref(), json);
    Ok(())
}

fn verify(version: Option<&'static str>, json: bool) -> Result<(), Failed> {
    let (context, release) = ToolchainContext::new()?.or_named(version)?;
    let folder = sheaf_toolchain::folder(&release, context.home.data());
    let progress = InstallProgress::default();
    // `located` would pass over an installation with a file of another size.
    let verify = || sheaf_toolchain::verify(&release, context.home.data(), &progress);
    let differences = folder.exists().then(verify).transpose().map_err(|e| error(&e))?;
    show::verified(&release, &folder, differences.as_deref(), json);
    if differences.is_some_and(|differences| differences.is_empty()) { Ok(()) } else { Err(Failed) }
}

/// The package's folder; an error with a remedy if there is none.
fn package(project: &Project) -> Result<&Path, Failed> {
    if project.manifest.is_some() {
        return Ok(&project.root);
    }
    let help = "make a package with `sheaf init`, or go to its folder";
    messages::error(format!("there is no {MANIFEST_NAME} here or in a folder above"), Some(help));
    Err(Failed)
}

fn pin(version: &'static str, place: &PlaceOptions) -> Result<(), Failed> {
    let context = ToolchainContext::at(place)?;
    let root = package(&context.project)?;
    loadable(&host(version)?).map_err(|why| {
        let usable: Vec<_> = Release::versions()
            .into_iter()
            .filter(|version| host(version).is_ok_and(|r| r.is_loadable()))
            .collect();
        messages::error(why, Some(&format!("pin one of {}", usable.join(", "))));
        Failed
    })?;
    // Sheaf.toml last: with a new lock and an old pin, or the other way round, the next command gives the remedy.
    write_lock(version, &context)?;
    pin_toolchain(&root.join(MANIFEST_NAME), version).map_err(failed)?;
    println!("this package uses the compiler {version}: {MANIFEST_NAME} and {LOCK_NAME} say so");
    Ok(())
}

/// Writes the `[toolchain]` section of the package's lock.
fn write_lock(version: &str, context: &ToolchainContext) -> Result<(), Failed> {
    context.project.check_lock().map_err(failed)?;
    // The content of another user's file would be taken over.
    let written = match context.project.lock() {
        Ok(Found::Foreign(foreign)) => return Err(failed(foreign)),
        Ok(Found::File(lock)) => lock,
        // An unreadable lock is written anew.
        Ok(Found::Absent) | Err(_) => None,
    };
    let asked = addresses(version, &context.settings, &InstallProgress::default()).unwrap_or_else(|error| {
        let message =
            "the index cannot be asked where it has the compiler, so an installation may have to ask it";
        messages::warning_with(message, &error, Some(&error.remedy()));
        None
    });
    // Its addresses of this release stay if no index can be asked.
    let known = || written.filter(|lock| lock.iree == version)?.addresses;
    lock(version, asked.or_else(known)).write(&context.project.lock_file()).map_err(failed)
}

fn update(place: &PlaceOptions) -> Result<(), Failed> {
    let context = ToolchainContext::at(place)?;
    let root = package(&context.project)?;
    let newest = Release::versions().into_iter().find(|version| host(version).is_ok_and(|r| r.is_loadable()));
    let newest = newest.ok_or_else(no_compiler)?;
    write_lock(newest, &context)?;
    let pinned = context.project.manifest.as_ref().and_then(|manifest| manifest.toolchain.iree.as_ref());
    if pinned.is_some() {
        pin_toolchain(&root.join(MANIFEST_NAME), newest).map_err(failed)?;
    }
    println!("this package uses the compiler {newest}");
    Ok(())
}

fn bundle(version: Option<&'static str>, output: Option<&Path>) -> Result<(), Failed> {
    let (context, release) = ToolchainContext::new()?.or_named(version)?;
    context.located(&release)?;
    let output = output.map_or_else(|| PathBuf::from(format!("{}.tar.gz", release.folder())), Path::to_owned);
    let progress = InstallProgress::default();
    sheaf_toolchain::bundle(&release, context.home.data(), &output, &progress).map_err(|e| error(&e))?;
    println!("wrote {}", output.display());
    Ok(())
}
