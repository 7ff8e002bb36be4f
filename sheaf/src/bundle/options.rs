//! Options of `sheaf bundle`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use sheaf_target::{Destination, Processor};

use crate::cli::NetworkOptions;
use crate::packages::options::LockOptions;

/// `sheaf bundle`.
#[derive(Args, Clone, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub struct BundleCommand {
    #[command(subcommand)]
    pub(super) command: Option<Existing>,
    #[command(flatten)]
    pub(super) options: BundleOptions,
}

/// Commands about bundles that are there.
#[derive(Clone, Debug, Subcommand)]
pub enum Existing {
    /// Compare every file of a bundle with its manifest, and the manifest with its signature
    #[command(
        after_help = "Examples:\n  sheaf bundle verify dist/digits\n  sheaf bundle verify digits.tar.gz --key ci:0123..."
    )]
    Verify(VerifyOptions),
}

/// Options of `sheaf bundle verify`.
#[derive(Args, Clone, Debug)]
pub struct VerifyOptions {
    /// The folder, archive or executable
    pub bundle: PathBuf,
    /// It must be signed with this key; by default any signature must be valid
    #[arg(long, value_name = "NAME:KEY")]
    pub key: Option<String>,
}

/// Options of `sheaf bundle`.
#[derive(Args, Clone, Debug)]
pub struct BundleOptions {
    /// The program; without one, the main program of the package
    pub file: Option<PathBuf>,
    /// The folder to make, or a file that ends in `.tar.gz` or `.tar.xz`; by default a folder with the program's name
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    /// One executable with everything in it
    #[arg(long)]
    pub single_file: bool,
    /// Record of a run, written with --record: the functions to compile, beside those with typed parameters
    #[arg(long, value_name = "SHAPES.json")]
    pub shapes: Option<PathBuf>,
    /// A folder of compiled programs, as `__sheaf__` and `sheaf step link` write it: they are taken, and nothing is compiled
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["shapes", "device", "cpu"])]
    pub programs: Option<PathBuf>,
    /// A call with other shapes than those compiled is an error where the bundle runs
    #[arg(long)]
    pub frozen_shapes: bool,
    /// A device to compile for: `cpu`, `cuda[:sm_89]`, `vulkan[:rdna3]` or `metal`. May be repeated
    #[arg(long, default_value = "cpu")]
    pub device: Vec<Destination>,
    /// A processor to compile for: `x86-64`, `x86-64-v2`, `x86-64-v3`, `x86-64-v4` or `aarch64`; by default that of the platform. May
    /// be repeated
    #[arg(long, value_name = "NAME")]
    pub cpu: Vec<Processor>,
    /// Files that the program reads, as a pattern relative to the current folder. May be repeated
    #[arg(long, value_name = "GLOB")]
    pub data: Vec<String>,
    /// The platform to run on
    #[arg(long, value_name = "NAME", default_value = super::runtime::HOST)]
    pub platform: String,
    /// The runtime for that platform; by default `sheaf-rt-PLATFORM`, or `sheaf-rt` for this one, beside this `sheaf`
    #[arg(long, value_name = "FILE")]
    pub runtime: Option<PathBuf>,
    /// Dependencies
    #[command(flatten)]
    pub lock: LockOptions,
    /// Sources of compilers and compiled programs
    #[command(flatten)]
    pub network: NetworkOptions,
}
