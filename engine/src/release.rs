//! The release of the compiler that a project uses.
//!
//! `Sheaf.lock` decides, then `[toolchain] iree` of `Sheaf.toml` and of the user's configuration, then the release whose
//! runtime is linked in. A contradiction is an error that names the command that mends it.

use sheaf_project::{
    Addresses, Found, LOCK_NAME, LockedFile, MANIFEST_NAME, Origin, Project, Setting, Settings, ToolchainLock,
};
use sheaf_target::{COMPILER, Platform, Release};
use sheaf_toolchain::{InstallError, Listing, Progress};

use crate::compile::fetching;
use sheaf_loader::Reporter;

/// Reason why a release cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    /// The reason.
    pub why: String,
    /// The remedy; `None` if the reason has it.
    pub remedy: Option<String>,
}

impl Unusable {
    fn new(why: String, remedy: impl Into<String>) -> Self {
        Self { why, remedy: Some(remedy.into()) }
    }
}

/// The release that a project uses on this machine, its `Sheaf.lock` taken over into the settings; `None` on a machine
/// without compilers.
pub fn choose(
    settings: &mut Settings,
    project: &Project,
    reporter: &dyn Reporter,
) -> Result<Option<Release<'static>>, Unusable> {
    let lock = match project.lock() {
        Ok(Found::File(lock)) => lock,
        Ok(Found::Foreign(foreign)) => {
            reporter.passed_over(&foreign.to_string());
            None
        }
        Ok(Found::Absent) => None,
        Err(error) => return Err(Unusable { why: error.to_string(), remedy: None }),
    };
    settle(settings, project, lock.as_ref())?;
    release(settings)
}

/// Takes the project's `Sheaf.lock`, if it has one, over into the settings.
pub fn settle(
    settings: &mut Settings,
    project: &Project,
    lock: Option<&ToolchainLock>,
) -> Result<(), Unusable> {
    let Some(lock) = lock else { return Ok(()) };
    let path = project.lock_file();
    let pinned = project.manifest.as_ref().and_then(|manifest| manifest.toolchain.iree.as_deref());
    if let Some(pinned) = pinned.filter(|pinned| *pinned != lock.iree) {
        let why = format!("Sheaf.toml wants the compiler {pinned}, but {} has {}", path.display(), lock.iree);
        return Err(Unusable::new(why, format!("run `sheaf toolchain pin {pinned}`")));
    }
    for platform in Platform::ALL {
        // To pin one again that cannot be loaded would be no help; `release` gives the remedy.
        let release = Release::find(&lock.iree, platform).filter(Release::is_loadable);
        let Some(release) = release else { continue };
        if lock.files.get(platform.name()) != Some(&locked_file(&release)) {
            let why = format!(
                "{} has another compiler {} for {} than was published",
                path.display(),
                lock.iree,
                platform.name()
            );
            return Err(Unusable::new(why, format!("run `sheaf toolchain pin {}`", lock.iree)));
        }
    }
    settings.iree = Some(Setting { value: lock.iree.clone(), origin: Origin::File(path) });
    settings.addresses.clone_from(&lock.addresses);
    Ok(())
}

/// The version that the settings ask for, once [settled](settle).
pub fn version(settings: &Settings) -> &str {
    settings.iree.as_ref().map_or(COMPILER[0].version, |iree| &iree.value)
}

/// The release that the settings ask for, for this machine, if its programs can be run here. The outer none stands for a
/// machine without compilers.
pub fn release(settings: &Settings) -> Result<Option<Release<'static>>, Unusable> {
    let Some(platform) = Platform::host() else { return Ok(None) };
    let version = version(settings);
    let origin = settings.iree.as_ref().map_or(&Origin::Default, |iree| &iree.origin);
    let Some(release) = Release::find(version, platform) else {
        let why = format!(
            "{origin} wants the compiler {version}, which this Sheaf does not know; it knows {}",
            Release::versions().join(", ")
        );
        return Err(Unusable::new(why, format!("install a newer Sheaf, or {}", choose_another(origin))));
    };
    loadable(&release).map_err(|why| Unusable::new(format!("{origin}: {why}"), choose_another(origin)))?;
    Ok(Some(release))
}

/// The remedy that chooses another release than the one of this origin.
fn choose_another(origin: &Origin) -> String {
    match origin {
        // The user's own file, which no command writes.
        Origin::File(path) if !path.ends_with(MANIFEST_NAME) && !path.ends_with(LOCK_NAME) => {
            format!("correct `iree` in {}", path.display())
        }
        _ => "run `sheaf toolchain update`".to_owned(),
    }
}

/// Fails, with the reason, unless the linked runtime loads the programs of a release.
pub fn loadable(release: &Release<'_>) -> Result<(), String> {
    if release.is_loadable() {
        return Ok(());
    }
    let ((major, minor), (runtime_major, runtime_minor)) = (release.bytecode, COMPILER[0].bytecode);
    Err(format!(
        "the compiler {} makes programs with bytecode {major}.{minor}, and the runtime in this Sheaf loads \
         {runtime_major}.{runtime_minor}",
        release.version
    ))
}

