//! An in-process server of the Remote Execution API with injected faults that real servers have rarely.

mod actions;
mod blobs;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard};

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::build::bazel::remote::execution::v2::action_cache_server::ActionCacheServer;
use bazel_remote_apis::build::bazel::remote::execution::v2::capabilities_server::CapabilitiesServer;
use bazel_remote_apis::build::bazel::remote::execution::v2::content_addressable_storage_server::ContentAddressableStorageServer;
use bazel_remote_apis::build::bazel::remote::execution::v2::execution_server::ExecutionServer;
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStreamServer;
use sheaf_foundation::Digest;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Identity, ServerTlsConfig};
use tonic::{Request, Status};

/// A fault, injected at the next occasion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// An upload breaks off after this many bytes, which are kept.
    WriteBreaks(usize),
    /// The same, and the server loses the upload.
    WriteForgotten(usize),
    /// A download breaks off after this many bytes.
    ReadBreaks(usize),
    /// No answer, ever.
    Hangs,
    /// A download has these bytes instead.
    ReadsAs(Vec<u8>),
    /// An answer to an execution ends before it is done.
    ExecutionBreaks,
    /// The same, and the server loses the operation.
    ExecutionForgotten,
    /// An input is lost between its upload and the execution.
    LosesInput,
}

/// The server's state.
#[derive(Default)]
pub struct State {
    pub capabilities: api::ServerCapabilities,
    pub blobs: BTreeMap<String, Vec<u8>>,
    pub results: BTreeMap<String, api::ActionResult>,
    /// Uploaded bytes by resource name.
    pub uploads: BTreeMap<String, Vec<u8>>,
    pub faults: VecDeque<Fault>,
    /// The calls in order: method and main argument.
    pub calls: Vec<String>,
    /// The header required of every call.
    pub authorization: Option<String>,
    /// The response of an execution, and the named operations.
    pub executions: BTreeMap<String, api::ExecuteResponse>,
}

#[derive(Clone)]
pub struct Fake {
    state: Arc<Mutex<State>>,
    pub port: u16,
}

impl Fake {
    /// Starts a server that stops with the runtime.
    pub fn start(change: impl FnOnce(&mut State)) -> Self {
        Self::start_with(0, None, change)
    }

    /// Starts a server on a port, or a free one for 0, with TLS if there is an identity.
    pub fn start_with(port: u16, identity: Option<Identity>, change: impl FnOnce(&mut State)) -> Self {
        let listener = TcpListener::bind(("127.0.0.1", port)).expect("a loopback port");
        listener.set_nonblocking(true).expect("not blocking");
        let port = listener.local_addr().expect("an address").port();
        let mut state = State { capabilities: capabilities(), ..State::default() };
        change(&mut state);
        let fake = Self { state: Arc::new(Mutex::new(state)), port };
        let incoming = TcpIncoming::from(tokio::net::TcpListener::from_std(listener).expect("a listener"));
        let mut server = tonic::transport::Server::builder();
        if let Some(identity) = identity {
            server = server.tls_config(ServerTlsConfig::new().identity(identity)).expect("a certificate");
        }
        let router = server
            .add_service(CapabilitiesServer::new(fake.clone()))
            .add_service(ActionCacheServer::new(fake.clone()))
            .add_service(
                ContentAddressableStorageServer::new(fake.clone()).max_decoding_message_size(16 << 20),
            )
            .add_service(ByteStreamServer::new(fake.clone()))
            .add_service(ExecutionServer::new(fake.clone()));
        tokio::spawn(router.serve_with_incoming(incoming));
        fake
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic before")
    }

    /// Takes the next fault, if it is one of those that `fits`.
    fn fault(&self, fits: impl Fn(&Fault) -> bool) -> Option<Fault> {
        let mut state = self.state();
        if state.faults.front().is_some_and(fits) { state.faults.pop_front() } else { None }
    }

    /// Records a call, and refuses it without the header.
    async fn called<T>(&self, call: &str, request: &Request<T>) -> Result<(), Status> {
        {
            let mut state = self.state();
            state.calls.push(call.to_owned());
            let sent = request
                .metadata()
                .get("authorization")
                .map(|value| value.to_str().unwrap_or_default().to_owned());
            if let Some(wanted) = &state.authorization
                && sent.as_ref() != Some(wanted)
            {
                return Err(Status::unauthenticated(format!(
                    "{} is not the token",
                    sent.unwrap_or_default()
                )));
            }
        }
        if self.fault(|fault| *fault == Fault::Hangs).is_some() {
            std::future::pending::<()>().await;
        }
        Ok(())
    }
}

/// A server with all capabilities, and batches of blobs up to 1 MB.
fn capabilities() -> api::ServerCapabilities {
    let zstd = i32::from(api::compressor::Value::Zstd);
    api::ServerCapabilities {
        cache_capabilities: Some(api::CacheCapabilities {
            digest_functions: vec![api::digest_function::Value::Sha256.into()],
            action_cache_update_capabilities: Some(api::ActionCacheUpdateCapabilities {
                update_enabled: true,
            }),
            max_batch_total_size_bytes: 1_000_000,
            supported_compressors: vec![zstd],
            supported_batch_update_compressors: vec![zstd],
            ..Default::default()
        }),
        execution_capabilities: Some(api::ExecutionCapabilities { exec_enabled: true, ..Default::default() }),
        ..Default::default()
    }
}

/// A server without compression.
pub fn plain(state: &mut State) {
    let cache = state.capabilities.cache_capabilities.as_mut().expect("a cache");
    cache.supported_compressors.clear();
    cache.supported_batch_update_compressors.clear();
}

fn hash(bytes: &[u8]) -> String {
    Digest::of(bytes).to_string()
}
