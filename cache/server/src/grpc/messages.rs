//! Memory and time limits of messages, across all clients.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use tonic::Status;

use super::methods::{Kind, Method, method};
use super::outcome;
use crate::access::Pass;
use crate::held::Held;
use crate::metrics::Protocol;
use crate::pace::{PIECE, paced};
use crate::room::{Full, Place, Room};
use crate::{ServeOptions, Service};

/// Maximum number of concurrent batches. Each takes twice the size of its message.
const BATCHES: usize = 8;

/// Memory for messages, and their time limits.
#[derive(Clone)]
pub(super) struct Messages {
    service: Arc<Service>,
    batches: Room,
    /// Limit for a short one.
    short: Duration,
    /// Limit for a long one.
    long: Duration,
}

impl Messages {
    pub fn new(service: Arc<Service>, options: &ServeOptions) -> Self {
        let batches = Room::new(BATCHES, options.header_timeout);
        Self { service, batches, short: options.header_timeout, long: options.idle_timeout }
    }

    /// The permit that a request of this kind needs from its start.
    async fn begin(&self, kind: Kind, pass: Pass) -> Result<Option<Place>, Full> {
        match kind {
            Kind::Question | Kind::Message => Ok(None),
            Kind::Batch => self.batches.take(1, pass).await.map(Some),
            Kind::Download | Kind::Upload => self.service.transfers.take(1, pass).await.map(Some),
        }
    }
}

/// Receives the messages of a request within the memory and time limits.
pub(super) async fn take_in(
    State(messages): State<Messages>,
    Extension(pass): Extension<Pass>,
    request: Request,
    next: Next,
) -> Response {
    let Some(method) = method(request.uri().path()) else { return next.run(request).await };
    let begun = match messages.begin(method.kind, pass).await {
        Ok(begun) => begun,
        Err(full) => {
            let status = Status::from(full);
            messages.service.metrics.count(Protocol::grpc, method.wanted, outcome(&status));
            return status.into_http();
        }
    };
    let (piece, time) = match method.kind {
        Kind::Question | Kind::Download => (u64::MAX, messages.short),
        Kind::Message | Kind::Batch => (u64::MAX, messages.long),
        Kind::Upload => (PIECE, messages.long),
    };
    let message = Shared::default();
    let request = request.map(|body| {
        let body = paced(body, piece, time);
        // A batch already has its permit.
        if method.kind == Kind::Batch {
            return body;
        }
        let room = messages.service.messages.clone();
        metered(body, Meter { room, pass, method, place: message.clone(), head: Vec::new(), left: 0 })
    });
    let places = (begun, message);
    let response = next.run(request).await;
    response.map(|body| match method.kind {
        Kind::Download => Body::new(Held::until_end(body, places)),
        _ => Body::new(Held::until_small(body, places)),
    })
}

/// The permit of a message, released when the next one arrives or the answer is sent.
type Shared = Arc<Mutex<Option<Place>>>;

/// Parser of message frames in a body: each message is prefixed by its length.
struct Meter {
    room: Room,
    pass: Pass,
    method: &'static Method,
    place: Shared,
    /// The received part of the five-byte prefix of a message.
    head: Vec<u8>,
    /// Remaining bytes of the message.
    left: usize,
}

impl Meter {
    /// Waits for memory for the largest message that starts in `bytes`.
    async fn take_in(&mut self, mut bytes: &[u8]) -> Result<(), Full> {
        let mut largest = None;
        while !bytes.is_empty() {
            if self.left > 0 {
                let length = self.left.min(bytes.len());
                self.left -= length;
                bytes = &bytes[length..];
                continue;
            }
            let (head, rest) = bytes.split_at(bytes.len().min(5 - self.head.len()));
            self.head.extend_from_slice(head);
            bytes = rest;
            if let [_, a, b, c, d] = self.head[..] {
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.head.clear();
                largest = largest.max(Some(self.left));
            }
        }
        // A message over the size limit is refused for that reason, and not read.
        let Some(length) = largest.filter(|length| *length <= self.method.limit) else { return Ok(()) };
        self.set(None);
        let units = (length as u32).saturating_mul(self.method.growth());
        let place = self.room.take(units, self.pass).await?;
        self.set(Some(place));
        Ok(())
    }

    fn set(&self, place: Option<Place>) {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }
}

/// The body, pausing for memory at the start of each message.
fn metered(body: Body, meter: Meter) -> Body {
    let start = (body.into_data_stream(), meter);
    Body::from_stream(stream::try_unfold(start, |(mut pieces, mut meter)| async move {
        let Some(bytes) = pieces.next().await.transpose()? else { return Ok(None) };
        meter.take_in(&bytes).await.map_err(|full| axum::Error::new(Status::from(full)))?;
        Ok::<_, axum::Error>(Some((bytes, (pieces, meter))))
    }))
}
