//! The cache server: Bazel's simple http cache and the Remote Execution API on one port.
//!
//! It is independent of Sheaf's programs: entries of the action cache are `ActionResult`s, blobs are bytes. Bazel and
//! other clients can use it as well. Readers decide if they trust an entry, by its signature.
//!
//! | file | contents |
//! |---|---|
//! | `storage/` | the folder: files, their order of use, eviction |
//! | `actions.rs` | entries of the action cache, returned only while all their blobs exist |
//! | `http.rs` | `/ac/`, `/cas/`, `/status`, `/metrics` |
//! | `grpc/` | Capabilities, `ActionCache`, CAS, `ByteStream` |
//! | `tokens.rs`, `access.rs`, `entrance.rs` | read and write permissions, checked before a body is read |
//! | `lobby.rs`, `connection.rs` | limits on connections, and on their time without an admitted request |
//! | `room.rs`, `pace.rs`, `held.rs` | limits on memory, and on the rate of transfers |
//! | `wire.rs` | the digests in messages, without decoding them |
//!
//! ```no_run
//! use sheaf_cache_server::{ServeOptions, serve};
//!
//! let mut options = ServeOptions::new(([127, 0, 0, 1], 9092).into(), "/var/cache/programs");
//! options.tokens = Some("tokens.txt".into());
//! serve(&options, |event| eprintln!("{event}"))?;
//! # Ok::<(), sheaf_cache_server::ServeError>(())
//! ```

mod access;
mod actions;
mod connection;
mod entrance;
mod error;
mod grpc;
mod held;
mod http;
mod lobby;
mod metrics;
mod options;
mod pace;
mod room;
mod storage;
mod tls;
mod tokens;
mod wire;

use std::future::Future;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use axum_server::accept::Accept;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use axum_server::{Handle, Server as HttpServer};
use hyper_util::rt::TokioTimer;

use access::Gate;
use connection::Door;
use lobby::Lobby;
use metrics::Metrics;
use room::Room;
use storage::Storage;
use tokens::Tokens;

pub use error::ServeError;
pub use options::{ServeOptions, TlsFiles};

/// Event of a running server; displayed as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Event {
    /// The server listens.
    #[error("serving at {url}")]
    Listening {
        /// The URL.
        url: String,
    },
    /// Reachable from other machines without encryption.
    #[error(
        "warning: nothing is encrypted, so whoever is on the way can read tokens and change programs; give --tls-cert and \
         --tls-key, or let a proxy with TLS alone reach this address"
    )]
    InTheClear,
    /// Anyone who can reach it may write.
    #[error(
        "warning: there are no tokens, so everybody who reaches this address can read, write and fill the disk"
    )]
    ForEveryone,
    /// The token file was reloaded.
    #[error("read {count} tokens anew")]
    TokensRead {
        /// Number of tokens.
        count: usize,
    },
    /// The reloaded token file is malformed, so the previous tokens remain valid.
    #[error("the tokens stay as they were: {error}")]
    TokensKept {
        /// The defect.
        error: ServeError,
    },
    /// A shutdown was requested.
    #[error("stopping; requests under way are finished")]
    Stopping,
}

/// State shared by all requests.
struct Service {
    storage: Storage,
    gate: Gate,
    metrics: Metrics,
    /// Concurrent blob transfers.
    transfers: Room,
    /// Memory of messages, in bytes.
    messages: Room,
    /// Longest pause within a request.
    idle: Duration,
}

/// Maximum number of concurrent blob transfers; each takes a quarter of a megabyte of memory.
const TRANSFERS: usize = 512;

/// Maximum memory of all messages except those with blobs, in bytes.
const MESSAGES: usize = 64 * 1024 * 1024;

/// A server that listens, and does not answer yet.
pub struct Server {
    options: ServeOptions,
    service: Arc<Service>,
    listener: TcpListener,
    address: SocketAddr,
    tls: Option<RustlsConfig>,
}

impl Server {
    /// Opens the folder, reads tokens and certificate, and starts listening. Connections wait until [`run`](Self::run).
    pub fn bind(options: &ServeOptions) -> Result<Self, ServeError> {
        options.check()?;
        let tokens = options.tokens.as_deref().map(Tokens::read).transpose()?;
        let tls = options.tls.as_ref().map(tls::config).transpose()?;
        let storage = Storage::open(&options.folder, options.capacity, options.max_blob)?;
        let listen = |source| ServeError::Listen { address: options.listen, source };
        let listener = TcpListener::bind(options.listen).map_err(listen)?;
        listener.set_nonblocking(true).map_err(listen)?;
        let address = listener.local_addr().map_err(listen)?;
        let gate = Gate::new(tokens, options.anonymous_read);
        let service = Service {
            storage,
            gate,
            metrics: Metrics::new(),
            transfers: Room::new(TRANSFERS, options.header_timeout),
            messages: Room::new(MESSAGES, options.header_timeout),
            idle: options.idle_timeout,
        };
        Ok(Self { options: options.clone(), service: service.into(), listener, address, tls })
    }

