//! Admission of requests: method and credentials are in the head, so a request is refused before its body is read.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::http::header::{CONNECTION, CONTENT_TYPE};
use axum::http::{HeaderValue, Method, Version};
use axum::middleware::Next;
use axum::response::Response;
use tonic::Status;

use super::access::Denial;
use super::lobby::Guest;
use super::metrics::{Outcome, Protocol, Request as Wanted};
use super::room::Full;
use super::storage::Kind;
use super::tokens::Role;
use super::{Service, grpc, http};

/// Cause of a refused request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Refusal {
    #[error(transparent)]
    Denied(#[from] Denial),
    #[error(transparent)]
    Full(#[from] Full),
}

impl Refusal {
    pub fn outcome(&self) -> Outcome {
        match self {
            Self::Denied(_) => Outcome::denied,
            Self::Full(_) => Outcome::failed,
        }
    }
}

/// Admits a request, or answers with the refusal.
pub(super) async fn enter(
    State(service): State<Arc<Service>>,
    Extension(guest): Extension<Arc<Guest>>,
    mut request: Request,
    next: Next,
) -> Response {
    let asked = Asked::by(&request);
    // The body of the request is not `Sync`, so the head is checked first.
    let pass = service.gate.check(request.headers(), asked.role);
    let pass = async {
        let pass = pass?;
        guest.let_in(pass).await?;
        Ok(pass)
    };
    let refusal: Refusal = match pass.await {
        Ok(pass) => {
            request.extensions_mut().insert(pass);
            request.extensions_mut().insert(asked);
            return next.run(request).await;
        }
        Err(refusal) => refusal,
    };
    service.metrics.count(asked.protocol, asked.wanted, refusal.outcome());
    let mut response = match asked.protocol {
        Protocol::grpc => Status::from(refusal).into_http(),
        Protocol::http => http::Failure::from(refusal).response(),
    };
    if request.version() < Version::HTTP_2 {
        // The rest of its body is not read.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The method of a request, from its head alone.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub protocol: Protocol,
    pub wanted: Wanted,
    /// The required role.
    pub role: Role,
}

impl Asked {
    fn by(request: &Request) -> Self {
        if let Some(method) = grpc::method(request.uri().path()) {
            return Self { protocol: Protocol::grpc, wanted: method.wanted, role: method.role };
        }
        let kind = request.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
        if kind.is_some_and(|kind| kind.starts_with(b"application/grpc")) {
            return Self { protocol: Protocol::grpc, wanted: Wanted::other, role: Role::Read };
        }
        let writes = request.method() == Method::PUT;
        let wanted = match (http::key(request.uri().path()).map(|key| key.kind), writes) {
            (Some(Kind::Action), false) => Wanted::action_read,
            (Some(Kind::Action), true) => Wanted::action_write,
            (Some(Kind::Blob), false) => Wanted::blob_read,
            (Some(Kind::Blob), true) => Wanted::blob_write,
            (None, _) => Wanted::other,
        };
        Self { protocol: Protocol::http, wanted, role: if writes { Role::Write } else { Role::Read } }
    }
}
