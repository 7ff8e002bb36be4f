//! No more than some messages with blobs in memory at once, however many clients there are.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::Frame;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tonic::Status;

use crate::serve::Service;
use crate::serve::storage::FRAME;
use crate::serve::tokens::Role;

/// How many batches are read or written at once. Each takes twice the size of its message.
const AT_ONCE: usize = 8;

/// Answers up to this size do not keep others waiting while they are sent, in bytes.
const SMALL: usize = 2 * FRAME;

/// The turns.
#[derive(Clone)]
pub(super) struct Batches {
    service: Arc<Service>,
    turns: Arc<Semaphore>,
}

impl Batches {
    pub fn new(service: Arc<Service>) -> Self {
        Self { service, turns: Semaphore::new(AT_ONCE).into() }
    }
}

/// Lets a batch wait for its turn, before its message is taken in. Those who may do nothing here need not wait.
pub(super) async fn wait(State(batches): State<Batches>, request: Request, next: Next) -> Response {
    if let Err(denial) = batches.service.gate.check(request.headers(), Role::Read) {
        return Status::from(denial).into_http();
    }
    if !request.uri().path().contains("/Batch") {
        return next.run(request).await;
    }
    let Ok(turn) = batches.turns.acquire_owned().await else {
        return Status::unavailable("the server is stopping").into_http();
    };
    next.run(request).await.map(|body| Body::new(Held { body, rest: Bytes::new(), turn: Some(turn) }))
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
