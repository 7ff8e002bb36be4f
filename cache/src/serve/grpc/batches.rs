//! No more than some messages with blobs in memory at once, however many clients there are, and none of them for long.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use futures_util::{StreamExt as _, stream};
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout, timeout_at};
use tonic::Status;

use super::outcome;
use crate::serve::metrics::{Protocol, Request as Wanted};
use crate::serve::storage::FRAME;
use crate::serve::tokens::Role;
use crate::serve::{ServeOptions, Service};

/// How many batches are read or written at once. Each takes twice the size of its message.
const AT_ONCE: usize = 8;

/// Answers up to this size do not keep others waiting while they are sent, in bytes.
const SMALL: usize = 2 * FRAME;

/// The turns.
#[derive(Clone)]
pub(super) struct Batches {
    service: Arc<Service>,
    turns: Arc<Semaphore>,
    /// How long a batch waits for its turn.
    wait: Duration,
    /// How long its message may take.
    length: Duration,
}

impl Batches {
    pub fn new(service: Arc<Service>, options: &ServeOptions) -> Self {
        let turns = Semaphore::new(AT_ONCE).into();
        Self { service, turns, wait: options.header_timeout, length: options.idle_timeout }
    }
}

/// Lets a batch wait for its turn, before its message is taken in. Those who may not send it need not wait.
pub(super) async fn wait(State(batches): State<Batches>, request: Request, next: Next) -> Response {
    let Batches { service, turns, wait, length } = batches;
    let (wanted, role, is_batch) = match request.uri().path().rsplit('/').next() {
        Some("BatchUpdateBlobs") => (Wanted::blob_write, Role::Write, true),
        Some("BatchReadBlobs") => (Wanted::blob_read, Role::Read, true),
        Some("FindMissingBlobs") => (Wanted::blob_find, Role::Read, false),
        _ => (Wanted::other, Role::Read, false),
    };
    let refuse = |status: Status| {
        service.metrics.count(Protocol::grpc, wanted, outcome(&status));
        status.into_http()
    };
    if let Err(denial) = service.gate.check(request.headers(), role) {
        return refuse(denial.into());
    }
    if !is_batch {
        return next.run(request).await;
    }
    let Ok(Ok(turn)) = timeout(wait, turns.acquire_owned()).await else {
        return refuse(Status::unavailable("too many batches are under way: try again later"));
    };
    let request = request.map(|body| within(length, body));
    next.run(request).await.map(|body| Body::new(Held { body, rest: Bytes::new(), turn: Some(turn) }))
}

/// The body, which has to be there after this time: its turn is somebody else's too.
fn within(length: Duration, body: Body) -> Body {
    let end = Instant::now() + length;
    let pieces = stream::try_unfold(body.into_data_stream(), move |mut pieces| async move {
        match timeout_at(end, pieces.next()).await {
            Ok(piece) => Ok(piece.transpose()?.map(|piece| (piece, pieces))),
            Err(_) => {
                let message = format!("the batch did not come within {} s", length.as_secs_f64());
                Err(axum::Error::new(Status::deadline_exceeded(message)))
            }
        }
    });
    Body::from_stream(pieces)
}

/// A body that keeps its turn until it was sent. It is given out in small pieces: one large one would be taken as it is, and lie
/// in memory until the client has room for it.
struct Held {
    body: Body,
    rest: Bytes,
    turn: Option<OwnedSemaphorePermit>,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            match pin!(&mut self.body).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(data) => {
                        if data.len() <= SMALL {
                            self.turn = None;
                        }
                        self.rest = data;
                    }
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return other,
            }
        }
        let length = self.rest.len().min(FRAME);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(length)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }
}
