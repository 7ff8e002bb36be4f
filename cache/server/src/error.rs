//! Errors of the cache server.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

/// Cause of a server that does not start, or stops by itself. No message holds a token or a key.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The folder cannot be used.
    #[error("the folder {path} cannot be used: {source}")]
    Folder {
        /// The folder, or the file in it.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// Another server uses the folder.
    #[error("another cache server uses the folder {path}")]
    FolderInUse {
        /// The folder.
        path: PathBuf,
    },
    /// The address cannot be listened on.
    #[error("{address} cannot be listened on: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The operating system's error.
        source: io::Error,
    },
    /// A file that the options name cannot be read.
    #[error("{path} cannot be read: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// A malformed line of the token file.
    #[error("{path}:{line}: {cause}")]
    Token {
        /// The token file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The defect.
        cause: String,
    },
    /// Certificate and key cannot be used.
    #[error("the certificate {certificate} and the key {key} cannot be used: {cause}")]
    Tls {
        /// The file of the certificate.
        certificate: PathBuf,
        /// The file of the key.
        key: PathBuf,
        /// The defect.
        cause: String,
    },
    /// The options contradict each other.
    #[error("{0}")]
    Options(&'static str),
    /// The operating system provides no threads, or closed the socket.
    #[error("the server cannot run: {0}")]
    System(io::Error),
}

impl ServeError {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Folder { .. } => "name a folder that is writable for you",
            Self::FolderInUse { .. } => "stop the other server, or give this one another folder",
            Self::Listen { source, .. } if source.kind() == io::ErrorKind::AddrInUse => {
                "choose another port, or stop what listens there"
            }
            Self::Listen { .. } => "choose an address of this machine, and a port above 1023",
            Self::File { .. } => "check the path and who may read the file",
            Self::Token { .. } => {
                "write one token on each line: `read` or `write`, the SHA-256 of the token in hexadecimal digits, \
                 a name, and `expires=2026-12-31` where it shall expire"
            }
            Self::Tls { .. } => "give the certificate chain and its private key as PEM files",
            Self::Options(_) => "see `sheaf cache serve --help`",
            Self::System(_) => "check the limits of this user and machine",
        }
    }
}
