//! Care of a registry: its first files, yanked versions, and the check of a change.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use semver::Version;
use sheaf_foundation::atomic;

use crate::index::{CONFIG_NAME, Entry, Folder, IndexConfig, IndexFiles, package_path, yanked_line};

pub use lines::{fetch, new_entries};
pub use names::misnamed;

mod lines;
mod names;

/// Failure to change a registry's folder. It is as it was.
#[derive(Debug, thiserror::Error)]
pub enum TendError {
    /// The folder has files already.
    #[error("{} is not empty; name a new folder", .0.display())]
    NotEmpty(PathBuf),
    /// The folder is not a registry's.
    #[error("{} is no registry: it has no {CONFIG_NAME}; run the command in the folder of one", .0.display())]
    NoRegistry(PathBuf),
    /// The version does not exist.
    #[error("the registry has no {package} {version}; it has {known}")]
    NoVersion {
        /// The package.
        package: String,
        /// The version.
        version: Version,
        /// Versions that exist.
        known: String,
    },
    /// A line of the package's file is invalid.
    #[error("{}: {cause}; correct it first", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The invalid line.
        cause: crate::index::EntryError,
    },
    /// A file cannot be read or written.
    #[error("{}: {source}; make it and its folder yours to write", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
}

/// A line of a registry that its users could not use, or a change that takes something from them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file in the registry.
    pub file: String,
    /// The cause.
    pub cause: String,
}

const README: &str = include_str!("tend/README.md");

/// Writes the first files of a registry into a new or empty folder.
pub fn init(folder: &Path, name: &str) -> Result<(), TendError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |source| TendError::File { path, source }
    };
    fs::create_dir_all(folder).map_err(failed(folder))?;
    let mut entries = fs::read_dir(folder).map_err(failed(folder))?;
    if entries.any(|entry| entry.is_ok_and(|entry| entry.file_name() != ".git")) {
        return Err(TendError::NotEmpty(folder.into()));
    }
    let name = toml::Value::from(name);
    let config =
        format!("# Layout of this registry, and its name in messages.\nversion = 1\nname = {name}\n");
    for (file, text) in [(CONFIG_NAME, config.as_str()), ("README.md", README)] {
        let path = folder.join(file);
        fs::write(&path, text).map_err(failed(&path))?;
    }
    Ok(())
}

/// Yanks a version in a registry's folder, with the reason that users are shown; without one, takes the yank back.
/// Returns the file that changed.
pub fn yank(
    folder: &Path,
    package: &str,
    version: &Version,
    reason: Option<&str>,
) -> Result<PathBuf, TendError> {
    if !folder.join(CONFIG_NAME).is_file() {
        return Err(TendError::NoRegistry(folder.into()));
    }
    let no_version =
        |known: String| TendError::NoVersion { package: package.into(), version: version.clone(), known };
    let path = package_path(package)
        .map(|path| folder.join(path))
        .ok_or_else(|| no_version("no such package".into()))?;
    let bytes = match fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(no_version("no such package".into()));
        }
        Err(source) => return Err(TendError::File { path, source }),
    };
    let invalid = |cause| TendError::Invalid { path: path.clone(), cause };
    match yanked_line(package, &bytes, version, reason).map_err(invalid)? {
        Some(text) => {
            atomic::replace(&path, text.as_bytes())
                .map_err(|error| TendError::File { path: path.clone(), source: error.source })?;
            Ok(path)
        }
        None => {
            let entries = Entry::parse_all(package, &bytes).map_err(invalid)?;
            let known: Vec<_> = entries.iter().map(|entry| entry.version.to_string()).collect();
            Err(no_version(known.join(", ")))
        }
    }
}

