//! Bazel's simple http cache: `GET`, `HEAD` and `PUT` of `/ac/<sha256>` and `/cas/<sha256>`, below any path.

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::{StreamExt as _, TryStreamExt as _};

use super::Service;
use super::access::{Denial, Pass};
use super::actions;
use super::entrance::{Asked, Refusal};
use super::held::Held;
use super::metrics::{Outcome, Protocol, Request as Wanted};
use super::pace::{PIECE, paced};
use super::room::Place;
use super::storage::{Form, Key, Kind, MAX_ACTION_RESULT, StorageError, Upload};

/// Maximum part of an unwanted body that is read nevertheless: a client that is cut off while sending sees a broken
/// connection instead of the reason.
const DRAINED: usize = 16 * 1024 * 1024;

/// Cause of a failed request.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failure {
    #[error("there is no such entry")]
    NotFound,
    #[error("entries are at /ac/SHA256 and /cas/SHA256, with 64 hexadecimal digits")]
    NoSuchPath,
    #[error("entries can be read with GET and HEAD, and written with PUT")]
    Method,
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("the body broke off: {0}")]
    BrokenOff(axum::Error),
}

impl Failure {
    fn status(&self) -> StatusCode {
        match self {
            Self::NotFound | Self::NoSuchPath => StatusCode::NOT_FOUND,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::Refused(Refusal::Denied(Denial::ReadOnly)) => StatusCode::FORBIDDEN,
            Self::Refused(Refusal::Denied(_)) => StatusCode::UNAUTHORIZED,
            Self::Refused(Refusal::Full(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::BrokenOff(_) => StatusCode::BAD_REQUEST,
            Self::Storage(error) => match error {
                StorageError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
                StorageError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
                StorageError::Busy => StatusCode::SERVICE_UNAVAILABLE,
                StorageError::Disk(_) => StatusCode::INTERNAL_SERVER_ERROR,
                StorageError::WrongDigest { .. }
                | StorageError::WrongSize { .. }
                | StorageError::NotZstd(_)
                | StorageError::NotAnActionResult(_) => StatusCode::BAD_REQUEST,
            },
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Self::NotFound => Outcome::miss,
            Self::Refused(refusal) => refusal.outcome(),
            Self::Storage(StorageError::DiskFull | StorageError::Busy | StorageError::Disk(_)) => {
                Outcome::failed
            }
            _ => Outcome::bad,
        }
    }

    pub fn response(&self) -> Response {
        let mut response = (self.status(), format!("{self}\n")).into_response();
        let headers = response.headers_mut();
        if self.status() == StatusCode::UNAUTHORIZED
            && let Ok(value) = "Basic realm=\"cache\"".parse()
        {
            headers.insert(WWW_AUTHENTICATE, value);
        }
        if let (Self::Method, Ok(value)) = (self, "GET, HEAD, PUT".parse()) {
            headers.insert(ALLOW, value);
        }
        response
    }
}

/// Answers requests for entries, and malformed requests.
pub(super) async fn entry(
    State(service): State<Arc<Service>>,
    Extension(pass): Extension<Pass>,
    Extension(asked): Extension<Asked>,
    request: Request<Body>,
) -> Response {
    if asked.protocol == Protocol::grpc {
        // An unsupported gRPC service: such a client expects a gRPC status.
        service.metrics.count(Protocol::grpc, Wanted::other, Outcome::bad);
        return tonic::Status::unimplemented("this server is a cache and offers nothing else").into_http();
    }
    let (parts, body) = request.into_parts();
    // The rest of the body is drained if the answer gives a reason.
    let mut body = paced(body, PIECE, service.idle).into_data_stream();
    let answer = async {
        let key = key(parts.uri.path()).ok_or(Failure::NoSuchPath)?;
        let place = service.transfers.take(1, pass).await.map_err(Refusal::from)?;
        match parts.method {
            Method::GET => read(&service, key, Some(place)).await,
            Method::HEAD => read(&service, key, None).await,
            Method::PUT => write(&service, key, &parts.headers, &mut body).await,
            _ => Err(Failure::Method),
        }
    };
    let answer = answer.await;
    let outcome = answer.as_ref().map_or_else(Failure::outcome, |_| Outcome::ok);
    service.metrics.count(Protocol::http, asked.wanted, outcome);
    match answer {
        Ok(response) => response,
        Err(failure) => {
            // A client that sends `Expect` gets the answer instead.
            let mut left = if parts.headers.contains_key(EXPECT) { 0 } else { DRAINED };
            while left > 0
                && let Some(Ok(piece)) = body.next().await
            {
                left = left.saturating_sub(piece.len());
            }
            failure.response()
        }
    }
}

/// `/metrics`.
pub(super) async fn metrics(State(service): State<Arc<Service>>) -> Response {
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(CONTENT_TYPE, kind)], service.metrics.text(&service.storage)).into_response()
}

