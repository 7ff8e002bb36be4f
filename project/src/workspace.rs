//! `[workspace]`: packages that are resolved together, with one `Sheaf.lock` and shared dependencies.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::dependencies::{Dependency, DependencySource};
use crate::error::FileError;
use crate::location::SourceLocation;
use crate::manifest::SheafToml;
use crate::project::MANIFEST_NAME;
use crate::spanned_toml::{Found, Table};
use sheaf_foundation::Owners;

/// The keys of `[workspace]`.
pub(crate) const WORKSPACE: &[&str] = &["members", "exclude", "dependencies"];

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
        let table = root.table("workspace", WORKSPACE)?;
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
    pub fn inherit(&mut self, workspace: Option<(&WorkspaceTable, &str)>) -> Result<(), FileError> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::Project;

    fn own() -> Owners {
        Owners::of_process(|_| None, &[])
    }

    fn tree(files: &[(&str, &str)]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let root = folder.path().canonicalize().unwrap();
        (folder, root)
    }

    fn members(project: &Project) -> Result<Vec<Member>, FileError> {
        let table = project.manifest.as_ref().unwrap().workspace.as_ref().unwrap();
        table.members(&project.root, &project.owners)
    }

    #[test]
    fn patterns_are_folders_of_one_part_each() {
        let text =
            "[workspace]\nmembers = [\"app/\", \"packages/*\", \"*/deep/*\"]\nexclude = [\"packages/old\"]\n";
        let manifest = SheafToml::parse(Path::new("/p/Sheaf.toml"), text).unwrap();
        let table = manifest.workspace.unwrap();
        for folder in ["app", "packages/a", "x/deep/y"] {
            assert!(table.includes(folder), "{folder}");
        }
        for folder in
            ["", "ap", "app/x", "packages", "packages/a/b", "packages/old", "packages/.git", "deep/y"]
        {
            assert!(!table.includes(folder), "{folder}");
        }
    }

    #[test]
    fn a_member_takes_from_its_workspace_what_it_does_not_say() {
        let (_folder, root) = tree(&[
            (
                "Sheaf.toml",
                "[workspace]\nmembers = [\"a/b\", \"c\"]\n[workspace.dependencies]\nunits = { version = \"1\", registry = \"team\" }\n\
                 other = { package = \"real\", path = \"c\" }\n[registries]\nteam = \"https://team.example\"\ndefault = \"https://d.example\"\n\
                 [toolchain]\niree = \"3.13.0\"\n[resolver]\nexclude-newer = \"7 days\"\n",
            ),
            (
                "a/b/Sheaf.toml",
                "[package]\nname = \"b\"\n[dependencies]\nunits = { workspace = true }\n[dev-dependencies]\n\
                 other = { workspace = true }\n[registries]\ndefault = \"https://own.example\"\n",
            ),
            ("a/b/src/main.shf", ""),
            ("c/Sheaf.toml", "[package]\nname = \"real\"\n"),
            ("d/Sheaf.toml", "[package]\nname = \"d\"\n"),
        ]);
        let project = Project::locate(&root.join("a/b/src/main.shf"), own()).unwrap();
        assert_eq!((&project.root, project.lock_root()), (&root.join("a/b"), root.as_path()));
        let manifest = project.manifest.unwrap();
        assert_eq!(manifest.dependencies[0].source, DependencySource::Registry { name: Some("team".into()) });
        assert_eq!(manifest.dependencies[0].range, "1".parse().unwrap());
        assert_eq!(manifest.dev_dependencies[0].source, DependencySource::Path { folder: "../../c".into() });
        assert_eq!(manifest.dev_dependencies[0].package, "real");
        assert_eq!(manifest.registries["default"], "https://own.example");
        assert_eq!(manifest.registries["team"], "https://team.example");
        assert_eq!(manifest.toolchain.iree.as_deref(), Some("3.13.0"));
        assert!(manifest.resolver.exclude_newer.is_some());
        let outside = Project::locate_from(&root.join("d"), own()).unwrap();
        assert_eq!((outside.workspace, outside.manifest.unwrap().toolchain.iree), (None, None));
        let names: Vec<_> = members(&Project::locate_from(&root, own()).unwrap())
            .unwrap()
            .into_iter()
            .map(|m| m.name)
            .collect();
        assert_eq!(names, ["b", "real"]);
    }

    /// A start in a member reads the manifests above it, and no other member's.
    #[test]
    fn two_hundred_members_are_found_and_one_is_located_alone() {
        let (_folder, root) = tree(&[("Sheaf.toml", "[workspace]\nmembers = [\"packages/*\"]\n")]);
        for i in 0..200 {
            let folder = root.join(format!("packages/p{i}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("Sheaf.toml"), format!("[package]\nname = \"p{i}\"\n")).unwrap();
        }
        assert_eq!(members(&Project::locate_from(&root, own()).unwrap()).unwrap().len(), 200);
        fs::write(root.join("packages/p7/Sheaf.toml"), "[package\n").unwrap();
        assert!(members(&Project::locate_from(&root, own()).unwrap()).is_err());
        let project = Project::locate_from(&root.join("packages/p8"), own()).unwrap();
        assert_eq!(project.workspace.map(|workspace| workspace.member).as_deref(), Some("packages/p8"));
    }
}
