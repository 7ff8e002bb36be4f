//! `[workspace]`: packages that are resolved together, with one `Sheaf.lock` and shared dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::dependencies::{Dependency, DependencySource};
use crate::error::FileError;
use crate::location::SourceLocation;
use crate::manifest::SheafToml;
use crate::owner::Owners;
use crate::project::MANIFEST_NAME;
use crate::spanned_toml::{Found, Table};

/// `[workspace]` of the manifest at its root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceTable {
    /// Folders of the members; a part may be `*`.
    members: Vec<Pattern>,
    /// Folders that are no members, though a pattern matches them.
    exclude: Vec<Pattern>,
    /// `[workspace.dependencies]`: those that members take with `workspace = true`.
    pub dependencies: Vec<Dependency>,
}

/// The folder of a member, relative to the root, or a pattern of such folders.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Pattern {
    parts: Vec<String>,
    location: SourceLocation,
}

/// The workspace of a member.
#[derive(Debug, Clone, PartialEq)]
pub struct Workspace {
    /// The folder of its manifest.
    pub root: PathBuf,
    /// That manifest.
    pub manifest: SheafToml,
    /// The folder of the member, relative to the root, with `/` between its parts.
    pub member: String,
}

/// A member of a workspace.
#[derive(Debug, Clone, PartialEq)]
pub struct Member {
    /// Its folder, relative to the root.
    pub folder: String,
    /// The name of its package.
    pub name: String,
    /// Its manifest, with what it takes from the workspace.
    pub manifest: SheafToml,
}

impl WorkspaceTable {
    /// Reads the table; `None` if the manifest has none.
    pub(crate) fn read(root: &Table<'_, '_>) -> Result<Option<Self>, FileError> {
        if !root.has("workspace") {
            return Ok(None);
        }
        let table = root.table("workspace", &["members", "exclude", "dependencies"])?;
        let patterns = |key| -> Result<Vec<Pattern>, FileError> {
            let texts = table.texts(key)?.unwrap_or_default();
            let pattern = |text: &crate::spanned_toml::Text<'_, '_>| {
                let parts: Vec<String> =
                    text.value.trim_end_matches('/').split('/').map(str::to_owned).collect();
                let is_wrong = |part: &String| {
                    matches!(part.as_str(), "" | "." | "..")
                        || (part.contains('*') && part != "*")
                        || part.contains('\\')
                };
                if parts.iter().any(is_wrong) {
                    return Err(text.wrong(
                        "a folder inside the workspace, such as \"packages/vision\" or \"packages/*\"",
                    ));
                }
                Ok(Pattern { parts, location: text.location() })
            };
            texts.iter().map(pattern).collect()
        };
        let (members, exclude) = (patterns("members")?, patterns("exclude")?);
        let dependencies = Dependency::read_all(&table, "dependencies", None)?;
        if let Some(other) = dependencies.iter().find(|other| other.source == DependencySource::Workspace) {
            return Err(refused(
                &other.location,
                "a shared dependency has an origin of its own".into(),
                "give its `version`, `git` or `path`",
            ));
        }
        Ok(Some(Self { members, exclude, dependencies }))
    }

    /// True if the folder, relative to the root, is a member.
    pub fn includes(&self, folder: &str) -> bool {
        let matches = |patterns: &[Pattern]| patterns.iter().any(|pattern| pattern.matches(folder));
        matches(&self.members) && !matches(&self.exclude)
    }

    /// The members, sorted by folder.
    ///
    /// # Errors
    ///
    /// A folder without a package, two packages of one name, or a manifest that cannot be read.
    pub fn members(&self, root: &Path, owners: &Owners) -> Result<Vec<Member>, FileError> {
        let mut members: Vec<Member> = Vec::new();
        let mut seen = BTreeSet::new();
        for pattern in &self.members {
            for folder in pattern.folders(root) {
                if !self.includes(&folder) || !seen.insert(folder.clone()) {
                    continue;
                }
                let path = root.join(&folder).join(MANIFEST_NAME);
                let mut manifest = match SheafToml::read(&path, owners)? {
                    Found::File(manifest) => manifest,
                    Found::Foreign(foreign) => {
                        return Err(refused(
                            &pattern.location,
                            foreign.to_string(),
                            "remove the folder from the members",
                        ));
                    }
                    Found::Absent if pattern.is_exact() => {
                        let cause = format!("{folder} has no {MANIFEST_NAME}");
                        return Err(refused(
                            &pattern.location,
                            cause,
                            "make the package with `sheaf new`, or remove it here",
                        ));
                    }
                    Found::Absent => continue,
                };
                let Some(name) = manifest.package.name.clone() else {
                    let cause = format!("the package in {folder} has no name");
                    return Err(refused(&pattern.location, cause, "add `name` to its [package]"));
                };
                if let Some(other) = members.iter().find(|other| other.name == name) {
                    let cause = format!("{} and {folder} are both called {name}", other.folder);
                    return Err(refused(&pattern.location, cause, "give one of them another name"));
                }
                manifest.inherit(Some((self, &folder)))?;
                members.push(Member { folder, name, manifest });
            }
        }
        members.sort_by(|a, b| a.folder.cmp(&b.folder));
        Ok(members)
    }
}

