//! Packages that a program may use: its own, and its dependencies.

use std::path::{Path, PathBuf};

use sheaf_lang::host::{HostError, OwnPackage};
use sheaf_loader::ProgramPackages;
use sheaf_project::{PackagePrograms, Project};

/// Folders of the dependencies of a project.
pub trait Dependencies {
    /// The folder of the package that a package calls `name`; `None` if it has no such dependency. `package` is the
    /// folder of the package that asks; `None` for the project itself.
    fn folder(&self, package: Option<&Path>, name: &str) -> Result<Option<PathBuf>, HostError>;

    /// Remote caches that the authors of the packages name for their compiled programs.
    fn programs(&self) -> Result<Vec<PackagePrograms>, HostError> {
        Ok(Vec::new())
    }
}

/// No dependencies.
impl Dependencies for () {
    fn folder(&self, _: Option<&Path>, _: &str) -> Result<Option<PathBuf>, HostError> {
        Ok(None)
    }
}

/// The packages of a program: that of its project, and what this depends on.
pub struct Packages {
    project: Project,
    dependencies: Box<dyn Dependencies>,
}

impl Packages {
    /// The packages of programs in `project`.
    pub fn new(project: Project, dependencies: Box<dyn Dependencies>) -> Self {
        Self { project, dependencies }
    }
}

impl ProgramPackages for Packages {
    fn own(&self, folder: &str) -> Option<OwnPackage> {
        let manifest = self.project.manifest.as_ref()?;
        let here = if folder.is_empty() { Path::new(".") } else { Path::new(folder) };
        let inside = std::fs::canonicalize(here).ok()?;
        let depth = inside.strip_prefix(&self.project.root).ok()?.components().count();
        let name = manifest.package.name.clone();
        let start = if folder.is_empty() { String::new() } else { format!("{folder}/") };
        Some(OwnPackage { name, sources: format!("{start}{}src", "../".repeat(depth)) })
    }

    fn dependency(&self, package: &str, name: &str) -> Result<Option<String>, HostError> {
        let package = (!package.is_empty()).then(|| Path::new(package));
        let folder = self.dependencies.folder(package, name)?;
        let text = |folder: PathBuf| {
            folder.into_os_string().into_string().map_err(|path| HostError {
                message: format!("the path {} is not UTF-8 text", path.display()),
                help: Some("move it to a folder with a plain name".into()),
            })
        };
        folder.map(text).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_project::Owners;

    #[test]
    fn a_program_belongs_to_the_package_of_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("tests/deep")).unwrap();
        std::fs::create_dir_all(root.join("elsewhere")).unwrap();
        std::fs::write(root.join("Sheaf.toml"), "[package]\nname = \"vision\"\n").unwrap();
        let project = Project::locate_from(&root, Owners::of_process(|_| None, &[])).unwrap();
        let packages = Packages::new(project, Box::new(()));
        let own = |path: &Path| packages.own(path.to_str().unwrap());
        let deep = root.join("tests/deep");
        let sources = format!("{}/../../src", deep.display());
        assert_eq!(own(&deep), Some(OwnPackage { name: Some("vision".into()), sources }));
        assert_eq!(own(root.parent().unwrap()), None);
        assert_eq!(packages.dependency("", "maths").unwrap(), None);
    }
}
