//! Helpers for the tests of the server.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use prost::Message as _;
use reapi::action_cache_client::ActionCacheClient;
use reapi::capabilities_client::CapabilitiesClient;
use reapi::content_addressable_storage_client::ContentAddressableStorageClient;
use reqwest::{RequestBuilder, StatusCode};
use sheaf_cache_server::{ServeError, ServeOptions, Server};
use sheaf_foundation::Digest;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tonic::transport::Channel;

/// An in-process server, on a folder and a port of its own.
pub struct Serving {
    pub address: String,
    pub folder: TempDir,
    pub http: reqwest::Client,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Result<(), ServeError>>,
}

impl Serving {
    /// A server without tokens.
    pub fn start() -> Self {
        Self::with(|_| ())
    }

    /// A server with changed options.
    pub fn with(change: impl FnOnce(&mut ServeOptions)) -> Self {
        Self::on(tempfile::tempdir().unwrap(), change)
    }

    /// A server on an existing folder.
    pub fn on(folder: TempDir, change: impl FnOnce(&mut ServeOptions)) -> Self {
        let mut options = options(folder.path());
        change(&mut options);
        let server = Server::bind(&options).unwrap();
        let address = server.address().to_string();
        let (stop, stopped) = oneshot::channel();
        let ended = tokio::spawn(server.run(async { drop(stopped.await) }));
        Self { address, folder, http: client(), stop: Some(stop), ended }
    }

    /// The address of `path`.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}/{path}", self.address)
    }

    pub fn get(&self, path: &str) -> RequestBuilder {
        self.http.get(self.url(path))
    }

    pub fn put(&self, path: &str, body: impl Into<reqwest::Body>) -> RequestBuilder {
        self.http.put(self.url(path)).body(body)
    }

    /// Uploads a blob; returns its digest.
    pub async fn put_blob(&self, bytes: &[u8]) -> Digest {
        let digest = Digest::of(bytes);
        let response = self.put(&format!("cas/{digest}"), bytes.to_vec()).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::CREATED);
        digest
    }

    /// The status of a `GET`.
    pub async fn status(&self, path: &str) -> u16 {
        self.get(path).send().await.unwrap().status().as_u16()
    }

    /// The bytes of a `GET` that succeeds.
    pub async fn bytes(&self, path: &str) -> Vec<u8> {
        let response = self.get(path).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK, "{path}");
        response.bytes().await.unwrap().to_vec()
    }

    /// A number in `/status`.
    pub async fn number(&self, name: &str) -> u64 {
        let status: serde_json::Value = serde_json::from_slice(&self.bytes("status").await).unwrap();
        status[name].as_u64().unwrap()
    }

    pub async fn channel(&self) -> Channel {
        Channel::from_shared(format!("http://{}", self.address)).unwrap().connect().await.unwrap()
    }

    pub async fn clients(&self) -> Clients {
        Clients::over(self.channel().await)
    }

    /// Requests a shutdown.
    pub fn ask_to_stop(&mut self) {
        let _ = self.stop.take().unwrap().send(());
    }

    /// Stops the server and returns its folder.
    pub async fn stop(mut self) -> TempDir {
        if self.stop.is_some() {
            self.ask_to_stop();
        }
        // Closes keep-alive connections.
        drop(self.http);
        self.ended.await.unwrap().unwrap();
        self.folder
    }
}

/// Options for tests: a free port of this machine, a hundred megabytes.
pub fn options(folder: &Path) -> ServeOptions {
    let mut options = ServeOptions::new(([127, 0, 0, 1], 0).into(), folder);
    options.capacity = 100_000_000;
    options
}

/// An http client without a proxy.
pub fn client() -> reqwest::Client {
    install_provider();
    reqwest::Client::builder().no_proxy().build().unwrap()
}

/// The clients use the process's TLS provider.
pub fn install_provider() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// All gRPC clients on one connection.
pub struct Clients {
    pub actions: ActionCacheClient<Channel>,
    pub cas: ContentAddressableStorageClient<Channel>,
    pub stream: ByteStreamClient<Channel>,
    pub capabilities: CapabilitiesClient<Channel>,
}

impl Clients {
    pub fn over(channel: Channel) -> Self {
        Self {
            actions: ActionCacheClient::new(channel.clone()),
            cas: ContentAddressableStorageClient::new(channel.clone()).max_decoding_message_size(8 << 20),
            stream: ByteStreamClient::new(channel.clone()),
            capabilities: CapabilitiesClient::new(channel),
        }
    }
}

/// The digest of `bytes` as a message.
pub fn digest(bytes: &[u8]) -> reapi::Digest {
    reapi::Digest { hash: Digest::of(bytes).to_string(), size_bytes: bytes.len() as i64 }
}

/// An action result with one file with `bytes`.
pub fn result(bytes: &[u8]) -> reapi::ActionResult {
    let file =
        reapi::OutputFile { path: "main.vmfb".into(), digest: Some(digest(bytes)), ..Default::default() };
    reapi::ActionResult { output_files: vec![file], stdout_raw: b"claim".to_vec(), ..Default::default() }
}

/// The same, encoded.
pub fn encoded(bytes: &[u8]) -> Vec<u8> {
    result(bytes).encode_to_vec()
}

/// Incompressible bytes, determined by the seed.
pub fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 24) as u8
    };
    (0..length).map(|_| next()).collect()
}

/// Compressible bytes, determined by the seed.
pub fn text(length: usize, seed: u64) -> Vec<u8> {
    (0..).flat_map(|line| format!("line {line} of {seed}\n").into_bytes()).take(length).collect()
}

/// All files below a folder.
pub fn files(folder: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in std::fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.push(path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// This test program as a child process that runs the test `name` with `value` in the environment variable `variable`.
pub fn child(name: &str, variable: &str, value: impl AsRef<std::ffi::OsStr>) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture"]).env(variable, value);
    command.stdout(Stdio::piped()).spawn().unwrap()
}