/// A lock of a release: the file of every platform.
pub fn lock(version: &str, addresses: Option<Addresses>) -> ToolchainLock {
    let files =
        of_all_platforms(version).map(|release| (release.platform.name().to_owned(), locked_file(&release)));
    ToolchainLock { iree: version.to_owned(), files: files.collect(), addresses }
}

/// Addresses of a release in the index, so that an installation need not ask it; `None` if no index is to be asked.
pub fn addresses(
    version: &str,
    settings: &Settings,
    progress: &dyn Progress,
) -> Result<Option<Addresses>, InstallError> {
    let releases: Vec<_> = of_all_platforms(version).collect();
    let listing = Listing::ask(&releases, &fetching(settings), progress)?;
    Ok(listing.map(|Listing { index, files }| Addresses { index, files }))
}

fn of_all_platforms(version: &str) -> impl Iterator<Item = Release<'static>> {
    Platform::ALL.into_iter().filter_map(move |platform| Release::find(version, platform))
}

fn locked_file(release: &Release<'_>) -> LockedFile {
    LockedFile { name: release.wheel.to_owned(), sha256: release.sha256.to_owned(), size: release.size }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use sheaf_project::SheafToml;

    use super::*;

    /// The release in force in a project with this `[toolchain]` table and this lock.
    fn settled(table: &str, lock: Option<&ToolchainLock>) -> Result<&'static str, String> {
        let text = format!("[toolchain]\n{table}\n");
        let manifest = SheafToml::parse(Path::new("/p/Sheaf.toml"), &text).expect("a manifest");
        let mut settings =
            Settings::merge(None, Some(&manifest), |_| true, |_| None, &sheaf_project::Options::default())
                .expect("settings");
        let project = Project { root: "/p".into(), manifest: Some(manifest), ..Project::default() };
        let result = settle(&mut settings, &project, lock).and_then(|()| release(&settings));
        let said =
            |unusable: Unusable| format!("{}\nhelp: {}", unusable.why, unusable.remedy.unwrap_or_default());
        result.map(|release| release.expect("a machine with compilers").version).map_err(said)
    }

    #[test]
    fn the_lock_counts_then_the_pin_then_the_default() {
        assert_eq!(settled("", None).as_deref(), Ok("3.13.0"));
        assert_eq!(settled("iree = \"3.12.0\"", None).as_deref(), Ok("3.12.0"));
        assert_eq!(settled("", Some(&lock("3.12.0", None))).as_deref(), Ok("3.12.0"));
        assert_eq!(settled("iree = \"3.12.0\"", Some(&lock("3.12.0", None))).as_deref(), Ok("3.12.0"));
    }

    #[test]
    fn what_cannot_be_is_said_with_what_to_do() {
        let said =
            |table: &str, lock: Option<&ToolchainLock>| settled(table, lock).expect_err("not to be used");
        assert_eq!(
            said("iree = \"3.13.0\"", Some(&lock("3.12.0", None))),
            "Sheaf.toml wants the compiler 3.13.0, but /p/Sheaf.lock has 3.12.0\n\
             help: run `sheaf toolchain pin 3.13.0`"
        );
        assert_eq!(
            said("iree = \"9.9.9\"", None),
            "/p/Sheaf.toml wants the compiler 9.9.9, which this Sheaf does not know; it knows 3.13.0, 3.12.0, 3.11.0, \
             3.10.0, 3.9.0, 3.8.0\nhelp: install a newer Sheaf, or run `sheaf toolchain update`"
        );
        assert_eq!(
            said("iree = \"3.9.0\"", None),
            "/p/Sheaf.toml: the compiler 3.9.0 makes programs with bytecode 15.0, and the runtime in this Sheaf loads \
             17.0\nhelp: run `sheaf toolchain update`"
        );
        let mut altered = lock("3.13.0", None);
        altered.files.get_mut("windows-x86_64").expect("a platform").sha256 = "00".repeat(32);
        assert_eq!(
            said("", Some(&altered)),
            "/p/Sheaf.lock has another compiler 3.13.0 for windows-x86_64 than was published\n\
             help: run `sheaf toolchain pin 3.13.0`"
        );
        let mut old = lock("3.9.0", None);
        old.files.get_mut("windows-x86_64").expect("a platform").sha256 = "00".repeat(32);
        assert_eq!(
            said("", Some(&old)),
            "/p/Sheaf.lock: the compiler 3.9.0 makes programs with bytecode 15.0, and the runtime in this Sheaf loads \
             17.0\nhelp: run `sheaf toolchain update`"
        );
        altered.files.remove("windows-x86_64");
        assert!(settled("", Some(&altered)).is_err());
    }

    #[test]
    fn what_the_user_has_chosen_the_user_corrects() {
        for version in ["9.9.9", "3.9.0"] {
            let origin = Origin::File("/u/config.toml".into());
            let iree = Some(Setting { value: version.to_owned(), origin });
            let unusable = release(&Settings { iree, ..Settings::default() }).expect_err("not to be used");
            let remedy = unusable.remedy.expect("a remedy");
            assert!(remedy.ends_with("correct `iree` in /u/config.toml"), "{remedy}");
        }
    }
}
