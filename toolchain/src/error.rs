//! What can go wrong while the compiler is found, fetched and installed.

use std::io;
use std::path::{Path, PathBuf};

/// Why the compiler could not be installed. The message says where and why; [`remedy`](Self::remedy) what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InstallError {
    /// The compiler is not published for this machine.
    #[error("there is no IREE compiler for {system} on {processor}")]
    UnsupportedPlatform {
        /// The operating system, as Rust names it.
        system: &'static str,
        /// The processor architecture, as Rust names it.
        processor: &'static str,
    },
    /// Nothing says where to fetch from.
    #[error("cannot fetch {wheel}: no package index is known, neither to Sheaf nor to pip")]
    NoSource {
        /// The wheel's file name.
        wheel: String,
    },
    /// The configured place cannot be understood.
    #[error("{origin}: `{value}` is not a usable place for the compiler: {cause}")]
    BadSetting {
        /// Where the setting was made.
        origin: String,
        /// What it says.
        value: String,
        /// What is wrong with it.
        cause: String,
    },
    /// None of the known places has the wheel.
    #[error("{wheel} was not found; looked at\n{}", tried.join("\n"))]
    NotFound {
        /// The wheel's file name.
        wheel: String,
        /// The addresses and files looked at.
        tried: Vec<String>,
    },
    /// It is in none of the folders, and the network is not to be used.
    #[error("{wheel} may not be fetched without the network{}", looked(tried))]
    Offline {
        /// The wheel's file name.
        wheel: String,
        /// The files looked at.
        tried: Vec<String>,
    },
    /// A file is offered as a bundle of a compiler, and is none.
    #[error("{} is no bundle of a compiler for this machine: {cause}", path.display())]
    NoBundle {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A bundle of a compiler is not whole, or was changed.
    #[error("{} cannot be unpacked: {cause}", path.display())]
    DamagedBundle {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
    },
    /// A bundle could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    BundleFile {
        /// The file that was to be written.
        path: PathBuf,
        /// More bytes than it has.
        needed: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// An installed file is not what was published.
    #[error("{} is damaged: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        cause: String,
        /// The release that it belongs to.
        version: String,
    },
    /// No connection could be made.
    #[error("{address} cannot be reached: {cause}")]
    Unreachable {
        /// The address asked.
        address: String,
        /// The reason, as the network library gives it.
        cause: String,
    },
    /// The server answered, but with an error.
    #[error("{address} answered {status}")]
    Status {
        /// The address asked.
        address: String,
        /// The number of the HTTP status.
        code: u16,
        /// The HTTP status with its meaning.
        status: String,
    },
    /// The server's list of files cannot be read.
    #[error("{address} is not a package index: {cause}")]
    BadIndex {
        /// The address asked.
        address: String,
        /// What is wrong with the page.
        cause: String,
    },
    /// The transfer broke off, and did again when it was tried again.
    #[error("{address}: the download broke off after {received} of {expected} bytes: {cause}")]
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
        "{origin} is not the compiler that Sheaf expects, and is not installed: {}",
        unlike(*expected_size, expected, *computed_size, computed.as_deref())
    )]
    Checksum {
        /// The address or file the bytes came from.
        origin: String,
        /// How to name another place in the setting that this one came from.
        instead: String,
        /// The pinned digest, in hexadecimal.
        expected: String,
        /// The digest of what came, in hexadecimal; none of a file that was not read, since its size is wrong.
        computed: Option<String>,
        /// The pinned size in bytes.
        expected_size: u64,
        /// The number of bytes that came, or would.
        computed_size: u64,
    },
    /// The wheel has the right digest but not the expected content.
    #[error("{origin} cannot be unpacked: {cause}")]
    Archive {
        /// The address or file the wheel came from.
        origin: String,
        /// What is wrong.
        cause: String,
    },
    /// The disk, or the quota, is full.
    #[error("{} could not be written: {source}", path.display())]
    DiskFull {
        /// The file that could not be written.
        path: PathBuf,
        /// Bytes that an installation needs in all.
        needed: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// The folder may not be written.
    #[error("{} may not be written: {source}", path.display())]
    Permission {
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file operation failed for another reason.
    #[error("cannot {action} {}: {source}", path.display())]
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
    /// What to do about it.
    pub fn remedy(&self) -> String {
        let remedy = match self {
            Self::UnsupportedPlatform { .. } => {
                "compile on Linux, macOS or Windows, and run the compiled program here"
            }
            Self::NoSource { .. } => {
                "set SHEAF_TOOLCHAIN_INDEX to a package index, or to a folder with that file in it"
            }
            Self::BadSetting { .. } => "give a folder, or an http, https or file address",
            Self::NotFound { .. } => {
                "set SHEAF_TOOLCHAIN_INDEX to a package index or a folder that has the file"
            }
            Self::Offline { .. } => {
                "allow the network once, or name a folder that has the file in SHEAF_TOOLCHAIN_MIRROR, or install a bundle of \
                 another machine: `sheaf toolchain install FILE.tar.gz`"
            }
            Self::NoBundle { .. } => "make one on a machine of the same kind, with `sheaf toolchain bundle`",
            Self::DamagedBundle { .. } => {
                "copy the file again, or make it anew with `sheaf toolchain bundle`"
            }
            Self::BundleFile { needed, source, .. } if is_full(source) => {
                let needed = needed.div_ceil(1 << 20);
                return format!("free {needed} MiB there, or name a file on another disk with -o");
            }
            Self::BundleFile { .. } => "name another file with -o",
            Self::Damaged { version, .. } => {
                return format!("run `sheaf toolchain verify {version}`, which says how to mend it");
            }
            Self::Unreachable { .. } => {
                "check the network, the proxy (HTTPS_PROXY) and the certificates (SSL_CERT_FILE), or set \
                 SHEAF_TOOLCHAIN_INDEX to a mirror or a folder"
            }
            Self::Status { code: 429 | 500.., .. } => {
                "the server is busy or out of order: run it again, or set SHEAF_TOOLCHAIN_INDEX to another index"
            }
            Self::Status { code: 401 | 403 | 407, .. } => {
                "check the address and its credentials, or set SHEAF_TOOLCHAIN_INDEX to another index"
            }
            Self::Status { .. } => "check the address, or set SHEAF_TOOLCHAIN_INDEX to another index",
            Self::BadIndex { .. } => "check the address in SHEAF_TOOLCHAIN_INDEX or in pip's configuration",
            Self::Truncated { .. } => "run the command again",
            Self::Checksum { instead, .. } => {
                return format!("the file was damaged or replaced there: {instead}");
            }
            Self::Archive { .. } => "this is an error in Sheaf's table of releases, please report it",
            Self::DiskFull { needed, .. } => {
                let needed = needed.div_ceil(1 << 20);
                return format!(
                    "free {needed} MiB, which installing the compiler takes, or set SHEAF_HOME to a folder on another disk"
                );
            }
            Self::Permission { .. } => "make it writable, or set SHEAF_HOME to a folder that is",
            Self::Io { action: OPEN_BUNDLE, .. } => {
                "give the path of a file that `sheaf toolchain bundle` wrote"
            }
            Self::Io { action: "read", .. } => {
                "make it readable, or set SHEAF_TOOLCHAIN_INDEX to another place"
            }
            Self::Io { .. } => "check that disk and folder, or set SHEAF_HOME to another folder",
        };
        remedy.to_owned()
    }

    /// The place has a wrong file or one that cannot be read, and another may have the right one.
    pub(crate) fn is_of_the_file(&self) -> bool {
        matches!(self, Self::Checksum { .. } | Self::Io { action: "read", .. })
    }

    /// The network is at fault, so that the same command may succeed later or elsewhere.
    pub fn is_network(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Status { .. } | Self::BadIndex { .. } | Self::Truncated { .. }
        )
    }
}

