//! The Remote Execution API v2, as far as it is about caching: Capabilities, `ActionCache`, CAS and `ByteStream`. Any
//! instance name is taken; all are one cache.

mod action_cache;
mod batches;
mod byte_stream;
mod capabilities;
mod cas;
mod resource;

use std::sync::Arc;

use axum::Router;
use axum::http::HeaderMap;
use axum::middleware::from_fn_with_state;
use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use reapi::action_cache_server::ActionCacheServer;
use reapi::capabilities_server::CapabilitiesServer;
use reapi::content_addressable_storage_server::ContentAddressableStorageServer;
use tonic::{Code, Request, Status};

use self::batches::Batches;
use super::Service;
use super::access::Denial;
use super::metrics::{Outcome, Protocol, Request as Wanted};
use super::options::ServeOptions;
use super::storage::StorageError;
use super::tokens::Role;
use crate::digest::Digest;

/// How many bytes the blobs of one batch may have together.
const MAX_BATCH: u64 = 4 * 1024 * 1024 - 64 * 1024;

/// The largest message that is taken: a batch, with what is around the blobs.
const MAX_MESSAGE: usize = 5 * 1024 * 1024;

/// The services; clones are the same ones.
#[derive(Clone)]
struct Api {
    service: Arc<Service>,
}

/// Adds the services to a server's paths.
pub(super) fn routes(
    router: Router<Arc<Service>>,
    service: &Arc<Service>,
    options: &ServeOptions,
) -> Router<Arc<Service>> {
    let api = Api { service: service.clone() };
    let path = |name: &str| format!("/{name}/{{method}}");
    let package = "build.bazel.remote.execution.v2";
    let cas = ContentAddressableStorageServer::new(api.clone())
        .max_decoding_message_size(MAX_MESSAGE)
        .max_encoding_message_size(MAX_MESSAGE);
    let cas = Router::new()
        .route_service(&path(&format!("{package}.ContentAddressableStorage")), cas)
        .layer(from_fn_with_state(Batches::new(service.clone(), options), batches::wait));
    router
        .merge(cas)
        .route_service(&path(&format!("{package}.Capabilities")), CapabilitiesServer::new(api.clone()))
        .route_service(
            &path(&format!("{package}.ActionCache")),
            ActionCacheServer::new(api.clone()).max_decoding_message_size(MAX_MESSAGE),
        )
        .route_service(
            &path("google.bytestream.ByteStream"),
            ByteStreamServer::new(api).max_decoding_message_size(MAX_MESSAGE),
        )
}

impl Api {
    /// Whether the sender may do what `role` allows.
    fn check<T>(&self, request: &Request<T>, role: Role) -> Result<(), Status> {
        let headers: HeaderMap = request.metadata().clone().into_headers();
        Ok(self.service.gate.check(&headers, role)?)
    }

    /// The same, where what comes of the request is counted for each of its parts.
    fn allowed<T>(&self, wanted: Wanted, request: &Request<T>, role: Role) -> Result<(), Status> {
        self.check(request, role).or_else(|status| self.counted(wanted, Err(status)))
    }

    /// Counts a request by what came of it.
    fn counted<T>(&self, wanted: Wanted, result: Result<T, Status>) -> Result<T, Status> {
        let outcome = result.as_ref().map_or_else(outcome, |_| Outcome::ok);
        self.service.metrics.count(Protocol::grpc, wanted, outcome);
        result
    }
}

fn outcome(status: &Status) -> Outcome {
    match status.code() {
        Code::NotFound => Outcome::miss,
        Code::PermissionDenied | Code::Unauthenticated => Outcome::denied,
        Code::Internal | Code::ResourceExhausted | Code::Unavailable => Outcome::failed,
        _ => Outcome::bad,
    }
}

impl From<Denial> for Status {
    fn from(denial: Denial) -> Self {
        match denial {
            Denial::ReadOnly => Self::permission_denied(denial.to_string()),
            _ => Self::unauthenticated(denial.to_string()),
        }
    }
}

impl From<StorageError> for Status {
    fn from(error: StorageError) -> Self {
        let code = match error {
            StorageError::DiskFull => Code::ResourceExhausted,
            StorageError::Busy => Code::Unavailable,
            StorageError::Disk(_) => Code::Internal,
            StorageError::TooLarge { .. }
            | StorageError::WrongDigest { .. }
            | StorageError::WrongSize { .. }
            | StorageError::NotZstd(_)
            | StorageError::NotAnActionResult(_) => Code::InvalidArgument,
        };
        Self::new(code, error.to_string())
    }
}

/// The digest and size that a request names.
fn address(digest: Option<&reapi::Digest>) -> Result<(Digest, u64), Status> {
    let digest = digest.ok_or_else(|| Status::invalid_argument("a digest is missing"))?;
    super::actions::address(digest).ok_or_else(|| {
        let hash: String = digest.hash.chars().take(80).collect();
        Status::invalid_argument(format!("`{hash}` with {} bytes is no SHA-256 digest", digest.size_bytes))
    })
}
