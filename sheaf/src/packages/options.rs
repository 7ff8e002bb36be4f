//! Command lines of the commands about packages, and the options about dependencies of all others.

use std::path::PathBuf;

use clap::Args;

use crate::cli::NetworkOptions;

/// Use of `Sheaf.lock`.
#[derive(Args, Clone, Debug, Default)]
pub struct LockOptions {
    /// Fail if Sheaf.lock would change
    #[arg(long)]
    pub locked: bool,
    /// As --locked and --offline
    #[arg(long)]
    pub frozen: bool,
}

/// Use of `Sheaf.lock` and of the network.
#[derive(Args, Clone, Debug, Default)]
pub struct DependencyOptions {
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}

impl DependencyOptions {
    /// The options about dependencies of a command with options about compilers and compiled programs.
    pub fn of(lock: &LockOptions, network: &NetworkOptions) -> Self {
        Self { lock: lock.clone(), offline: network.place.offline }
    }

    /// True if `Sheaf.lock` may not change.
    pub fn locked(&self) -> bool {
        self.lock.locked || self.lock.frozen
    }

    /// True if the network may not be used.
    pub fn offline(&self) -> bool {
        self.offline || self.lock.frozen
    }
}

impl LockOptions {
    /// The options about compilers and compiled programs: `--frozen` forbids their network too.
    #[must_use]
    pub fn network(&self, network: &NetworkOptions) -> NetworkOptions {
        let mut network = network.clone();
        network.place.offline |= self.frozen;
        network
    }
}

/// Options of `sheaf add`.
#[derive(Args, Clone, Debug)]
pub struct AddOptions {
    /// Packages, each perhaps with a range of versions: attention-lib@1.2
    #[arg(required = true, value_name = "PACKAGE")]
    pub packages: Vec<String>,
    /// For the package's own tests and examples
    #[arg(long)]
    pub dev: bool,
    /// A git repository that has the package
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["path", "registry"])]
    pub git: Option<String>,
    /// With --git: a tag
    #[arg(long, requires = "git", conflicts_with_all = ["branch", "rev"])]
    pub tag: Option<String>,
    /// With --git: a branch
    #[arg(long, requires = "git", conflicts_with = "rev")]
    pub branch: Option<String>,
    /// With --git: a commit
    #[arg(long, requires = "git")]
    pub rev: Option<String>,
    /// A folder that has the package
    #[arg(long, value_name = "FOLDER", conflicts_with = "registry")]
    pub path: Option<String>,
    /// A registry under `[registries]`; otherwise the default
    #[arg(long)]
    pub registry: Option<String>,
    /// The name of the package in this project
    #[arg(long, value_name = "NAME")]
    pub rename: Option<String>,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}

/// Options of `sheaf remove`.
#[derive(Args, Clone, Debug)]
pub struct RemoveOptions {
    /// Dependencies, by their names in Sheaf.toml
    #[arg(required = true, value_name = "NAME")]
    pub packages: Vec<String>,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}

/// Options of `sheaf install`.
#[derive(Args, Clone, Debug)]
pub struct InstallOptions {
    /// Lock and network
    #[command(flatten)]
    pub dependencies: DependencyOptions,
    /// Take the lowest versions that Sheaf.toml allows
    #[arg(long)]
    pub minimal_versions: bool,
}

/// Options of `sheaf update`.
#[derive(Args, Clone, Debug)]
pub struct UpdateOptions {
    /// Packages; otherwise all
    #[arg(value_name = "PACKAGE")]
    pub packages: Vec<String>,
    /// This version of the package, also an older one
    #[arg(long, value_name = "VERSION")]
    pub precise: Option<semver::Version>,
    /// Take the lowest versions that Sheaf.toml allows
    #[arg(long)]
    pub minimal_versions: bool,
    /// Show what would change
    #[arg(long)]
    pub dry_run: bool,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}

/// Options of `sheaf publish`.
#[derive(Args, Clone, Debug)]
pub struct PublishOptions {
    /// A registry under `[registries]`; otherwise the default
    #[arg(long)]
    pub registry: Option<String>,
    /// Show the line of the index, and publish nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Leave out `sheaf check` and `sheaf test`
    #[arg(long)]
    pub no_test: bool,
    /// Compile the typed functions, tests and examples, and send the programs, signed, to this remote cache, where users get
    /// them
    #[arg(long, value_name = "ADDRESS")]
    pub programs: Option<String>,
    /// With --programs: a device that the typed functions are compiled for; may be repeated
    #[arg(long = "device", value_name = "DEVICE", requires = "programs")]
    pub devices: Vec<String>,
    /// With --programs: the processors that they are compiled for, as in `sheaf build`
    #[arg(long, requires = "programs")]
    pub cpu: Option<String>,
}

/// Options of `sheaf yank`.
#[derive(Args, Clone, Debug)]
pub struct YankOptions {
    /// The package
    pub package: String,
    /// The version
    pub version: semver::Version,
    /// The reason that users are shown
    #[arg(long, required_unless_present = "undo", conflicts_with = "undo")]
    pub reason: Option<String>,
    /// Offer the version again
    #[arg(long)]
    pub undo: bool,
    /// A registry under `[registries]`; otherwise the default
    #[arg(long)]
    pub registry: Option<String>,
}

/// Options of `sheaf vendor`.
#[derive(Args, Clone, Debug)]
pub struct VendorOptions {
    /// Lock and network
    #[command(flatten)]
    pub dependencies: DependencyOptions,
}

/// Options of `sheaf audit`.
#[derive(Args, Clone, Debug)]
pub struct AuditOptions {
    /// Use no network: registries as they were last seen
    #[arg(long)]
    pub offline: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `sheaf sbom`.
#[derive(Args, Clone, Debug)]
pub struct SbomOptions {
    /// The file to write; otherwise standard output
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
}

/// Options of `sheaf tree`.
#[derive(Args, Clone, Debug)]
pub struct TreeOptions {
    /// Show the shortest way to each version of this package
    #[arg(long, value_name = "PACKAGE", conflicts_with = "duplicates")]
    pub why: Option<String>,
    /// Show packages of which there are several versions
    #[arg(long)]
    pub duplicates: bool,
    /// As JSON
    #[arg(long)]
    pub json: bool,
}

/// Options of `sheaf outdated`.
#[derive(Args, Clone, Debug)]
pub struct OutdatedOptions {
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}

/// Options of `sheaf search`.
#[derive(Args, Clone, Debug)]
pub struct SearchOptions {
    /// A part of a name or a description
    pub word: String,
    /// A registry under `[registries]`; otherwise the default
    #[arg(long)]
    pub registry: Option<String>,
    /// As JSON
    #[arg(long)]
    pub json: bool,
    /// Use no network
    #[arg(long)]
    pub offline: bool,
}
