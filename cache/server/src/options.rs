//! Options of a cache server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::error::ServeError;

/// Options of a cache server.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Address to listen on; with port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Storage folder, created if missing.
    pub folder: PathBuf,
    /// Maximum size of the folder on disk, in bytes, besides unfinished files. The least recently used entries are
    /// evicted.
    pub capacity: u64,
    /// Maximum size of a blob, in bytes.
    pub max_blob: u64,
    /// The token file. Without one, all clients may read and write.
    pub tokens: Option<PathBuf>,
    /// True if all clients may read and write; required without a token file if other machines can reach the address.
    pub everyone: bool,
    /// True if clients without a token may read.
    pub anonymous_read: bool,
    /// Certificate and key; `None` for no encryption.
    pub tls: Option<TlsFiles>,
    /// Maximum number of connections served concurrently. Further ones wait; half as many may be open without an
    /// admitted request.
    pub max_connections: usize,
    /// Maximum time of a connection without an admitted request, of a request's head or a short request, and of a
    /// request's wait for room.
    pub header_timeout: Duration,
    /// Maximum idle time of a connection, time of a batch of blobs, and time per 64 KiB of a longer upload.
    pub idle_timeout: Duration,
    /// Maximum time to complete requests in progress at shutdown.
    pub stop_timeout: Duration,
}

/// The files of a server that encrypts, both in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by the chain to one that clients trust.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ServeOptions {
    /// Default of `max_connections`: with one open file each, and as many connections not yet admitted, below the usual
    /// limit of 1024 open files per process.
    pub const MAX_CONNECTIONS: usize = 320;

    /// 10 GiB in `folder`, for all clients that can reach `listen`.
    pub fn new(listen: SocketAddr, folder: impl Into<PathBuf>) -> Self {
        Self {
            listen,
            folder: folder.into(),
            capacity: 10 << 30,
            max_blob: 2 << 30,
            tokens: None,
            everyone: false,
            anonymous_read: false,
            tls: None,
            max_connections: Self::MAX_CONNECTIONS,
            header_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(60),
            stop_timeout: Duration::from_secs(30),
        }
    }

    /// True if only this machine can reach the address.
    pub(super) fn is_local(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Errors if these options contradict each other.
    pub(super) fn check(&self) -> Result<(), ServeError> {
        let wrong = match self {
            Self { capacity: 0, .. } => "a cache that may take no space is of no use",
            Self { max_blob: 0, .. } => "a cache that takes no blobs is of no use",
            Self { max_connections: 0, .. } => "a server that takes no connections is of no use",
            Self { anonymous_read: true, tokens: None, .. } => {
                "without a file of tokens everybody may read and write, so anonymous reading means nothing"
            }
            Self { tokens: None, everyone: false, .. } if !self.is_local() => {
                "without a file of tokens everybody who reaches this address could read and write: give --tokens FILE, \
                 listen on 127.0.0.1, or say --everyone"
            }
            Self { tokens: Some(_), everyone: true, .. } => "with a file of tokens not everybody may write",
            _ => return Ok(()),
        };
        Err(ServeError::Options(wrong))
    }
}
