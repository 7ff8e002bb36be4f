//! Response bodies that hold a permit until they are sent.

use std::pin::{Pin, pin};
use std::task::{Context, Poll};

use axum::body::{Body, HttpBody};
use bytes::Bytes;
use hyper::body::Frame;

use super::storage::FRAME;

/// Responses up to this size release their permit before they are sent, in bytes.
const SMALL: usize = 2 * FRAME;

/// A body that holds its permit until it is sent. It is split into small pieces: one large piece would be buffered
/// whole until the client has room for it.
pub(super) struct Held<P> {
    body: Body,
    rest: Bytes,
    place: Option<P>,
    /// True to hold the permit even if the first piece is small, since more follow.
    until_end: bool,
}

impl<P> Held<P> {
    /// Holds the permit until the end.
    pub fn until_end(body: Body, place: P) -> Self {
        Self { body, rest: Bytes::new(), place: Some(place), until_end: true }
    }

    /// Holds the permit of a body in one piece, unless that is small.
    pub fn until_small(body: Body, place: P) -> Self {
        Self { until_end: false, ..Self::until_end(body, place) }
    }
}

impl<P: Unpin> HttpBody for Held<P> {
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
                        if data.len() <= SMALL && !self.until_end {
                            self.place = None;
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
