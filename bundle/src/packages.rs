//! The packages of a bundled program.

use std::path::{Path, PathBuf};

use sheaf_lang::host::{HostError, OwnPackage};
use sheaf_loader::ProgramPackages;

use crate::manifest::{Dependency, Manifest};

/// The packages in a bundle's folder.
pub struct BundlePackages {
    root: PathBuf,
    name: Option<String>,
    dependencies: Vec<Dependency>,
}

impl BundlePackages {
    /// Those that the manifest of the bundle at `root` names.
    pub fn new(root: &Path, manifest: &Manifest) -> BundlePackages {
        BundlePackages {
            root: root.into(),
            name: manifest.package.clone(),
            dependencies: manifest.dependencies.clone(),
        }
    }
}

impl ProgramPackages for BundlePackages {
    fn own(&self, folder: &str) -> Option<OwnPackage> {
        // A program elsewhere belongs to no package.
        Path::new(folder).strip_prefix(&self.root).ok()?;
        let name = self.name.clone()?;
        let sources = self.root.join("src").into_os_string().into_string().ok()?;
        Some(OwnPackage { name: Some(name), sources })
    }

    fn dependency(&self, package: &str, name: &str) -> Result<Option<String>, HostError> {
        let is_asking = |of: &str| {
            if of.is_empty() { package.is_empty() } else { self.root.join(of) == Path::new(package) }
        };
        let found = self.dependencies.iter().find(|d| d.name == name && is_asking(&d.of));
        let folder = found.map(|d| self.root.join(&d.folder).to_string_lossy().into_owned());
        Ok(folder)
    }
}
