//! Connections and their time limits: idle time, and time before the first admitted request.

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::Extension;
use axum_server::accept::Accept;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};
use tower::Layer as _;

use super::lobby::{Guest, Lobby, PutOut};

/// Admits connections to the lobby.
#[derive(Clone)]
pub(crate) struct Door {
    pub lobby: Lobby,
    /// Maximum idle time of a connection.
    pub idle: Duration,
    /// Maximum time of a connection in the lobby.
    pub stay: Duration,
}

impl<S: Send + 'static> Accept<TcpStream, S> for Door {
    type Stream = Watched<TcpStream>;
    type Service = <Extension<Arc<Guest>> as tower::Layer<S>>::Service;
    type Future = Pin<Box<dyn Future<Output = io::Result<(Self::Stream, Self::Service)>> + Send>>;

    fn accept(&self, stream: TcpStream, service: S) -> Self::Future {
        let Self { lobby, idle, stay } = self.clone();
        Box::pin(async move {
            // A connection that has ended has no peer address.
            let entered = lobby.enter(stream.peer_addr()?.ip()).await;
            let (guest, put_out) = entered.ok_or(io::ErrorKind::ConnectionRefused)?;
            // Small answers are sent at once; without `TCP_NODELAY` they only take longer.
            let _ = stream.set_nodelay(true);
            let deadline = Box::pin(sleep(idle));
            let stay = Some((put_out, Box::pin(sleep(stay))));
            let stream = Watched { stream, idle, deadline, stay, _guest: guest.clone() };
            Ok((stream, Extension(guest).layer(service)))
        })
    }
}

/// A connection that fails when it is idle too long, or evicted from the lobby.
pub(crate) struct Watched<S> {
    stream: S,
    idle: Duration,
    deadline: Pin<Box<Sleep>>,
    /// `Some` while in the lobby.
    stay: Option<(PutOut, Pin<Box<Sleep>>)>,
    _guest: Arc<Guest>,
}

impl<S> Watched<S> {
    /// Errors if the connection has to close.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        let Some((put_out, end)) = &mut self.stay else { return Ok(()) };
        match pin!(put_out).poll(context) {
            Poll::Ready(Ok(())) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Ready(Err(_)) => {
                self.stay = None;
                Ok(())
            }
            Poll::Pending if end.as_mut().poll(context).is_ready() => Err(io::ErrorKind::TimedOut.into()),
            Poll::Pending => Ok(()),
        }
    }

    /// Resets the idle timer on progress, and checks it otherwise.
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
        self.check(context)?;
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
        self.check(context)?;
        let poll = pin!(&mut self.stream).poll_write(context, bytes);
        self.watch(context, poll)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
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
