//! What a cache server is told when it starts.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use super::error::ServeError;

/// What a cache server is told when it starts.
#[derive(Debug, Clone)]
pub struct ServeOptions {
    /// Where to listen; with port 0 the system chooses one.
    pub listen: SocketAddr,
    /// Where everything is kept. It is made if it is not there.
    pub folder: PathBuf,
    /// How much the folder may take on the disk, in bytes, besides what is being written. What was not used for the longest time goes
    /// first.
    pub capacity: u64,
    /// The largest blob that is taken, in bytes.
    pub max_blob: u64,
    /// The file of tokens. Without one everybody may read and write.
    pub tokens: Option<PathBuf>,
    /// True if everybody who reaches the address may read and write; asked for where that is not this machine alone.
    pub everyone: bool,
    /// Whether those without a token may read.
    pub anonymous_read: bool,
    /// Certificate and key; without them there is no encryption.
    pub tls: Option<TlsFiles>,
    /// How many connections are served at once. Further ones wait; half as many may be there without a request that was
    /// let in.
    pub max_connections: usize,
    /// How long a connection may be there without a request that was let in, how long a request's head or a short request
    /// may take, and how long a request waits while others have all the room.
    pub header_timeout: Duration,
    /// How long a connection may neither send nor take anything, how long a batch of blobs may be on its way, and how long
    /// 64 KiB of a longer upload.
    pub idle_timeout: Duration,
    /// How long requests under way may take when the server stops.
    pub stop_timeout: Duration,
}

/// The files of a server that encrypts, both in PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate, followed by those that lead to one that clients know.
    pub certificate: PathBuf,
    /// Its private key.
    pub key: PathBuf,
}

impl ServeOptions {
    /// How many connections are served at once where nobody says: with a file for each, and as many that were not let in
    /// yet, below the 1024 that a process may usually have open.
    pub const MAX_CONNECTIONS: usize = 320;

    /// Ten GiB in `folder`, for everybody who reaches `listen`.
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

    /// True if only this machine reaches the address.
    pub(super) fn is_local(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    /// Whether these options make sense together.
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
