//! The caching services of the Remote Execution API v2: Capabilities, `ActionCache`, CAS and `ByteStream`. Any instance
//! name is accepted; all share one cache.

mod action_cache;
mod byte_stream;
mod capabilities;
mod cas;
mod messages;
mod methods;
mod resource;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn_with_state;
use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use reapi::action_cache_server::ActionCacheServer;
use reapi::capabilities_server::CapabilitiesServer;
use reapi::content_addressable_storage_server::ContentAddressableStorageServer;
use tonic::{Code, Status};

use self::messages::Messages;
use super::Service;
use super::access::Denial;
use super::entrance::Refusal;
use super::metrics::{Outcome, Protocol, Request as Wanted};
use super::options::ServeOptions;
use super::room::Full;
use super::storage::StorageError;
use sheaf_foundation::Digest;

/// Maximum total size of the blobs of one batch, in bytes.
const MAX_BATCH: u64 = 4 * 1024 * 1024 - 64 * 1024;

pub(super) use methods::method;

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
    let mut routes = Router::new();
    for method in methods::of(methods::CAPABILITIES) {
        let service = CapabilitiesServer::new(api.clone()).max_decoding_message_size(method.limit);
        routes = routes.route_service(&method.path(), service);
    }
    for method in methods::of(methods::ACTIONS) {
        let service = ActionCacheServer::new(api.clone()).max_decoding_message_size(method.limit);
        routes = routes.route_service(&method.path(), service);
    }
    for method in methods::of(methods::BLOBS) {
        let service =
            ContentAddressableStorageServer::new(api.clone()).max_decoding_message_size(method.limit);
        routes = routes.route_service(&method.path(), service);
    }
    for method in methods::of(methods::STREAM) {
        let service = ByteStreamServer::new(api.clone()).max_decoding_message_size(method.limit);
        routes = routes.route_service(&method.path(), service);
    }
    let messages = Messages::new(service.clone(), options);
    router.merge(routes.layer(from_fn_with_state(messages, messages::take_in)))
}

impl Api {
    /// Counts a request by its outcome.
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

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Denied(denial @ Denial::ReadOnly) => Self::permission_denied(denial.to_string()),
            Refusal::Denied(denial) => Self::unauthenticated(denial.to_string()),
            Refusal::Full(full) => full.into(),
        }
    }
}

impl From<Full> for Status {
    fn from(full: Full) -> Self {
        Self::unavailable(full.to_string())
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

/// The digest and size in a request.
fn address(digest: Option<&reapi::Digest>) -> Result<(Digest, u64), Status> {
    let digest = digest.ok_or_else(|| Status::invalid_argument("a digest is missing"))?;
    super::actions::address(digest).ok_or_else(|| {
        let hash: String = digest.hash.chars().take(80).collect();
        Status::invalid_argument(format!("`{hash}` with {} bytes is no SHA-256 digest", digest.size_bytes))
    })
}