/// Checks the registry in `folder`; with a `base`, its state before a change, also the change: a version that users may
/// have locked is neither removed nor altered, except for a yank.
pub fn check(folder: &Path, base: Option<&dyn IndexFiles>) -> Result<Vec<Problem>, TendError> {
    let files = Folder::new(folder.into());
    let config = folder.join(CONFIG_NAME);
    let mut problems = Vec::new();
    match fs::read(&config).map(|bytes| IndexConfig::parse(&bytes)) {
        Ok(Ok(_)) => {}
        Ok(Err(cause)) => problems.push(Problem { file: CONFIG_NAME.into(), cause }),
        Err(_) => return Err(TendError::NoRegistry(folder.into())),
    }
    let entries = read_all(&files, &mut problems);
    for (package, versions) in &entries {
        for dependency in versions.iter().flat_map(|entry| &entry.dependencies) {
            if dependency.registry.is_none() && !entries.contains_key(dependency.package()) {
                let cause =
                    format!("{package} needs {}, which this registry does not have", dependency.package());
                problems.push(Problem { file: path_of(package), cause });
            }
        }
    }
    for entry in entries.values().flatten() {
        let altered = entry.signer().err();
        problems
            .extend(altered.map(|error| Problem { file: path_of(&entry.name), cause: error.to_string() }));
    }
    problems.extend(misnamed(folder));
    if let Some(base) = base {
        let mut ignored = Vec::new();
        let known = read_all(base, &mut ignored);
        for (package, before) in &known {
            let now = entries.get(package).map(Vec::as_slice).unwrap_or_default();
            problems.extend(before.iter().filter_map(|entry| changed(entry, now)));
            problems.extend(other_signers(before, now));
        }
        // A package whose lines could not be read before is not new.
        let known = base.list().ok().flatten().unwrap_or_else(|| known.into_keys().collect());
        problems.extend(names::alike(&known, entries.keys()));
    }
    problems.sort();
    problems.dedup();
    Ok(problems)
}

/// The problem if a version of before is gone or altered.
fn changed(before: &Entry, now: &[Entry]) -> Option<Problem> {
    let subject = format!("{} {}", before.name, before.version);
    let cause = match now.iter().find(|entry| entry.version == before.version) {
        None => format!("{subject} is gone: projects may have locked it; yank it instead"),
        Some(entry) if Entry { yanked: before.yanked.clone(), ..entry.clone() } != *before => {
            format!("{subject} is altered: a published version stays as it is; publish another")
        }
        Some(_) => return None,
    };
    Some(Problem { file: path_of(&before.name), cause })
}

/// Problems with new versions of a signed package: whoever signs none of its older versions is not known as its author.
fn other_signers<'a>(before: &'a [Entry], now: &'a [Entry]) -> impl Iterator<Item = Problem> + use<'a> {
    let signer = |entry: &'a Entry| entry.signature.as_ref().map(|signature| &signature.signer);
    let known: Vec<_> = before.iter().filter_map(signer).collect();
    let is_new = |entry: &&Entry| !before.iter().any(|old| old.version == entry.version);
    now.iter().filter(is_new).filter_map(move |entry| {
        let signer = signer(entry);
        if known.is_empty() || signer.is_some_and(|signer| known.contains(&signer)) {
            return None;
        }
        let whose = signer.map_or("not signed".into(), |signer| format!("signed by {signer}"));
        let cause = format!(
            "{} {} is {whose}, and older versions are signed by {}: ask the author before you merge it",
            entry.name, entry.version, known[0]
        );
        Some(Problem { file: path_of(&entry.name), cause })
    })
}

/// The entries of all packages; invalid files become problems.
fn read_all(files: &dyn IndexFiles, problems: &mut Vec<Problem>) -> BTreeMap<String, Vec<Entry>> {
    let mut entries = BTreeMap::new();
    let names = match files.list() {
        Ok(names) => names.unwrap_or_default(),
        Err(error) => {
            problems.push(Problem { file: ".".into(), cause: error.cause });
            Vec::new()
        }
    };
    for name in BTreeSet::from_iter(names) {
        let file = path_of(&name);
        let read = files.read(&file).map_err(|error| error.cause);
        let parsed = read.and_then(|bytes| {
            Entry::parse_all(&name, &bytes.unwrap_or_default()).map_err(|error| error.to_string())
        });
        match parsed {
            Ok(versions) => {
                entries.insert(name, versions);
            }
            Err(cause) => problems.push(Problem { file, cause }),
        }
    }
    entries
}

