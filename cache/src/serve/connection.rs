//! Connections: no more than a number, and none that neither sends nor takes anything for long.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum_server::accept::Accept;
use prometheus_client::metrics::gauge::Gauge;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Lets connections in.
#[derive(Clone)]
pub(crate) struct Door {
    /// How many may be open at once.
    pub permits: Arc<Semaphore>,
    /// How many are.
    pub open: Gauge,
    /// How long a connection may neither send nor take anything.
    pub idle: Duration,
    /// How long a connection waits for one of the others to end.
    pub wait: Duration,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Door {
    type Stream = Watched<TcpStream>;
    type Service = S;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, S)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Self { permits, open, idle, wait } = self.clone();
        Box::pin(async move {
            let permit = tokio::time::timeout(wait, permits.acquire_owned()).await;
            let permit = permit.map_err(|_| io::ErrorKind::TimedOut)?.map_err(io::Error::other)?;
            // Small answers go out at once; where that cannot be set they take longer.
            let _ = stream.set_nodelay(true);
            Ok((Watched::new(stream, idle, Open::new(permit, open)), service))
        })
    }
}

/// Counts an open connection.
struct Open {
    _permit: OwnedSemaphorePermit,
    open: Gauge,
}

impl Open {
    fn new(permit: OwnedSemaphorePermit, open: Gauge) -> Self {
        open.inc();
        Self { _permit: permit, open }
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.open.dec();
    }
}

/// A connection that fails when for some time nothing went in or out.
pub(crate) struct Watched<S> {
    stream: S,
    idle: Duration,
    deadline: Pin<Box<Sleep>>,
    _open: Open,
}

impl<S> Watched<S> {
    fn new(stream: S, idle: Duration, open: Open) -> Self {
        Self { stream, idle, deadline: Box::pin(tokio::time::sleep(idle)), _open: open }
    }

    /// Something moved, or the time is counted.
    fn watch<T>(&mut self, context: &mut Context<'_>, poll: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.deadline.as_mut().reset(Instant::now() + self.idle);
            return poll;
        }
        match self.deadline.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let poll = pin!(&mut self.stream).poll_read(context, buffer);
        self.watch(context, poll)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let poll = pin!(&mut self.stream).poll_write(context, bytes);
        self.watch(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let poll = pin!(&mut self.stream).poll_write_vectored(context, bytes);
        self.watch(context, poll)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        pin!(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let poll = pin!(&mut self.stream).poll_shutdown(context);
        self.watch(context, poll)
    }
}