impl Pattern {
    fn is_exact(&self) -> bool {
        self.parts.iter().all(|part| part != "*")
    }

    fn matches(&self, folder: &str) -> bool {
        let mut parts = folder.split('/');
        let all = self.parts.iter().all(|pattern| {
            parts
                .next()
                .is_some_and(|part| if pattern == "*" { !part.starts_with('.') } else { part == pattern })
        });
        all && parts.next().is_none()
    }

    /// The folders that match, sorted; an exact one whether it exists or not.
    fn folders(&self, root: &Path) -> Vec<String> {
        let mut found = vec![String::new()];
        for part in &self.parts {
            let join = |folder: &String, name: &str| {
                if folder.is_empty() { name.to_owned() } else { format!("{folder}/{name}") }
            };
            found = match part.as_str() {
                "*" => {
                    let inside = |folder: &String| {
                        let entries = fs::read_dir(root.join(folder)).into_iter().flatten().flatten();
                        let folders = entries.filter(|entry| entry.path().is_dir());
                        let names = folders.filter_map(|entry| entry.file_name().into_string().ok());
                        names
                            .filter(|name| !name.starts_with('.'))
                            .map(|name| join(folder, &name))
                            .collect::<Vec<_>>()
                    };
                    found.iter().flat_map(inside).collect()
                }
                name => found.iter().map(|folder| join(folder, name)).collect(),
            };
        }
        found.sort();
        found
    }
}

impl SheafToml {
    /// Replaces dependencies with `workspace = true` by those of the workspace that has the package in this folder.
    ///
    /// # Errors
    ///
    /// There is no workspace, or it does not have the dependency.
    pub(crate) fn inherit(&mut self, workspace: Option<(&WorkspaceTable, &str)>) -> Result<(), FileError> {
        for dependency in self.dependencies.iter_mut().chain(&mut self.dev_dependencies) {
            if dependency.source != DependencySource::Workspace {
                continue;
            }
            let Some((table, folder)) = workspace else {
                let cause =
                    format!("{} is to come from a workspace, and this package is in none", dependency.name);
                let remedy = "give its `version`, or list the package among the members of a [workspace]";
                return Err(refused(&dependency.location, cause, remedy));
            };
            let Some(shared) = table.dependencies.iter().find(|shared| shared.name == dependency.name) else {
                let names = table.dependencies.iter().map(|shared| shared.name.as_str());
                let near = names.map(|name| (strsim::jaro_winkler(name, &dependency.name), name));
                let near = near.filter(|(score, _)| *score > 0.8).max_by(|a, b| a.0.total_cmp(&b.0));
                let near = near.map(|(_, name)| format!("; did you mean {name}?")).unwrap_or_default();
                let cause = format!("the workspace shares no dependency {}{near}", dependency.name);
                return Err(refused(&dependency.location, cause, "add it under [workspace.dependencies]"));
            };
            dependency.package.clone_from(&shared.package);
            dependency.range.clone_from(&shared.range);
            dependency.source = match &shared.source {
                DependencySource::Path { folder: path } if !Path::new(path).is_absolute() => {
                    let up = "../".repeat(folder.split('/').filter(|part| !part.is_empty()).count());
                    DependencySource::Path { folder: format!("{up}{path}") }
                }
                source => source.clone(),
            };
        }
        Ok(())
    }
}

fn refused(location: &SourceLocation, cause: String, remedy: &'static str) -> FileError {
    FileError::Refused { location: location.clone().into(), cause, remedy }
}