/// The path of a package's file.
fn path_of(package: &str) -> String {
    package_path(package).unwrap_or_else(|| package.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"name":"ode","version":"1.2.0","dependencies":[],"repository":"https://git.example/ode","ref":"refs/tags/v1.2.0","commit":"0123456789012345678901234567890123456789","tree":"sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}"#;

    fn registry() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        init(folder.path(), "team \"one\"").unwrap();
        fs::create_dir_all(folder.path().join("3/o")).unwrap();
        write(&folder, &format!("{LINE}\n{}\n", LINE.replace("1.2.0", "1.3.0")));
        folder
    }

    fn write(folder: &tempfile::TempDir, text: &str) {
        fs::write(folder.path().join("3/o/ode"), text).unwrap();
    }

    fn causes(folder: &tempfile::TempDir, base: Option<&tempfile::TempDir>) -> Vec<String> {
        let base = base.map(|base| Folder::new(base.path().into()));
        let problems = check(folder.path(), base.as_ref().map(|base| base as &dyn IndexFiles)).unwrap();
        problems.into_iter().map(|problem| format!("{}: {}", problem.file, problem.cause)).collect()
    }

    #[test]
    fn a_new_registry_is_valid_and_made_once() {
        let folder = registry();
        assert_eq!(causes(&folder, None), [""; 0]);
        assert!(matches!(init(folder.path(), "again"), Err(TendError::NotEmpty(_))));
        assert!(matches!(check(&folder.path().join("3"), None), Err(TendError::NoRegistry(_))));
    }

    #[test]
    fn the_author_of_a_signed_package_stays_its_author() {
        use sheaf_foundation::SecretKey;
        let (ada, eve) = (SecretKey::generate("ada").unwrap(), SecretKey::generate("eve").unwrap());
        let entry = |version: &str| {
            Entry::parse_all("ode", LINE.replace("\"1.2.0", &format!("\"{version}")).as_bytes())
                .unwrap()
                .remove(0)
        };
        let (folder, base) = (registry(), registry());
        let first = entry("1.2.0").signed(&ada).line();
        write(&base, &first);
        let next = |line: String| {
            write(&folder, &format!("{first}\n{line}\n"));
            let shown = causes(&folder, Some(&base)).join("\n");
            shown.replace(&ada.public().to_string(), "ada:1").replace(&eve.public().to_string(), "eve:2")
        };
        assert_eq!(next(entry("1.3.0").signed(&ada).line()), "");
        insta::assert_snapshot!(next(entry("1.3.0").signed(&eve).line()), @"3/o/ode: ode 1.3.0 is signed by eve:2, and older versions are signed by ada:1: ask the author before you merge it");
        insta::assert_snapshot!(next(entry("1.3.0").line()), @"3/o/ode: ode 1.3.0 is not signed, and older versions are signed by ada:1: ask the author before you merge it");
        insta::assert_snapshot!(next(entry("1.3.0").signed(&ada).line().replace("\"1.3.0", "\"1.4.0")), @"3/o/ode: the line of ode 1.4.0 in the registry is not what ada:1 signed: it was changed after it was published; ask who keeps the registry");
    }

    #[test]
    fn a_yank_is_no_alteration() {
        let (folder, base) = (registry(), registry());
        let version = Version::new(1, 3, 0);
        yank(folder.path(), "ode", &version, Some("wrong sign")).unwrap();
        let entries = |folder: &tempfile::TempDir| {
            Entry::parse_all("ode", &fs::read(folder.path().join("3/o/ode")).unwrap()).unwrap()
        };
        assert_eq!(entries(&folder)[1].yanked.as_deref(), Some("wrong sign"));
        assert_eq!(causes(&folder, Some(&base)), [""; 0]);
        yank(folder.path(), "ode", &version, None).unwrap();
        assert_eq!(entries(&folder), entries(&base));
        let message =
            |package, version| yank(folder.path(), package, &version, None).unwrap_err().to_string();
        assert_eq!(
            message("ode", Version::new(9, 0, 0)),
            "the registry has no ode 9.0.0; it has 1.2.0, 1.3.0"
        );
        assert_eq!(
            message("../x", Version::new(1, 0, 0)),
            "the registry has no ../x 1.0.0; it has no such package"
        );
    }

    #[test]
    fn what_takes_something_from_users_is_a_problem() {
        let base = registry();
        for (text, cause) in [
            (LINE.to_owned(), "3/o/ode: ode 1.3.0 is gone: projects may have locked it; yank it instead"),
            (
                format!("{LINE}\n{}", LINE.replace("1.2.0", "1.3.0").replace("0123", "4567")),
                "3/o/ode: ode 1.3.0 is altered: a published version stays as it is; publish another",
            ),
            (
                format!(
                    "{LINE}\n{}",
                    LINE.replace("1.2.0", "1.3.0").replace("[]", "[{\"name\":\"maths\",\"range\":\"^1\"}]")
                ),
                "3/o/ode: ode needs maths, which this registry does not have",
            ),
            (format!("{LINE}\nx"), "3/o/ode: line 2: expected value, at column 1"),
        ] {
            let folder = registry();
            write(&folder, &text);
            assert!(
                causes(&folder, Some(&base)).contains(&cause.to_owned()),
                "{:?}",
                causes(&folder, Some(&base))
            );
        }
    }
}
