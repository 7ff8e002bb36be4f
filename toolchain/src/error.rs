//! Errors of finding, downloading and installing the compiler.

use std::io;
use std::path::{Path, PathBuf};

/// Cause of a failed installation. The message gives the location and the cause; [`remedy`](Self::remedy) the fix.
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
    /// No package index is known.
    #[error("cannot fetch {wheel}: no package index is known, neither to Sheaf nor to pip")]
    NoSource {
        /// The wheel's file name.
        wheel: String,
    },
    /// The configured source is invalid.
    #[error("{origin}: `{value}` is not a usable place for the compiler: {cause}")]
    BadSetting {
        /// Source of the setting.
        origin: String,
        /// The configured value.
        value: String,
        /// The defect.
        cause: String,
    },
    /// None of the known sources has the wheel.
    #[error("{wheel} was not found; looked at\n{}", tried.join("\n"))]
    NotFound {
        /// The wheel's file name.
        wheel: String,
        /// The addresses and files searched.
        tried: Vec<String>,
    },
    /// None of the folders has the wheel, and network access is disabled.
    #[error("{wheel} may not be fetched without the network{}", looked(tried))]
    Offline {
        /// The wheel's file name.
        wheel: String,
        /// The files searched.
        tried: Vec<String>,
    },
    /// The file is not a bundle of a compiler.
    #[error("{} is no bundle of a compiler for this machine: {cause}", path.display())]
    NoBundle {
        /// The file.
        path: PathBuf,
        /// The defect.
        cause: String,
    },
    /// A bundle of a compiler is truncated or was changed.
    #[error("{} cannot be unpacked: {cause}", path.display())]
    DamagedBundle {
        /// The file.
        path: PathBuf,
        /// The defect.
        cause: String,
    },
    /// A bundle could not be written.
    #[error("{} cannot be written: {source}", path.display())]
    BundleFile {
        /// The file to write.
        path: PathBuf,
        /// Upper bound of its size in bytes.
        needed: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// An installed file differs from the published one.
    #[error("{} is damaged: {cause}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// The defect.
        cause: String,
        /// Its release.
        version: String,
    },
    /// No connection could be made.
    #[error("{address} cannot be reached: {cause}")]
    Unreachable {
        /// The requested address.
        address: String,
        /// The network library's error.
        cause: String,
    },
    /// The server answered with an error status.
    #[error("{address} answered {status}")]
    Status {
        /// The requested address.
        address: String,
        /// The HTTP status code.
        code: u16,
        /// The HTTP status with its reason phrase.
        status: String,
    },
    /// The index page is malformed.
    #[error("{address} is not a package index: {cause}")]
    BadIndex {
        /// The requested address.
        address: String,
        /// The defect.
        cause: String,
    },
    /// The download broke off, and so did all retries.
    #[error("{address}: the download broke off after {received} of {expected} bytes: {cause}")]
    Truncated {
        /// The wheel's address.
        address: String,
        /// Number of bytes received.
        received: u64,
        /// Size of the wheel in bytes.
        expected: u64,
        /// The last cause.
        cause: String,
    },
    /// The bytes do not match the pinned digest.
    #[error(
        "{origin} is not the compiler that Sheaf expects, and is not installed: {}",
        unlike(*expected_size, expected, *computed_size, computed.as_deref())
    )]
    Checksum {
        /// The source address or file.
        origin: String,
        /// Advice on naming another source in the setting of this one.
        instead: String,
        /// The pinned digest, in hexadecimal.
        expected: String,
        /// The computed digest, in hexadecimal; `None` for a file that was not read, since its size is wrong.
        computed: Option<String>,
        /// The pinned size in bytes.
        expected_size: u64,
        /// The number of bytes received or announced.
        computed_size: u64,
    },
    /// The wheel matches the digest but has unexpected content.
    #[error("{origin} cannot be unpacked: {cause}")]
    Archive {
        /// The source address or file of the wheel.
        origin: String,
        /// The defect.
        cause: String,
    },
    /// The disk, or the quota, is full.
    #[error("{} could not be written: {source}", path.display())]
    DiskFull {
        /// The file.
        path: PathBuf,
        /// Total size of an installation in bytes.
        needed: u64,
        /// The operating system's error.
        source: io::Error,
    },
    /// The folder is not writable.
    #[error("{} may not be written: {source}", path.display())]
    Permission {
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file operation failed for another reason.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The attempted action.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

impl InstallError {
    /// The fix to suggest to the user.
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

    /// True if the source has a wrong or unreadable file, and another source may have the right one.
    pub(crate) fn is_of_the_file(&self) -> bool {
        matches!(self, Self::Checksum { .. } | Self::Io { action: "read", .. })
    }

    /// True for network errors: the same command may succeed later or on another network.
    pub fn is_network(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. } | Self::Status { .. } | Self::BadIndex { .. } | Self::Truncated { .. }
        )
    }
}

/// The difference between a wheel and the pinned one, for a message.
fn unlike(expected_size: u64, expected: &str, computed_size: u64, computed: Option<&str>) -> String {
    match computed {
        Some(computed) => format!(
            "its SHA-256 is\n{computed} ({computed_size} bytes) instead of\n{expected} ({expected_size} bytes)"
        ),
        None => format!("it has {computed_size} bytes instead of {expected_size}"),
    }
}

/// The searched sources, for a message.
fn looked(tried: &[String]) -> String {
    if tried.is_empty() { String::new() } else { format!("; looked at\n{}", tried.join("\n")) }
}

/// The attempted action if a bundle is missing.
pub(crate) const OPEN_BUNDLE: &str = "open the bundle";

/// True if the disk, the quota or the file size limit is exhausted.
fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded | FileTooLarge)
}

/// Classifies a failed file operation as disk full, permission, or other. `needed` is the space of an installation.
pub(crate) fn file_error(action: &'static str, path: &Path, needed: u64, source: io::Error) -> InstallError {
    use io::ErrorKind::{PermissionDenied, ReadOnlyFilesystem};
    let path = path.to_path_buf();
    match source.kind() {
        // An unreadable file belongs to another user.
        _ if action == "read" => InstallError::Io { action, path, source },
        _ if is_full(&source) => InstallError::DiskFull { path, needed, source },
        PermissionDenied | ReadOnlyFilesystem => InstallError::Permission { path, source },
        _ => InstallError::Io { action, path, source },
    }
}
