//! Why a remote cache did not serve.

use crate::digest::Digest;

/// Why a remote cache did not do what it was asked. That it does not have something is no error. No message holds a
/// password or a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// The address cannot be used at all.
    #[error("`{address}` is not the address of a remote cache: {cause}")]
    Address {
        /// The address, without credentials.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// No connection, or one that broke off.
    #[error("{address} cannot be reached: {cause}")]
    Unreachable {
        /// The address, without credentials.
        address: String,
        /// The reason, as the network library gives it.
        cause: String,
    },
    /// It did not answer in time.
    #[error("{address} did not answer within {seconds} s")]
    Timeout {
        /// The address, without credentials.
        address: String,
        /// How long it was given, in seconds.
        seconds: u64,
    },
    /// Its answers took more time than a run has for them.
    #[error(
        "{address} took {seconds} s of this run for look-ups, more than it saved, and is passed over from here on"
    )]
    Slow {
        /// The address, without credentials.
        address: String,
        /// The budget of the run, in seconds.
        seconds: u64,
    },
    /// It wants other credentials, or lets this user only read.
    #[error("{address} refuses access: {cause}")]
    Refused {
        /// The address, without credentials.
        address: String,
        /// The status that it gave.
        cause: String,
    },
    /// The program that knows the credentials does not give them.
    #[error("the credential helper {helper} gives nothing for {address}: {cause}")]
    Helper {
        /// The address, without credentials.
        address: String,
        /// The program.
        helper: String,
        /// Why.
        cause: String,
    },
    /// It has no room for a blob of this size.
    #[error("{address} takes no blob as large as that: {cause}")]
    TooLarge {
        /// The address, without credentials.
        address: String,
        /// What it says of its limit.
        cause: String,
    },
    /// It answered with an error of its own.
    #[error("{address} answered {cause}")]
    Failed {
        /// The address, without credentials.
        address: String,
        /// The status that it gave.
        cause: String,
    },
    /// It answered with something that makes no sense.
    #[error("{address} gave an answer that cannot be read: {cause}")]
    Unreadable {
        /// The address, without credentials.
        address: String,
        /// What is wrong with it.
        cause: String,
    },
    /// It gave other bytes than were asked for.
    #[error("{address} gave bytes with the SHA-256 {found} instead of {expected}")]
    Altered {
        /// The address, without credentials.
        address: String,
        /// The digest that was asked for.
        expected: Digest,
        /// That of what came.
        found: Digest,
    },
}

impl RemoteError {
    /// What a person can do about it.
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
