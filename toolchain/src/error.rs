//! What can go wrong while the compiler is found, fetched and installed.

use std::io;
use std::path::{Path, PathBuf};

/// Why the compiler could not be installed. Every message says where, why, and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The compiler is not published for this machine.
    #[error(
        "there is no IREE compiler for {system} on {processor}; compile on Linux, macOS or Windows, \
         and run the compiled program here"
    )]
    UnsupportedPlatform {
        /// The operating system, as Rust names it.
        system: &'static str,
        /// The processor architecture, as Rust names it.
        processor: &'static str,
    },
    /// Nothing says where to fetch from.
    #[error(
        "cannot fetch {wheel}: no package index is known, neither to Sheaf nor to pip; \
         set SHEAF_TOOLCHAIN_INDEX to a package index, or to a folder with that file in it"
    )]
    NoSource {
        /// The wheel's file name.
        wheel: String,
    },
    /// The configured place cannot be understood.
    #[error(
        "{origin}: `{value}` is not a usable place for the compiler: {cause}; give a folder, or an http, https or file address"
    )]
    BadSetting {
        /// Where the setting was made.
        origin: String,
        /// What it says.
        value: String,
        /// What is wrong with it.
        cause: String,
    },
    /// None of the known places has the wheel.
    #[error(
        "{wheel} was not found; looked at\n{}set SHEAF_TOOLCHAIN_INDEX to a package index or a folder that has it",
        list(tried)
    )]
    NotFound {
        /// The wheel's file name.
        wheel: String,
        /// The addresses and files looked at.
        tried: Vec<String>,
    },
    /// No connection could be made.
    #[error(
        "{address} cannot be reached: {cause}; check the network and proxy (HTTPS_PROXY) and certificate \
         (SSL_CERT_FILE) settings, or set SHEAF_TOOLCHAIN_INDEX to a mirror or a folder"
    )]
    Unreachable {
        /// The address asked.
        address: String,
        /// The reason, as the network library gives it.
        cause: String,
    },
    /// The server answered, but with an error.
    #[error(
        "{address} answered {status}; check the address and its credentials, or set SHEAF_TOOLCHAIN_INDEX to another index"
    )]
    Status {
        /// The address asked.
        address: String,
        /// The HTTP status with its meaning.
        status: String,
    },
    /// The server's list of files cannot be read.
    #[error(
        "{address} is not a package index: {cause}; check the address in SHEAF_TOOLCHAIN_INDEX or in pip's configuration"
    )]
    BadIndex {
        /// The address asked.
        address: String,
        /// What is wrong with the page.
        cause: String,
    },
    /// The transfer broke off, and did again when it was tried again.
    #[error(
        "{address}: the download broke off after {received} of {expected} bytes: {cause}; run the command again"
    )]
    Truncated {
        /// The wheel's address.
        address: String,
        /// Bytes that arrived.
        received: u64,
        /// Bytes the wheel has.
        expected: u64,
        /// The last reason.
        cause: String,
    },
    /// The bytes are not those that were pinned.
    #[error(
        "{origin} is not the wheel that Sheaf expects, and was thrown away\n\
         expected sha256 {expected} ({expected_size} bytes)\n\
         computed sha256 {computed} ({computed_size} bytes)\n\
         the file is damaged or was replaced: use another index or mirror (SHEAF_TOOLCHAIN_INDEX)"
    )]
    Checksum {
        /// The address or file the bytes came from.
        origin: String,
        /// The pinned digest, in hexadecimal.
        expected: String,
        /// The digest of what came, in hexadecimal.
        computed: String,
        /// The pinned size in bytes.
        expected_size: u64,
        /// The number of bytes that came.
        computed_size: u64,
    },
    /// The wheel has the right digest but not the expected content.
    #[error(
        "{origin} cannot be unpacked: {cause}; this is an error in Sheaf's table of releases, please report it"
    )]
    Archive {
        /// The address or file the wheel came from.
        origin: String,
        /// What is wrong.
        cause: String,
    },
    /// The disk, or the quota, is full.
    #[error(
        "no space left while writing {}: {source}; installing the compiler takes {} MiB in all: \
         free some space, or set SHEAF_HOME to a folder on another disk",
        path.display(), needed.div_ceil(1 << 20)
    )]
    DiskFull {
        /// The file that could not be written.
        path: PathBuf,
        /// Bytes that an installation needs in all.
        needed: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder may not be written.
    #[error("{} may not be written: {source}; make it writable, or set SHEAF_HOME to a folder that is", path.display())]
    Permission {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file operation failed for another reason.
    #[error("{}: cannot {action}: {source}; check that disk and folder, or set SHEAF_HOME to another folder", path.display())]
    Io {
        /// What was attempted.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

impl InstallError {
    /// The network is at fault, so that the same command may succeed later or elsewhere.
    pub fn is_network(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Status { .. } | Self::BadIndex { .. } | Self::Truncated { .. }
        )
    }
}

/// Sorts a failed file operation into disk full, permission, and the rest. `needed` is the space an installation takes.
pub(crate) fn file_error(action: &'static str, path: &Path, needed: u64, source: io::Error) -> InstallError {
    use io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    let path = path.to_path_buf();
    match source.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => InstallError::DiskFull { path, needed, source },
        PermissionDenied | ReadOnlyFilesystem => InstallError::Permission { path, source },
        _ => InstallError::Io { action, path, source },
    }
}

/// One line for each, indented.
fn list(places: &[String]) -> String {
    places.iter().flat_map(|place| ["  ", place, "\n"]).collect()
}
