//! The cache server: a general one of Bazel's simple http form and of the Remote Execution API, on one port.
//!
//! It knows nothing of Sheaf's programs: entries of the action cache are `ActionResult`s, blobs are bytes. Bazel and other
//! clients can use it as well. Whether an entry can be trusted is for those to decide who read it, by its signature.
//!
//! | file | holds |
//! |---|---|
//! | `storage/` | the folder: files, their order of use, what is evicted |
//! | `actions.rs` | entries of the action cache, given out only while all their blobs are there |
//! | `http.rs` | `/ac/`, `/cas/`, `/status`, `/metrics` |
//! | `grpc/` | Capabilities, `ActionCache`, CAS, `ByteStream` |
//! | `tokens.rs`, `access.rs`, `entrance.rs` | who may read, and who may write; asked before a body is read |
//! | `lobby.rs`, `connection.rs` | how many connections, and how long they may be there without a request |
//! | `room.rs`, `pace.rs`, `held.rs` | how much is in memory at once, and how slow it may come and go |
//! | `wire.rs` | what messages name, without taking them apart |
//!
//! ```no_run
//! use sheaf_cache::serve::{ServeOptions, serve};
//!
//! let mut options = ServeOptions::new(([127, 0, 0, 1], 9092).into(), "/var/cache/programs");
//! options.tokens = Some("tokens.txt".into());
//! serve(&options, |event| eprintln!("{event}"))?;
//! # Ok::<(), sheaf_cache::serve::ServeError>(())
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

/// What a running server has to tell; shown as one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Event {
    /// It listens.
    #[error("serving at {url}")]
    Listening {
        /// Where.
        url: String,
    },
    /// Others than this machine reach it, and nothing is encrypted.
    #[error(
        "warning: nothing is encrypted, so whoever is on the way can read tokens and change programs; give --tls-cert and \
         --tls-key, or let a proxy with TLS alone reach this address"
    )]
    InTheClear,
    /// Everybody who reaches it may write.
    #[error(
        "warning: there are no tokens, so everybody who reaches this address can read, write and fill the disk"
    )]
    ForEveryone,
    /// The file of tokens was read anew.
    #[error("read {count} tokens anew")]
    TokensRead {
        /// How many there are now.
        count: usize,
    },
    /// The file of tokens is wrong, so those known before stay good.
    #[error("the tokens stay as they were: {error}")]
    TokensKept {
        /// What is wrong.
        error: ServeError,
    },
    /// It was asked to end.
    #[error("stopping; requests under way are finished")]
    Stopping,
}

/// What all requests share.
struct Service {
    storage: Storage,
    gate: Gate,
    metrics: Metrics,
    /// Blobs on their way in or out.
    transfers: Room,
    /// Memory of messages, in bytes.
    messages: Room,
    /// Longest pause within a request.
    idle: Duration,
}

/// How many blobs are on their way at once; one of them has a quarter of a megabyte in memory.
const TRANSFERS: usize = 512;

/// Most memory of all messages but those with blobs, in bytes.
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
    /// Opens the folder, reads tokens and certificate, and begins to listen. Connections wait until [`run`](Self::run).
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

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` comes. Requests under way are then finished, as long as the options allow.
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

/// Answers what comes through `server`.
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
    /// What one request may have waiting in memory.
    const WINDOW: u32 = 256 * 1024;
    /// The largest head of a request.
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

/// Runs a server until the process is asked to end, with Ctrl-C or SIGTERM. SIGHUP makes it read the tokens anew.
/// `report` is told of what happens.
pub fn serve(
    options: &ServeOptions,
    report: impl Fn(Event) + Send + Sync + 'static,
) -> Result<(), ServeError> {
    let server = Server::bind(options)?;
    // Threads keep memory for themselves, and a few of them are as fast as disk and network.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(cores.min(4))
        .max_blocking_threads(64)
        .enable_all()
        .build();
    runtime.map_err(ServeError::System)?.block_on(async {
        let report = Arc::new(report);
        // Before anybody knows of the server, so that whoever stops it at once finds it listening.
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
    /// Reads the tokens anew whenever the process gets a SIGHUP. A file that is wrong changes nothing.
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
                // Whatever became of it, the next signal counts: a token that was taken back must not stay good.
                let _ = reread.await;
            }
        });
        Ok(())
    }
}

/// Comes when the process is asked to end.
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

/// Comes when the process is asked to end.
#[cfg(not(unix))]
fn asked_to_end() -> std::io::Result<impl Future<Output = ()>> {
    Ok(async {
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    })
}