    /// The address it listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves. Requests in progress are then completed within the limit of the options.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<(), ServeError> {
        let Self { options, service, listener, tls, .. } = self;
        let open = service.metrics.connections.clone();
        let lobby = Lobby::new(options.max_connections, options.header_timeout, open);
        let door = Door { lobby, idle: options.idle_timeout, stay: options.header_timeout };
        let server = axum_server::from_tcp(listener).map_err(ServeError::System)?;
        match tls {
            None => answer(server.acceptor(door), &options, service, stop).await,
            Some(config) => {
                let acceptor = RustlsAcceptor::new(config).handshake_timeout(options.header_timeout);
                answer(server.acceptor(acceptor.acceptor(door)), &options, service, stop).await
            }
        }
    }
}

/// Serves connections of `server`.
async fn answer<A>(
    mut server: HttpServer<SocketAddr, A>,
    options: &ServeOptions,
    service: Arc<Service>,
    stop: impl Future<Output = ()>,
) -> Result<(), ServeError>
where
    A: Accept<tokio::net::TcpStream, Router> + Clone + Send + Sync + 'static,
    A::Stream: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send,
    A::Service: axum_server::service::SendService<axum::http::Request<hyper::body::Incoming>> + Send,
    A::Future: Send,
{
    /// Maximum memory of one request's unread data.
    const WINDOW: u32 = 256 * 1024;
    /// Maximum size of a request's head.
    const HEAD: u32 = 32 * 1024;
    let builder = server.http_builder();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(2 * HEAD as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(2 * WINDOW)
        .max_send_buf_size(64 * 1024)
        .max_concurrent_streams(64)
        .max_header_list_size(HEAD);
    let router = Router::new().route("/status", get(http::status)).route("/metrics", get(http::metrics));
    let router = grpc::routes(router, &service, options).fallback(http::entry);
    let router = router.layer(from_fn_with_state(service.clone(), entrance::enter)).with_state(service);
    let handle = Handle::new();
    let serving = server.handle(handle.clone()).serve(router.into_make_service());
    let mut serving = std::pin::pin!(serving);
    tokio::select! {
        ended = &mut serving => return ended.map_err(ServeError::System),
        () = stop => handle.graceful_shutdown(Some(options.stop_timeout)),
    }
    serving.await.map_err(ServeError::System)
}

/// Runs a server until Ctrl-C or SIGTERM. SIGHUP reloads the tokens. `report` is called for each event.
pub fn serve(
    options: &ServeOptions,
    report: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), ServeError> {
    let server = Server::bind(options)?;
    // Threads hold memory of their own, and a few of them saturate disk and network.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .max_blocking_threads(64)
        .enable_all()
        .build();
    runtime.map_err(ServeError::System)?.block_on(async {
        let report = Arc::new(report);
        // Registered before the server is announced, so that an immediate signal is handled.
        let stop = asked_to_end().map_err(ServeError::System)?;
        #[cfg(unix)]
        server.reread_tokens(report.clone()).map_err(ServeError::System)?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        report(Event::Listening { url: format!("{scheme}://{}", server.address()) });
        if !options.is_local() && options.tls.is_none() {
            report(Event::InTheClear);
        }
        if options.everyone {
            report(Event::ForEveryone);
        }
        let stopped = async {
            stop.await;
            report(Event::Stopping);
        };
        server.run(stopped).await
    })
}

impl Server {
    /// Reloads the tokens at each SIGHUP. A malformed file changes nothing.
    #[cfg(unix)]
    fn reread_tokens(&self, report: Arc<impl Fn(Event) + Send + Sync + 'static>) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let (service, path) = (self.service.clone(), self.options.tokens.clone());
        let mut asked = signal(SignalKind::hangup())?;
        tokio::spawn(async move {
            while asked.recv().await.is_some() {
                let Some(path) = path.clone() else { continue };
                let (service, report) = (service.clone(), report.clone());
                let reread = tokio::task::spawn_blocking(move || {
                    let event = match Tokens::read(&path) {
                        Ok(tokens) => {
                            let count = tokens.len();
                            service.gate.replace(tokens);
                            Event::TokensRead { count }
                        }
                        Err(error) => Event::TokensKept { error },
                    };
                    report(event);
                });
                // The next signal is handled even after a failure: a revoked token must not stay valid.
                let _ = reread.await;
            }
        });
        Ok(())
    }
}

/// Resolves when a shutdown is requested.
#[cfg(unix)]
fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => (),
            _ = terminate.recv() => (),
        }
    })
}

/// Resolves when a shutdown is requested.
#[cfg(not(unix))]
fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
