//! Bundles: a program with the packages it uses, its compiled functions, data, and the runtime that runs it.
//!
//! A bundle is a folder. [`MANIFEST`] lists its files with their SHA-256, and says which program it runs; [`SIGNATURE`]
//! is a signature of the manifest. The same folder travels as a `.tar.gz` or `.tar.xz`, or as one executable: the runtime, an archive of the
//! other files, and a trailer with its length and a digest.

// Printing is left to the command line: prints panic if the output is closed.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod archive;
mod manifest;
mod packages;
mod parts;
mod single;
mod verify;

pub use archive::{pack, pack_xz, unpack_checked};
pub use manifest::{
    BundledFile, Dependency, FORMAT, MANIFEST, Manifest, ManifestError, RUNTIME, SIGNATURE, Signature,
};
pub use packages::BundlePackages;
pub use parts::{Part, parts_line};
pub use single::{Appended, append, find as find_appended};
pub use verify::{Fault, files_in, verify};
