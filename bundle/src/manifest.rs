//! `bundle.json`.

use std::path::{Component, Path, PathBuf};

use serde::{Deserialize, Serialize};
use sheaf_foundation::{Digest, PublicKey};

/// File name of the manifest.
pub const MANIFEST: &str = "bundle.json";

/// File name of the manifest's signature.
pub const SIGNATURE: &str = "bundle.sig";

/// File name of the runtime.
pub const RUNTIME: &str = "sheaf-rt";

/// Format and version of the manifest.
pub const FORMAT: &str = "sheaf bundle 1";

/// The content of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`FORMAT`].
    pub format: String,
    /// Name of the program.
    pub name: String,
    /// Version of its package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Version of the Sheaf that made it.
    pub sheaf: String,
    /// Platform of the runtime, such as `linux-x86_64`.
    pub platform: String,
    /// Devices of the compiled functions.
    pub devices: Vec<String>,
    /// The program: a path in the bundle, as all paths here, with `/`.
    pub program: String,
    /// Name of the program's own package.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// The packages it uses.
    #[serde(default)]
    pub dependencies: Vec<Dependency>,
    /// True if calls with other shapes than those compiled are errors.
    #[serde(default)]
    pub frozen_shapes: bool,
    /// All files but the manifest and its signature, sorted by path.
    pub files: Vec<BundledFile>,
}

/// The folder of a package by the name that another uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dependency {
    /// The folder of the package that uses it; empty for the program's own.
    pub of: String,
    /// The name in `(use ...)`.
    pub name: String,
    /// Its folder.
    pub folder: String,
}

/// A file of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BundledFile {
    /// Its path.
    pub path: String,
    /// Its length in bytes.
    pub size: u64,
    /// Its digest.
    pub sha256: Digest,
    /// True if it is an executable.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub executable: bool,
}

/// `bundle.sig`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The signer.
    pub key: PublicKey,
    /// Ed25519 over the bytes of the manifest, in hexadecimal.
    pub signature: String,
}

/// A folder without a usable manifest.
#[derive(Debug, thiserror::Error)]
pub enum ManifestError {
    /// It cannot be read.
    #[error("{path} cannot be read: {error}")]
    Unreadable {
        /// The manifest.
        path: PathBuf,
        /// Cause.
        error: std::io::Error,
    },
    /// It is no manifest.
    #[error("{path} is damaged, or no manifest of a bundle: {error}")]
    Damaged {
        /// The manifest.
        path: PathBuf,
        /// Cause.
        error: String,
    },
    /// It is of another version.
    #[error("{path} is written as {found:?}, and this runtime reads {FORMAT:?}")]
    Version {
        /// The manifest.
        path: PathBuf,
        /// Its format.
        found: String,
    },
    /// It names a file outside of the bundle.
    #[error("{path} names {outside:?}, which is no path in the bundle")]
    Outside {
        /// The manifest.
        path: PathBuf,
        /// The path.
        outside: String,
    },
}

impl Manifest {
    /// The manifest of a bundle's folder.
    ///
    /// # Errors
    ///
    /// It cannot be read, or is none; its paths stay in the folder.
    pub fn read(folder: &Path) -> Result<Manifest, ManifestError> {
        let path = folder.join(MANIFEST);
        match std::fs::read(&path) {
            Ok(bytes) => Manifest::parse(&path, &bytes),
            Err(error) => Err(ManifestError::Unreadable { path, error }),
        }
    }

    /// The manifest of these bytes, which messages call `path`.
    ///
    /// # Errors
    ///
    /// As [`Manifest::read`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Manifest, ManifestError> {
        #[derive(Deserialize)]
        struct Format {
            format: String,
        }
        let damaged =
            |error: serde_json::Error| ManifestError::Damaged { path: path.into(), error: error.to_string() };
        let Format { format } = serde_json::from_slice(bytes).map_err(damaged)?;
        if format != FORMAT {
            return Err(ManifestError::Version { path: path.into(), found: format });
        }
        let manifest: Manifest = serde_json::from_slice(bytes).map_err(damaged)?;
        if let Some(outside) = manifest.paths().find(|text| !is_inside(text)) {
            return Err(ManifestError::Outside { path: path.into(), outside: outside.into() });
        }
        Ok(manifest)
    }

    fn paths(&self) -> impl Iterator<Item = &str> {
        let folders = self.dependencies.iter().flat_map(|d| [&d.of, &d.folder]).filter(|of| !of.is_empty());
        let files = self.files.iter().map(|file| &file.path);
        std::iter::once(&self.program).chain(folders).chain(files).map(String::as_str)
    }
}

/// True for a relative path of plain names.
pub(crate) fn is_inside(path: &str) -> bool {
    let mut parts = Path::new(path).components().peekable();
    parts.peek().is_some() && parts.all(|part| matches!(part, Component::Normal(_)))
}
