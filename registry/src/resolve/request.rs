//! Input of a resolution: requirements, the versions that exist, and the policy of the choice.

use std::sync::Arc;

use jiff::Timestamp;
use semver::{Version, VersionReq};
use sheaf_project::Source;

use super::Resolution;

/// A package: its name and its origin.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageId {
    /// The name at its origin.
    pub name: String,
    /// The origin.
    pub source: Source,
}

/// A version of a package.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackageVersion {
    /// The package.
    pub package: PackageId,
    /// The version.
    pub version: Version,
}

/// A dependency, as a manifest or an index states it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requirement {
    /// The name of the dependency in the dependent; unique among its requirements.
    pub name: String,
    /// The required package.
    pub package: PackageId,
    /// The versions that will do.
    pub range: VersionReq,
    /// The user's line that states it, such as `Sheaf.toml:7`; `None` for requirements of an index.
    pub location: Option<String>,
}

/// A version of a package that exists.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// The version.
    pub version: Version,
    /// Its requirements.
    pub dependencies: Vec<Requirement>,
    /// The reason of the withdrawal, possibly empty; `None` if the version is not yanked.
    pub yanked: Option<String>,
    /// Time of the release; `None` if unknown.
    pub published: Option<Timestamp>,
    /// The versions of Sheaf that it works with; `None` for all.
    pub sheaf: Option<VersionReq>,
    /// True if its sources are not on this machine, and may not be fetched.
    pub absent: bool,
}

impl Candidate {
    /// A version without dependencies and without restrictions.
    pub fn new(version: Version) -> Self {
        Self { version, dependencies: Vec::new(), yanked: None, published: None, sheaf: None, absent: false }
    }
}

/// The versions that exist.
pub trait Index {
    /// Cause of a failed read.
    type Error: std::error::Error + 'static;

    /// The versions of `package` in any order; none if the package is unknown. Of equal versions the first counts.
    fn candidates(&self, package: &PackageId) -> Result<Arc<[Candidate]>, Self::Error>;

    /// Announces packages whose candidates are asked for next, so that they may be read at the same time.
    fn prefetch(&self, _packages: &[&PackageId]) {}
}

/// The project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Its name.
    pub name: String,
    /// Its requirements.
    pub requirements: Vec<Requirement>,
}

/// The rules of the choice.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Prefers the lowest matching version to the highest.
    pub minimal: bool,
    /// The resolution in `Sheaf.lock`. Its versions are preferred, and its edges if their targets are among its versions.
    /// They may be yanked, newer than `exclude_newer`, and absent.
    pub locked: Resolution,
    /// Passes over versions that were published later, or at an unknown time.
    pub exclude_newer: Option<Timestamp>,
    /// The running version of Sheaf.
    pub sheaf: Version,
    /// Maximum number of the solver's decisions, against a registry made to keep it busy.
    pub max_steps: u32,
}

impl Policy {
    /// The highest versions for this `sheaf`, without a lock.
    pub fn new(sheaf: Version) -> Self {
        Self { minimal: false, locked: Resolution::default(), exclude_newer: None, sheaf, max_steps: 200_000 }
    }
}
