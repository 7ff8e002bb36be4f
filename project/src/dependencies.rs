//! `[dependencies]` and `[registries]` of a manifest.

use std::collections::BTreeMap;

use semver::VersionReq;
use url::Url;

use crate::error::FileError;
use crate::location::SourceLocation;
use crate::name::package_name;
use crate::source::GitReference;
use crate::spanned_toml::{Table, Text};

/// A dependency of a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dependency {
    /// Its name in `(use name)`.
    pub name: String,
    /// The name of the package.
    pub package: String,
    /// The versions that it may be.
    pub range: VersionReq,
    /// Its origin.
    pub source: DependencySource,
    /// Location of its line.
    pub location: SourceLocation,
}

/// Origin of a dependency, as a manifest states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DependencySource {
    /// A registry under `[registries]`; `None` for the default.
    Registry {
        /// Its name.
        name: Option<String>,
    },
    /// A git repository.
    Git {
        /// Its address.
        url: String,
        /// The requested commit.
        reference: GitReference,
    },
    /// A folder, relative to the manifest's. The published package has the registry's version instead.
    Path {
        /// The folder.
        folder: String,
    },
    /// That of the workspace's dependency of this name.
    Workspace,
}

/// The keys of a dependency.
pub(crate) const DEPENDENCY: &[&str] =
    &["version", "git", "tag", "branch", "rev", "path", "registry", "package", "workspace"];

impl Dependency {
    /// Reads the table `key` of the manifest's top level. `own` is the name of its package.
    pub(crate) fn read_all(
        root: &Table<'_, '_>,
        key: &str,
        own: Option<&str>,
    ) -> Result<Vec<Self>, FileError> {
        let mut all: Vec<Self> = Vec::new();
        for name in root.keys(key)? {
            let dependency = Self::read(root, key, &name)?;
            if own == Some(&dependency.package) {
                return Err(
                    name.refused(format!("{} depends on itself", dependency.package), "remove this line")
                );
            }
            // Readers take these for one name, and Windows' folders do in part.
            let folded = |name: &str| name.replace('_', "-");
            if let Some(other) = all.iter().find(|other| folded(&other.name) == folded(&name.value)) {
                let cause = format!("{} and {} are too alike", other.name, name.value);
                return Err(
                    name.refused(cause, "give one of them another name, and its real name as `package`")
                );
            }
            all.push(dependency);
        }
        Ok(all)
    }

    fn read(root: &Table<'_, '_>, key: &str, name: &Text<'_, '_>) -> Result<Self, FileError> {
        let all = root.open_table(key)?;
        if let Some(range) = all.text_at(&name.value) {
            check_name(name)?;
            return Ok(Self {
                name: name.value.clone(),
                package: name.value.clone(),
                range: version_range(&range)?,
                source: DependencySource::Registry { name: None },
                location: name.location(),
            });
        }
        check_name(name)?;
        let table = all.table(&name.value, DEPENDENCY)?;
        if table.flag("workspace")? {
            let more = DEPENDENCY.iter().filter(|key| **key != "workspace").find(|key| table.has(key));
            if let Some(key) = more {
                let cause = format!("{} comes from the workspace, and has a `{key}` too", name.value);
                return Err(name.refused(cause, "keep one of both"));
            }
            return Ok(Self {
                name: name.value.clone(),
                package: name.value.clone(),
                range: VersionReq::STAR,
                source: DependencySource::Workspace,
                location: name.location(),
            });
        }
        let range = table.string("version")?;
        let package = table.string("package")?;
        if let Some(package) = &package {
            check_name(package)?;
        }
        let (git, path, registry) = (table.string("git")?, table.string("path")?, table.string("registry")?);
        let source = match (git, path, registry) {
            (Some(git), None, None) => {
                DependencySource::Git { url: git.value, reference: reference(&table)? }
            }
            (None, Some(path), _) => DependencySource::Path { folder: path.value },
            (None, None, registry) if range.is_some() => {
                DependencySource::Registry { name: registry.map(|registry| registry.value) }
            }
            (None, None, _) => {
                return Err(name.refused(
                    format!("{} has no origin", name.value),
                    "give a `version` of a registry, a `git` repository, or a `path`",
                ));
            }
            (Some(_), _, _) => {
                return Err(name.refused(
                    format!("{} has several origins", name.value),
                    "keep one of `git`, `path` and `registry`",
                ));
            }
        };
        Ok(Self {
            name: name.value.clone(),
            package: package.map_or_else(|| name.value.clone(), |package| package.value),
            range: range.as_ref().map(version_range).transpose()?.unwrap_or(VersionReq::STAR),
            source,
            location: name.location(),
        })
    }
}

fn check_name(name: &Text<'_, '_>) -> Result<(), FileError> {
    package_name(&name.value).map_err(|error| name.refused(error.to_string(), "correct the name"))
}

