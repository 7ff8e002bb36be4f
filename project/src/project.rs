//! The project of a program.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::FileError;
use crate::lock::{LOCK_NAME, ToolchainLock, check_format};
use crate::manifest::{DEFAULT_MAIN, SheafToml};
use crate::resolver::ResolverTable;
use crate::spanned_toml::Found;
use crate::tables::{CacheTable, ToolchainTable};
use crate::workspace::Workspace;
use sheaf_foundation::{Foreign, Owners};

/// The name of a package's manifest.
pub const MANIFEST_NAME: &str = "Sheaf.toml";
/// The name of the artifact folder.
pub const ARTIFACT_FOLDER: &str = "__sheaf__";

/// A package, or the folder of a program outside any package.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Project {
    /// The folder of `Sheaf.toml`, or else that of the program: an absolute path.
    pub root: PathBuf,
    /// `Sheaf.toml`, if there is one.
    pub manifest: Option<SheafToml>,
    /// The trusted owners of its files.
    pub owners: Owners,
    /// The workspace that it is a member of; `None` for the workspace's root.
    pub workspace: Option<Workspace>,
    /// Ignored files named `Sheaf.toml`, from the program's folder upwards.
    pub passed_over: Vec<Foreign>,
}

impl Project {
    /// The project of the program `file`, which need not exist.
    pub fn locate(file: &Path, owners: Owners) -> Result<Self, FileError> {
        Self::locate_from(file.parent().unwrap_or(Path::new("")), owners)
    }

    /// The project of `folder`: the nearest folder upwards with a `Sheaf.toml` of one of the `owners`, or else `folder`
    /// itself.
    pub fn locate_from(folder: &Path, owners: Owners) -> Result<Self, FileError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // Links and `..` are resolved first: the parent of `a/..` is not `a`.
        let start = match fs::canonicalize(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(folder),
            found => found,
        };
        let start = start.map_err(|source| FileError::Unreadable { path: folder.into(), source })?;
        let mut passed_over = Vec::new();
        for root in start.ancestors() {
            match SheafToml::read(&root.join(MANIFEST_NAME), &owners)? {
                Found::File(manifest) => {
                    let workspace = workspace_of(root, &manifest, &owners, &mut passed_over)?;
                    let project = Self { root: root.into(), manifest: None, owners, workspace, passed_over };
                    return project.with_manifest(manifest);
                }
                Found::Foreign(foreign) => passed_over.push(foreign),
                Found::Absent => {}
            }
        }
        Ok(Self { root: start, manifest: None, owners, workspace: None, passed_over })
    }

    /// The same project with another manifest, which takes from the workspace what it names.
    ///
    /// # Errors
    ///
    /// The workspace does not have what the manifest names.
    pub fn with_manifest(&self, mut manifest: SheafToml) -> Result<Self, FileError> {
        let own = manifest.workspace.clone();
        match (&self.workspace, &own) {
            (Some(Workspace { manifest: above, member, .. }), _) => {
                manifest.inherit(above.workspace.as_ref().map(|table| (table, member.as_str())))?;
                // The member's own tables count before those of the workspace.
                for (name, address) in &above.registries {
                    manifest.registries.entry(name.clone()).or_insert_with(|| address.clone());
                }
                if manifest.resolver == ResolverTable::default() {
                    manifest.resolver = above.resolver.clone();
                }
                if manifest.toolchain == ToolchainTable::default() {
                    manifest.toolchain = above.toolchain.clone();
                }
                if manifest.cache == CacheTable::default() {
                    manifest.cache = above.cache.clone();
                }
            }
            (None, Some(table)) => manifest.inherit(Some((table, "")))?,
            (None, None) => manifest.inherit(None)?,
        }
        Ok(Self { manifest: Some(manifest), ..self.clone() })
    }

    /// The folder of `Sheaf.lock`: that of the workspace, or of the project itself.
    pub fn lock_root(&self) -> &Path {
        self.workspace.as_ref().map_or(&self.root, |workspace| &workspace.root)
    }

    /// The compiler of `Sheaf.lock`.
    pub fn lock(&self) -> Result<Found<Option<ToolchainLock>>, FileError> {
        ToolchainLock::read(&self.lock_file(), &self.owners)
    }

    /// Refuses a `Sheaf.lock` in a newer format than this Sheaf reads.
    pub fn check_lock(&self) -> Result<(), FileError> {
        check_format(&self.lock_file(), &self.owners)
    }

    /// `Sheaf.lock`, which may not exist.
    pub fn lock_file(&self) -> PathBuf {
        self.lock_root().join(LOCK_NAME)
    }

    /// The artifact folder, which may not exist.
    pub fn artifact_folder(&self) -> PathBuf {
        self.root.join(ARTIFACT_FOLDER)
    }

    /// The program of `sheaf run`: the package's `main`. `None` outside a package.
    pub fn main(&self) -> Option<PathBuf> {
        let manifest = self.manifest.as_ref()?;
        Some(self.root.join(manifest.package.main.as_deref().unwrap_or(Path::new(DEFAULT_MAIN))))
    }
}