/// `/status`.
pub(super) async fn status(State(service): State<Arc<Service>>) -> Response {
    ([(CONTENT_TYPE, "application/json")], service.metrics.status(&service.storage)).into_response()
}

/// The entry that a path names: its last two components.
pub(super) fn key(path: &str) -> Option<Key> {
    let (rest, hash) = path.rsplit_once('/')?;
    let kind = match rest.rsplit_once('/')?.1 {
        "ac" => Kind::Action,
        "cas" => Kind::Blob,
        _ => return None,
    };
    Some(Key { kind, digest: hash.parse().ok()? })
}

/// Reads an entry; its bytes only with a permit.
async fn read(service: &Service, key: Key, place: Option<Place>) -> Result<Response, Failure> {
    let storage = &service.storage;
    if key.kind == Kind::Action {
        let bytes = actions::find(storage, key.digest).await?.ok_or(Failure::NotFound)?;
        let length = bytes.len() as u64;
        let Some(place) = place else { return Ok(response(length, Body::empty())) };
        service.metrics.sent.inc_by(length);
        return Ok(response(length, held(bytes.into(), place)));
    }
    let Some(place) = place else {
        let size = storage.blob_size(key.digest).ok_or(Failure::NotFound)?;
        return Ok(response(size, Body::empty()));
    };
    let reader = actions::open(storage, key, Form::Plain).await?.ok_or(Failure::NotFound)?;
    let sent = service.metrics.sent.clone();
    let size = reader.size();
    let pieces = reader.stream().inspect_ok(move |piece| {
        sent.inc_by(piece.len() as u64);
    });
    Ok(response(size, held(Body::from_stream(pieces), place)))
}

/// A body that holds its permit until it is sent.
fn held(body: Body, place: Place) -> Body {
    Body::new(Held::until_end(body, place))
}

fn response(length: u64, body: Body) -> Response {
    let headers = [(CONTENT_LENGTH, length.to_string()), (CONTENT_TYPE, "application/octet-stream".into())];
    (headers, body).into_response()
}

async fn write(
    service: &Service,
    key: Key,
    headers: &HeaderMap,
    body: &mut axum::body::BodyDataStream,
) -> Result<Response, Failure> {
    let storage = &service.storage;
    let size = headers.get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse().ok());
    let limit = if key.kind == Kind::Action { MAX_ACTION_RESULT } else { storage.max_blob() };
    if size.is_some_and(|size: u64| size > limit) {
        return Err(StorageError::TooLarge { limit }.into());
    }
    let received = &service.metrics.received;
    let mut body = body.inspect_ok(|piece: &Bytes| {
        received.inc_by(piece.len() as u64);
    });
    match key.kind {
        Kind::Action => {
            let result = actions::collect(&mut body, limit).await.map_err(Failure::BrokenOff)??;
            actions::keep(storage, key.digest, result).await?;
        }
        Kind::Blob => {
            let mut upload = Upload::blob(storage, key.digest, size, false).await?;
            while let Some(piece) = body.try_next().await.map_err(Failure::BrokenOff)? {
                upload.push(piece).await?;
            }
            upload.finish().await?;
        }
    }
    Ok(StatusCode::CREATED.into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_foundation::Digest;

    #[test]
    fn entries_lie_below_any_path() {
        let digest = Digest::of(b"");
        for path in ["/cas/", "/cache/cas/", "/a/b/c/cas/", "//cas/"] {
            assert_eq!(key(&format!("{path}{digest}")), Some(Key { kind: Kind::Blob, digest }));
        }
        assert_eq!(key(&format!("/ac/{digest}")), Some(Key { kind: Kind::Action, digest }));
        let wrong = ["/", "", "/ac", "/ac/", "/ac/abc", "/ac/../../etc/passwd", "/ac/%2e%2e"];
        for path in wrong.map(str::to_owned).into_iter().chain([
            format!("ac/{digest}"),
            format!("/xac/{digest}"),
            format!("/ac/{digest}/"),
            format!("/ac/{digest}0"),
            format!("/ac/x/{digest}"),
        ]) {
            assert_eq!(key(&path), None, "{path}");
        }
    }
}
