//! Bundles: a program with the packages it uses, its compiled functions, data, and the runtime that runs it.
//!
//! A bundle is a folder. [`MANIFEST`] lists its files with their SHA-256, and says which program it runs; [`SIGNATURE`]
//! is a signature of the manifest. The same folder travels as a `.tar.gz`, or as one executable: the runtime, the archive, and
//! a trailer that gives the archive's length and digest.

mod manifest;
mod packages;
mod single;
mod verify;

pub use manifest::{
    BundledFile, Dependency, FORMAT, MANIFEST, Manifest, ManifestError, SIGNATURE, Signature,
};
pub use packages::BundlePackages;
pub use single::{Appended, append, find as find_appended, unpack};
pub use verify::{Fault, files_in, verify};
