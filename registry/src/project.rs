//! The project that a program belongs to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::FileError;
use crate::manifest::{DEFAULT_MAIN, SheafToml};

/// The name of the file that makes a folder a package.
pub const MANIFEST_NAME: &str = "Sheaf.toml";
/// The name of the folder for compiled programs.
pub const ARTIFACT_FOLDER: &str = "__sheaf__";

/// A package, or the folder of a program that belongs to none.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The folder of `Sheaf.toml`, or else that of the program: an absolute path.
    pub root: PathBuf,
    /// `Sheaf.toml`, if there is one.
    pub manifest: Option<SheafToml>,
}

impl Project {
    /// The project of the program `file`, which need not exist.
    pub fn locate(file: &Path) -> Result<Self, FileError> {
        Self::locate_from(file.parent().unwrap_or(Path::new("")))
    }

    /// The project that `folder` is in: the nearest folder upwards with a `Sheaf.toml`, or else `folder` itself.
    pub fn locate_from(folder: &Path) -> Result<Self, FileError> {
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        // Links and `..` are resolved first: the parent of `a/..` is not `a`.
        let start = match fs::canonicalize(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => std::path::absolute(folder),
            found => found,
        };
        let start = start.map_err(|source| FileError::Unreadable { path: folder.into(), source })?;
        for root in start.ancestors() {
            if let Some(manifest) = SheafToml::read(&root.join(MANIFEST_NAME))? {
                return Ok(Self { root: root.into(), manifest: Some(manifest) });
            }
        }
        Ok(Self { root: start, manifest: None })
    }

    /// The folder for compiled programs, which need not exist.
    pub fn artifact_folder(&self) -> PathBuf {
        self.root.join(ARTIFACT_FOLDER)
    }

    /// The program that `sheaf run` runs: the package's `main`. None outside a package.
    pub fn main(&self) -> Option<PathBuf> {
        let manifest = self.manifest.as_ref()?;
        Some(self.root.join(manifest.package.main.as_deref().unwrap_or(Path::new(DEFAULT_MAIN))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
            Project::locate(&self.folder.path().join(file))
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
        assert_eq!(project, Project { root: tree.root().join("src"), manifest: None });
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
        assert!(Project::locate(Path::new("a.shf")).unwrap().root.is_absolute());
        assert!(Project::locate(Path::new("")).unwrap().root.is_absolute());
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
