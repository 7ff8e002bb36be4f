//! Minimum transfer rate of bodies.

use std::time::Duration;

use axum::body::Body;
use futures_util::{StreamExt as _, stream};
use tokio::time::{Instant, timeout_at};
use tonic::Status;

/// Part of a long body that must arrive within the idle timeout, in bytes.
pub(super) const PIECE: u64 = 64 * 1024;

/// The body, of which each `piece` bytes, or the rest, must arrive within `time`.
pub(super) fn paced(body: Body, piece: u64, time: Duration) -> Body {
    let start = (body.into_data_stream(), Instant::now() + time, 0);
    let pieces = stream::try_unfold(start, move |(mut pieces, mut end, mut come)| async move {
        let Ok(next) = timeout_at(end, pieces.next()).await else {
            let message = format!("the request did not come within {} s", time.as_secs_f64());
            return Err(axum::Error::new(Status::deadline_exceeded(message)));
        };
        let Some(bytes) = next.transpose()? else { return Ok(None) };
        come += bytes.len() as u64;
        if come >= piece {
            come = 0;
            end = Instant::now() + time;
        }
        Ok(Some((bytes, (pieces, end, come))))
    });
    Body::from_stream(pieces)
}