/// How a wheel differs from the pinned one, for a message.
fn unlike(expected_size: u64, expected: &str, computed_size: u64, computed: Option<&str>) -> String {
    match computed {
        Some(computed) => format!(
            "its SHA-256 is\n{computed} ({computed_size} bytes) instead of\n{expected} ({expected_size} bytes)"
        ),
        None => format!("it has {computed_size} bytes instead of {expected_size}"),
    }
}

/// Where was looked, for a message.
fn looked(tried: &[String]) -> String {
    if tried.is_empty() { String::new() } else { format!("; looked at\n{}", tried.join("\n")) }
}

/// What was attempted where a bundle is not there.
pub(crate) const OPEN_BUNDLE: &str = "open the bundle";

/// No more can be written, or no larger file.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Sorts a failed file operation into disk full, permission, and the rest. `needed` is the space an installation takes.
pub(crate) fn file_error(action: &'static str, path: &Path, needed: u64, source: io::Error) -> InstallError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let path = path.to_path_buf();
    match source.kind() {
        // What cannot be read is another person's file.
        _ if action == "read" => InstallError::Io { action, path, source },
        _ if is_full(&source) => InstallError::DiskFull { path, needed, source },
        PermissionDenied | ReadOnlyFilesystem => InstallError::Permission { path, source },
        _ => InstallError::Io { action, path, source },
    }
}
