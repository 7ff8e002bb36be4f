//! Errors of remote caches.

use sheaf_foundation::Digest;

/// Failure of a remote cache. A missing entry is not an error. No message holds a password or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The address is invalid.
    #[error("`{address}` is not the address of a remote cache: {cause}")]
    Address {
        /// The address, without credentials.
        address: String,
        /// The defect.
        cause: String,
    },
    /// No connection, or a broken one.
    #[error("{address} cannot be reached: {cause}")]
    Unreachable {
        /// The address, without credentials.
        address: String,
        /// The network library's error.
        cause: String,
    },
    /// It did not answer in time.
    #[error("{address} did not answer within {seconds} s")]
    Timeout {
        /// The address, without credentials.
        address: String,
        /// The time limit in seconds.
        seconds: u64,
    },
    /// Its look-ups exceeded their time budget in this run.
    #[error(
        "{address} took {seconds} s of this run for look-ups, more than it saved, and is passed over from here on"
    )]
    Slow {
        /// The address, without credentials.
        address: String,
        /// The budget of the run, in seconds.
        seconds: u64,
    },
    /// The credentials are rejected, or only allow reading.
    #[error("{address} refuses access: {cause}")]
    Refused {
        /// The address, without credentials.
        address: String,
        /// The status that it returned.
        cause: String,
    },
    /// The credential helper failed.
    #[error("the credential helper {helper} gives nothing for {address}: {cause}")]
    Helper {
        /// The address, without credentials.
        address: String,
        /// The program.
        helper: String,
        /// The reason.
        cause: String,
    },
    /// The blob exceeds the size limit.
    #[error("{address} takes no blob as large as that: {cause}")]
    TooLarge {
        /// The address, without credentials.
        address: String,
        /// The server's message about its limit.
        cause: String,
    },
    /// Another error status.
    #[error("{address} answered {cause}")]
    Failed {
        /// The address, without credentials.
        address: String,
        /// The status that it returned.
        cause: String,
    },
    /// A malformed answer.
    #[error("{address} gave an answer that cannot be read: {cause}")]
    Unreadable {
        /// The address, without credentials.
        address: String,
        /// The defect.
        cause: String,
    },
    /// Bytes with another digest than requested.
    #[error("{address} gave bytes with the SHA-256 {found} instead of {expected}")]
    Altered {
        /// The address, without credentials.
        address: String,
        /// The requested digest.
        expected: Digest,
        /// The digest of the received bytes.
        found: Digest,
    },
}

impl RemoteError {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Address { .. } => "give an address that begins with http, https, grpc, grpcs, s3 or file",
            Self::Unreachable { .. } | Self::Timeout { .. } => {
                "check the network and the proxy, or run with --offline"
            }
            Self::Slow { .. } => {
                "check the network and the server; SHEAF_CACHE_TIMEOUT gives look-ups more seconds"
            }
            Self::Refused { .. } => {
                "check SHEAF_CACHE_TOKEN, the netrc file or the credential helper; --read-only sends nothing"
            }
            Self::TooLarge { .. } => {
                "raise the server's limit, such as `--max-blob` of `sheaf cache serve` or nginx's `client_max_body_size`"
            }
            Self::Helper { .. } => "run the helper by hand to see what is wrong with it",
            Self::Failed { .. } | Self::Unreadable { .. } => "check the server and its log",
            Self::Altered { .. } => "the server or something on the way damages files: check its disk",
        }
    }
}
