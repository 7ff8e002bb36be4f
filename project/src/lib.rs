//! Projects and settings: `Sheaf.toml`, the user's configuration, and the paths of Sheaf's own files.
//!
//! ```text
//! the program's file ──▶ Project ──▶ SheafToml ────────┐
//! SHEAF_HOME ──▶ Home ──▶ config.toml ──▶ UserConfig ──┼──▶ Settings
//!                              environment, options ───┘
//! ```
//!
//! Both files are parsed alike: an unknown key is a [`Warning`], so that an older Sheaf reads the file of a newer one;
//! a key of the wrong type is a [`FileError`] that shows the line.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod change;
mod dependencies;
mod edit;
mod error;
mod location;
mod lock;
mod manifest;
mod name;
mod packages_lock;
mod paths;
mod project;
mod resolver;
mod schema;
mod settings;
mod source;
mod spanned_toml;
mod tables;
mod trust;
mod user_config;
mod workspace;

pub use change::{NewDependency, add_dependency, remove_dependency};
pub use dependencies::{Dependency, DependencySource};
pub use edit::EditError;
pub use error::{FileError, Warning};
pub use location::SourceLocation;
pub use lock::{Addresses, LOCK_NAME, LockedFile, ToolchainLock};
pub use manifest::{DEFAULT_MAIN, FmtTable, Package, SheafToml, pin_toolchain, works_with};
pub use name::{NameError, package_name};
pub use packages_lock::{Change, LockedEdge, LockedPackage, PackagesLock};
pub use paths::{Home, HomeError};
pub use project::{ARTIFACT_FOLDER, MANIFEST_NAME, Project};
pub use resolver::{DEFAULT_REGISTRY, Newer, ResolverTable, exclude_newer, registries};
pub use schema::schema;
pub use settings::{
    Options, Origin, PackagePrograms, PassedOver, Refused, Setting, Settings, SettingsError, offline,
};
pub use sheaf_foundation::{Foreign, Owners, SAFE_VARIABLE};
pub use source::{GitReference, NoSource, Source};
pub use spanned_toml::Found;
pub use tables::{CacheTable, Mode, ToolchainTable, size as parse_size};
pub use trust::{Allowed, Consent, Difference, Request, TrustError, Trusted};
pub use user_config::UserConfig;
pub use workspace::{Member, Workspace, WorkspaceTable};
