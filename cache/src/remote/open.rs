//! A remote cache of any protocol.

use bazel_remote_apis::build::bazel::remote::execution::v2::ActionResult;
use bytes::Bytes;
use reqwest::Url;

use sheaf_foundation::{shown, shown_text};

use super::credentials::Headers;
use super::grpc::{Grpc, GrpcOptions};
use super::http::HttpCache;
use super::objects::Objects;
use super::{Address, RemoteError};

/// A remote cache.
#[derive(Debug)]
pub(crate) enum Remote {
    Http(HttpCache),
    Grpc(Grpc),
    Objects(Objects),
}

/// Dispatches a call to the protocol's client.
macro_rules! by_protocol {
    ($remote:expr, $cache:ident => $call:expr) => {
        match $remote {
            Remote::Http($cache) => $call,
            Remote::Grpc($cache) => $call,
            Remote::Objects($cache) => $call,
        }
    };
}

impl Remote {
    /// Parses an address.
    pub fn parse(address: &str) -> Result<Url, RemoteError> {
        let address = address.trim();
        Url::parse(address)
            .map_err(|error| RemoteError::Address { address: shown_text(address), cause: error.to_string() })
    }

    /// The remote at `address`; sends nothing yet. `chosen` is true if the user named it, rather than a project: then
    /// an object store gets the credentials of the environment.
    pub fn open(address: &Url, credentials: Headers, chosen: bool) -> Result<Self, RemoteError> {
        match address.scheme() {
            "http" | "https" => HttpCache::new(address, credentials).map(Self::Http),
            "grpc" | "grpcs" => {
                let headers = credentials.into_iter().map(|(name, value)| (name, value.reveal().to_owned()));
                let options = GrpcOptions { headers: headers.collect(), ..GrpcOptions::default() };
                Grpc::new(address.as_str(), options).map(Self::Grpc)
            }
            "s3" | "file" => {
                // S3 settings are Unicode; other variables may not be.
                let variables = std::env::vars_os()
                    .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
                if chosen {
                    Objects::new(address.as_str(), variables).map(Self::Objects)
                } else {
                    Objects::anonymous(address.as_str(), variables).map(Self::Objects)
                }
            }
            // The part before the colon may be a user's name.
            _ => Err(RemoteError::Address {
                address: shown(address),
                cause: "it has no known protocol".into(),
            }),
        }
    }

    /// The result of an action; `None` if there is none.
    pub async fn action_result(&self, action: Address) -> Result<Option<ActionResult>, RemoteError> {
        by_protocol!(self, cache => cache.action_result(action).await)
    }

    /// Stores the result of an action.
    pub async fn set_action_result(&self, action: Address, result: &ActionResult) -> Result<(), RemoteError> {
        by_protocol!(self, cache => cache.set_action_result(action, result).await)
    }

    /// The missing ones of `blobs`.
    pub async fn missing(&self, blobs: &[Address]) -> Result<Vec<Address>, RemoteError> {
        by_protocol!(self, cache => cache.missing(blobs).await)
    }

    /// A blob, its SHA-256 checked; `None` if it is missing.
    pub async fn read(&self, blob: Address) -> Result<Option<Bytes>, RemoteError> {
        by_protocol!(self, cache => cache.read(blob).await)
    }

    /// Stores a blob.
    pub async fn write(&self, blob: Address, bytes: Bytes) -> Result<(), RemoteError> {
        by_protocol!(self, cache => cache.write(blob, bytes).await)
    }
}
