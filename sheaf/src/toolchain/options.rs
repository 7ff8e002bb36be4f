//! Command line of `sheaf toolchain`.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use sheaf_target::Release;

use crate::cli::PlaceOptions;

/// Options of `sheaf toolchain`.
#[derive(Args, Clone, Debug)]
pub struct ToolchainOptions {
    #[command(subcommand)]
    pub(super) action: Action,
}

/// Commands of `sheaf toolchain`.
#[derive(Clone, Debug, Subcommand)]
pub(super) enum Action {
    /// List the releases that this Sheaf knows
    #[command(after_help = "Example:\n  sheaf toolchain list")]
    List {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Install a compiler: that of the project, a release, or the content of a bundle
    #[command(after_help = "Examples:\n  sheaf toolchain install\n  sheaf toolchain install 3.13.0\n  \
                      sheaf toolchain install iree-compiler-3.13.0-linux-x86_64.tar.gz --offline")]
    Install {
        /// A release, or a file that `sheaf toolchain bundle` wrote; without it, the release of the project
        #[arg(value_name = "VERSION|FILE", value_parser = version_or_file)]
        what: Option<String>,
        #[command(flatten)]
        place: PlaceOptions,
    },
    /// Remove installed compilers; what is still needed is fetched again
    #[command(after_help = "Example:\n  sheaf toolchain remove 3.12.0")]
    Remove {
        /// The releases
        #[arg(required = true, value_name = "VERSION", value_parser = version)]
        versions: Vec<&'static str>,
    },
    /// Tell which compiler is used here, and where it is
    #[command(after_help = "Example:\n  sheaf toolchain which --json")]
    Which {
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Read an installed compiler to the last byte and compare it with what was published
    #[command(after_help = "Example:\n  sheaf toolchain verify")]
    Verify {
        /// The release; without it, that of the project
        #[arg(value_parser = version)]
        version: Option<&'static str>,
        /// As JSON
        #[arg(long)]
        json: bool,
    },
    /// Make a release that of the project, in Sheaf.toml and Sheaf.lock
    #[command(after_help = "Example:\n  sheaf toolchain pin 3.13.0")]
    Pin {
        /// The release
        #[arg(value_parser = version)]
        version: &'static str,
        #[command(flatten)]
        place: PlaceOptions,
    },
    /// Make the newest release that this Sheaf can run that of the project, and write Sheaf.lock
    #[command(after_help = "Example:\n  sheaf toolchain update")]
    Update {
        #[command(flatten)]
        place: PlaceOptions,
    },
    /// Write an installed compiler to a file, for machines without a network
    #[command(after_help = "Example:\n  sheaf toolchain bundle -o compiler.tar.gz\n  \
                      sheaf toolchain install compiler.tar.gz    # on the other machine")]
    Bundle {
        /// The release; without it, that of the project
        #[arg(value_parser = version)]
        version: Option<&'static str>,
        /// The file; by default named after the release and the platform, in the current folder
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
    },
}

/// A release of the table, or a file.
fn version_or_file(text: &str) -> Result<String, String> {
    let file = Path::new(text);
    if file.components().count() > 1 || file.is_file() {
        return Ok(text.to_owned());
    }
    match version(text) {
        Ok(version) => Ok(version.to_owned()),
        Err(known) => Err(format!("there is no such file, and {known}")),
    }
}

/// A release of the table.
fn version(text: &str) -> Result<&'static str, String> {
    let known = Release::versions();
    known
        .iter()
        .find(|version| **version == text)
        .copied()
        .ok_or_else(|| format!("this Sheaf knows {}", known.join(", ")))
}