/// The workspace that a package in `root` is a member of: that of the nearest folder above with a `[workspace]`.
fn workspace_of(
    root: &Path,
    manifest: &SheafToml,
    owners: &Owners,
    passed_over: &mut Vec<Foreign>,
) -> Result<Option<Workspace>, FileError> {
    if manifest.workspace.is_some() {
        return Ok(None);
    }
    for above in root.ancestors().skip(1) {
        let found = match SheafToml::read(&above.join(MANIFEST_NAME), owners)? {
            Found::File(found) => found,
            Found::Foreign(foreign) => {
                passed_over.push(foreign);
                continue;
            }
            Found::Absent => continue,
        };
        let Some(table) = &found.workspace else { continue };
        let parts = root.strip_prefix(above).unwrap_or(root).components();
        let parts: Option<Vec<_>> = parts.map(|part| part.as_os_str().to_str()).collect();
        let member = parts.map(|parts| parts.join("/")).filter(|member| table.includes(member));
        return Ok(member.map(|member| Workspace { root: above.into(), manifest: found, member }));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> Owners {
        Owners::of_process(|_| None, &[])
    }

    struct Tree {
        folder: tempfile::TempDir,
    }

    impl Tree {
        /// A folder with `files`, each with its text.
        fn new(files: &[(&str, &str)]) -> Self {
            let folder = tempfile::tempdir().unwrap();
            for (path, text) in files {
                let path = folder.path().join(path);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, text).unwrap();
            }
            Self { folder }
        }

        fn root(&self) -> PathBuf {
            self.folder.path().canonicalize().unwrap()
        }

        fn locate(&self, file: &str) -> Result<Project, FileError> {
            Project::locate(&self.folder.path().join(file), own())
        }
    }

    #[test]
    fn the_nearest_manifest_upwards_counts() {
        let tree = Tree::new(&[
            ("Sheaf.toml", "[package]\nname = \"outer\"\n"),
            ("p/Sheaf.toml", "[package]\nname = \"inner\"\nmain = \"train.shf\"\n"),
            ("p/src/models/a.shf", ""),
            ("b.shf", ""),
        ]);
        let inner = tree.locate("p/src/models/a.shf").unwrap();
        assert_eq!(inner.root, tree.root().join("p"));
        assert_eq!(inner.artifact_folder(), tree.root().join("p/__sheaf__"));
        assert_eq!(inner.main(), Some(tree.root().join("p/train.shf")));
        let outer = tree.locate("b.shf").unwrap();
        assert_eq!(outer.manifest.as_ref().unwrap().package.name.as_deref(), Some("outer"));
        assert_eq!(outer.main(), Some(tree.root().join("src/main.shf")));
    }

    #[test]
    fn without_a_manifest_the_program_has_its_own_folder() {
        let tree = Tree::new(&[("src/a.shf", "")]);
        let project = tree.locate("src/a.shf").unwrap();
        assert_eq!((&project.root, &project.manifest), (&tree.root().join("src"), &None));
        assert_eq!(project.main(), None);
    }

    #[test]
    fn the_way_back_does_not_lead_through_the_folder_left() {
        let tree = Tree::new(&[("p/Sheaf.toml", ""), ("q/a.shf", "")]);
        assert_eq!(tree.locate("p/../q/a.shf").unwrap().root, tree.root().join("q"));
    }

    #[test]
    fn a_program_that_is_not_there_is_no_error_here() {
        let tree = Tree::new(&[]);
        assert_eq!(tree.locate("no/such/a.shf").unwrap().root, tree.folder.path().join("no/such"));
        assert!(Project::locate(Path::new("a.shf"), own()).unwrap().root.is_absolute());
        assert!(Project::locate(Path::new(""), own()).unwrap().root.is_absolute());
    }

    /// Only root can change a file's owner.
    #[cfg(unix)]
    #[test]
    fn a_manifest_of_somebody_else_is_passed_over() {
        let tree = Tree::new(&[("Sheaf.toml", ""), ("p/Sheaf.toml", "[package\n"), ("p/src/a.shf", "")]);
        let planted = tree.root().join("p/Sheaf.toml");
        if let Err(error) = std::os::unix::fs::chown(&planted, Some(3_999_999_999), None) {
            eprintln!("SKIPPED a_manifest_of_somebody_else_is_passed_over: no chown here ({error})");
            return;
        }
        let project = tree.locate("p/src/a.shf").unwrap();
        assert_eq!(project.root, tree.root());
        let ignored: Vec<_> = project.passed_over.iter().map(|foreign| foreign.path.clone()).collect();
        assert_eq!(ignored, std::slice::from_ref(&planted));
        // A link of the user to it is ignored as well.
        std::os::unix::fs::symlink(&planted, tree.root().join("p/src/Sheaf.toml")).unwrap();
        assert_eq!(tree.locate("p/src/a.shf").unwrap().passed_over.len(), 2);
        let named = Owners::of_process(|_| None, &[tree.root().join("p")]);
        assert!(Project::locate(&tree.root().join("p/src/a.shf"), named).is_err(), "it is read, and broken");
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_is_not_waited_for() {
        let tree = Tree::new(&[("src/a.shf", "")]);
        let made = std::process::Command::new("mkfifo").arg(tree.root().join("Sheaf.toml")).status().unwrap();
        assert!(made.success());
        let error = tree.locate("src/a.shf").unwrap_err().to_string();
        assert!(error.contains("it is not a regular file"), "{error}");
    }

    #[test]
    fn a_broken_manifest_is_an_error() {
        let tree = Tree::new(&[("Sheaf.toml", "[package\n"), ("src/a.shf", "")]);
        let message = tree.locate("src/a.shf").unwrap_err().to_string();
        insta::assert_snapshot!(message.replace(&*tree.root().to_string_lossy(), "~"), @"
        ~/Sheaf.toml:1:9: this is not TOML: unclosed table, expected `]`; correct this line
         1 | [package
           |         ^
        ");
    }
}