/// The commit that a git dependency asks for.
fn reference(table: &Table<'_, '_>) -> Result<GitReference, FileError> {
    let (tag, branch, rev) = (table.string("tag")?, table.string("branch")?, table.string("rev")?);
    match (tag, branch, rev) {
        (None, None, None) => Ok(GitReference::Head),
        (Some(tag), None, None) => Ok(GitReference::Tag(tag.value)),
        (None, Some(branch), None) => Ok(GitReference::Branch(branch.value)),
        (None, None, Some(rev)) => {
            let is_commit = rev.value.len() == 40 && rev.value.bytes().all(|byte| byte.is_ascii_hexdigit());
            if is_commit {
                Ok(GitReference::Commit(rev.value.to_ascii_lowercase()))
            } else {
                Err(rev.wrong("a commit in full: 40 hexadecimal digits"))
            }
        }
        (Some(one), _, _) | (_, Some(one), _) => {
            Err(one.refused("a dependency has one of `tag`, `branch` and `rev`".into(), "remove the others"))
        }
    }
}

/// A range of versions, as cargo writes it.
pub(crate) fn version_range(text: &Text<'_, '_>) -> Result<VersionReq, FileError> {
    let range: VersionReq = text.value.parse().map_err(|error: semver::Error| {
        text.refused(
            format!("{:?} is no range of versions: {error}", text.value),
            "write one such as \"1.2\" or \">=1.2, <3\"",
        )
    })?;
    if is_empty(&range) {
        let cause = format!("no version can match {:?}", text.value);
        return Err(text.refused(cause, "its lower bound must be below its upper bound"));
    }
    Ok(range)
}

/// True if the bounds of a range exclude each other.
fn is_empty(range: &VersionReq) -> bool {
    use semver::Op;
    if range.comparators.iter().any(|comparator| !comparator.pre.is_empty()) {
        // Bounds between pre-releases of one version.
        return false;
    }
    let key = |c: &semver::Comparator| (c.major, c.minor.unwrap_or(0), c.patch.unwrap_or(0));
    // The first release above all that a comparator with missing parts names.
    let next = |c: &semver::Comparator| match (c.minor, c.patch) {
        (None, _) => (c.major + 1, 0, 0),
        (Some(minor), None) => (c.major, minor + 1, 0),
        (Some(minor), Some(patch)) => (c.major, minor, patch + 1),
    };
    let (mut low, mut high) = ((0, 0, 0), (u64::MAX, 0, 0));
    for c in &range.comparators {
        match c.op {
            Op::Greater => low = low.max(next(c)),
            Op::GreaterEq => low = low.max(key(c)),
            Op::Less => high = high.min(key(c)),
            Op::LessEq => high = high.min(next(c)),
            Op::Exact | Op::Wildcard => {
                low = low.max(key(c));
                high = high.min(next(c));
            }
            Op::Tilde => {
                low = low.max(key(c));
                high = high.min(c.minor.map_or((c.major + 1, 0, 0), |minor| (c.major, minor + 1, 0)));
            }
            Op::Caret => {
                low = low.max(key(c));
                high = high.min(match (c.major, c.minor, c.patch) {
                    (0, Some(0), Some(patch)) => (0, 0, patch + 1),
                    (0, Some(0), None) => (0, 1, 0),
                    (0, Some(minor), _) => (0, minor + 1, 0),
                    (major, ..) => (major + 1, 0, 0),
                });
            }
            _ => {}
        }
    }
    low >= high
}

/// Reads `[registries]`: the address of each index by its name.
pub(crate) fn registries(root: &Table<'_, '_>) -> Result<BTreeMap<String, String>, FileError> {
    let mut all = BTreeMap::new();
    let table = root.open_table("registries")?;
    for name in root.keys("registries")? {
        let index = match table.text_at(&name.value) {
            Some(index) => index,
            None => {
                let one = table.table(&name.value, &["index"])?;
                one.string("index")?.ok_or_else(|| {
                    name.refused(format!("the registry {} has no address", name.value), "give one as `index`")
                })?
            }
        };
        check_index(&index)?;
        all.insert(name.value.clone(), index.value);
    }
    Ok(all)
}

/// Reads `[mirrors]`: the addresses that are asked instead of that of an index, by the latter.
pub(crate) fn mirrors(root: &Table<'_, '_>) -> Result<BTreeMap<String, Vec<String>>, FileError> {
    let mut all = BTreeMap::new();
    let table = root.open_table("mirrors")?;
    for index in root.keys("mirrors")? {
        check_index(&index)?;
        let mirrors = table.texts(&index.value)?.unwrap_or_default();
        mirrors.iter().try_for_each(check_index)?;
        all.insert(index.value, mirrors.into_iter().map(|mirror| mirror.value).collect());
    }
    Ok(all)
}

/// An error unless the text can be the address of an index: it is written into lock files and messages.
fn check_index(index: &Text<'_, '_>) -> Result<(), FileError> {
    let address = index.value.strip_prefix("sparse+").unwrap_or(&index.value);
    let has_password = Url::parse(address).is_ok_and(|url| url.password().is_some());
    if has_password || address.is_empty() || address.chars().any(char::is_control) {
        let cause = "the address of a registry has no password".to_owned();
        let mut error = index.refused(cause, "remove it, and run `sheaf login HOST`");
        if let FileError::Refused { location, .. } = &mut error {
            location.excerpt =
                location.excerpt.replace(&index.value, &"*".repeat(index.value.chars().count()));
        }
        return Err(error);
    }
    Ok(())
}
