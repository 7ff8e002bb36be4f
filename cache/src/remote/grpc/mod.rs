//! The Remote Execution API, version 2, over gRPC: action cache and content-addressed storage.
//!
//! | file | subject |
//! |---|---|
//! | `channel.rs` | address, TLS, headers; connects at the first call |
//! | `capabilities.rs` | the server's capabilities, requested once |
//! | `stream.rs` | large blobs, by `ByteStream` |
//! | `status.rs` | conversion of a server's errors |
//!
//! Small blobs are sent in batches of one call, larger ones as streams. Both are compressed with zstd if the server
//! supports it.

mod capabilities;
mod channel;
mod status;
mod stream;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::build::bazel::remote::execution::v2::action_cache_client::ActionCacheClient;
use bazel_remote_apis::build::bazel::remote::execution::v2::content_addressable_storage_client::ContentAddressableStorageClient;
use std::path::Path;

use bazel_remote_apis::google::rpc::Status;
use bytes::Bytes;
use tokio::sync::OnceCell;
use tonic::transport::Channel;
use tonic::{Code, Request};

use self::capabilities::Capabilities;
pub use self::channel::GrpcOptions;
use self::channel::Target;
use self::stream::Content;
pub(crate) use self::stream::WriteFailure;
use super::{Address, RemoteError};
use crate::reapi::{MAX_MESSAGE, address};
use sheaf_foundation::Digest;

/// Zstandard's default; higher levels do not make VMFBs smaller.
const ZSTD_LEVEL: i32 = 3;

/// Maximum number of digests per call: 10,000 take less than a megabyte.
const DIGESTS_PER_CALL: usize = 10_000;

/// Makes a call, and retries it once if the connection is broken: it may be a stale one, to a server that has
/// restarted. All calls are idempotent.
macro_rules! twice {
    ($grpc:expr, $service:ident, $method:ident, $message:expr) => {{
        let message = $message;
        // Boxed: these futures are large, and each caller holds several.
        match Box::pin($grpc.$service().await?.$method($grpc.request(message.clone()))).await {
            Err(status) if status.code() == Code::Unavailable || status::is_transport(&status) => {
                Box::pin($grpc.$service().await?.$method($grpc.request(message))).await
            }
            answer => answer,
        }
    }};
}

/// A client of one instance on one server. Sends nothing before the first call.
#[derive(Debug)]
pub struct Grpc {
    target: Box<Target>,
    channel: OnceCell<Channel>,
    capabilities: OnceCell<Capabilities>,
}

impl Grpc {
    /// The client of `address`: `grpc://HOST:PORT/INSTANCE`, or `grpcs` with TLS.
    pub fn new(address: &str, options: GrpcOptions) -> Result<Self, RemoteError> {
        let target = Box::new(Target::new(address, options)?);
        Ok(Self { target, channel: OnceCell::new(), capabilities: OnceCell::new() })
    }

    /// The address, without credentials.
    pub fn shown(&self) -> &str {
        &self.target.shown
    }

    /// The stored result of an action; `None` if there is none, or if the server knows that a blob of it is missing.
    pub async fn action_result(&self, action: Address) -> Result<Option<api::ActionResult>, RemoteError> {
        self.capabilities().await?;
        let message = api::GetActionResultRequest {
            instance_name: self.instance(),
            action_digest: Some(action.into()),
            inline_stdout: true,
            inline_stderr: false,
            inline_output_files: Vec::new(),
            digest_function: api::digest_function::Value::Sha256.into(),
        };
        match twice!(self, actions, get_action_result, message) {
            Ok(response) => Ok(Some(response.into_inner())),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(self.error(&status)),
        }
    }

    /// Stores the result of an action, whose blobs are already written.
    pub async fn set_action_result(
        &self,
        action: Address,
        result: &api::ActionResult,
    ) -> Result<(), RemoteError> {
        if !self.capabilities().await?.takes_results {
            let cause = "it takes no results of actions (update_enabled is false)".into();
            return Err(RemoteError::Refused { address: self.shown().into(), cause });
        }
        let message = api::UpdateActionResultRequest {
            instance_name: self.instance(),
            action_digest: Some(action.into()),
            action_result: Some(result.clone()),
            results_cache_policy: None,
            digest_function: api::digest_function::Value::Sha256.into(),
        };
        twice!(self, actions, update_action_result, message).map_err(|status| self.error(&status))?;
        Ok(())
    }

    /// The missing ones of `blobs`.
    pub async fn missing(&self, blobs: &[Address]) -> Result<Vec<Address>, RemoteError> {
        self.capabilities().await?;
        let mut missing = Vec::new();
        for some in blobs.chunks(DIGESTS_PER_CALL) {
            let message = api::FindMissingBlobsRequest {
                instance_name: self.instance(),
                blob_digests: some.iter().copied().map(Into::into).collect(),
                digest_function: api::digest_function::Value::Sha256.into(),
            };
            let response = twice!(self, blobs, find_missing_blobs, message);
            let response = response.map_err(|status| self.error(&status))?.into_inner();
            for digest in &response.missing_blob_digests {
                let blob = address(digest).filter(|blob| some.contains(blob));
                missing
                    .push(blob.ok_or_else(|| self.unreadable("a blob is missing that was not asked for"))?);
            }
        }
        Ok(missing)
    }

    /// The bytes of a blob, their SHA-256 checked; `None` if it is missing.
    pub async fn read(&self, blob: Address) -> Result<Option<Bytes>, RemoteError> {
        let capabilities = self.capabilities().await?;
        let bytes = if blob.size == 0 {
            Some(Bytes::new())
        } else if blob.size <= capabilities.batch {
            self.read_batch(blob, capabilities).await?
        } else {
            self.read_stream(blob, capabilities.compresses_streams).await?
        };
        bytes.map(|bytes| self.checked(blob, bytes)).transpose()
    }

    /// Stores a blob.
    pub async fn write(&self, blob: Address, bytes: Bytes) -> Result<(), RemoteError> {
        let capabilities = self.capabilities().await?;
        if blob.size <= capabilities.batch {
            return self.write_batch(blob, &bytes, capabilities).await;
        }
        let content = if capabilities.compresses_streams {
            let compressed =
                zstd::bulk::compress(&bytes, ZSTD_LEVEL).map_err(|error| self.unreadable(error))?;
            Content::Compressed(compressed.into())
        } else {
            Content::Bytes(bytes)
        };
        self.write_large(blob, &content).await.map_err(|failure| match failure {
            WriteFailure::Local(error) => self.unreadable(error),
            WriteFailure::Remote(error) => error,
        })
    }

    /// Stores a blob from a file, streamed from disk. Its size is the file's.
    pub(crate) async fn write_file(&self, blob: Address, path: &Path) -> Result<(), WriteFailure> {
        self.write_large(blob, &Content::File(path.into())).await
    }

    async fn write_large(&self, blob: Address, content: &Content) -> Result<(), WriteFailure> {
        let capabilities = self.capabilities().await.map_err(WriteFailure::Remote)?;
        if let Some(largest) = capabilities.largest.filter(|largest| blob.size > *largest) {
            let cause = format!("its limit is {largest} bytes, and one has {}", blob.size);
            return Err(WriteFailure::Remote(RemoteError::TooLarge { address: self.shown().into(), cause }));
        }
        self.write_stream(blob, content).await
    }

    async fn read_batch(
        &self,
        blob: Address,
        capabilities: &Capabilities,
    ) -> Result<Option<Bytes>, RemoteError> {
        let compressors =
            if capabilities.compresses_streams { vec![api::compressor::Value::Zstd.into()] } else { vec![] };
        let message = api::BatchReadBlobsRequest {
            instance_name: self.instance(),
            digests: vec![blob.into()],
            acceptable_compressors: compressors,
            digest_function: api::digest_function::Value::Sha256.into(),
        };
        let response = match twice!(self, blobs, batch_read_blobs, message) {
            Ok(response) => response.into_inner(),
            Err(status) if status.code() == Code::NotFound => return Ok(None),
            Err(status) => return Err(self.error(&status)),
        };
        let Some(read) = response.responses.into_iter().next() else {
            return Err(self.unreadable("no answer for the blob that was asked for"));
        };
        match code(read.status.as_ref()) {
            Code::Ok => {}
            Code::NotFound => return Ok(None),
            _ => return Err(self.inner_error(read.status.as_ref())),
        }
        if read.compressor == i32::from(api::compressor::Value::Identity) {
            return Ok(Some(read.data.into()));
        }
        if read.compressor != i32::from(api::compressor::Value::Zstd) {
            return Err(self.unreadable("a blob is compressed in a way that was not asked for"));
        }
        // Limited to the blob's size: a few compressed bytes may stand for gigabytes.
        let bytes = zstd::bulk::decompress(&read.data, blob.size as usize);
        bytes.map(|bytes| Some(bytes.into())).map_err(|error| self.unreadable(error))
    }

    async fn write_batch(&self, blob: Address, bytes: &Bytes, to: &Capabilities) -> Result<(), RemoteError> {
        let (data, compressor) = if to.compresses_batches {
            let data = zstd::bulk::compress(bytes, ZSTD_LEVEL).map_err(|error| self.unreadable(error))?;
            (data, api::compressor::Value::Zstd)
        } else {
            (bytes.to_vec(), api::compressor::Value::Identity)
        };
        let one = api::batch_update_blobs_request::Request {
            digest: Some(blob.into()),
            data,
            compressor: compressor.into(),
        };
        let message = api::BatchUpdateBlobsRequest {
            instance_name: self.instance(),
            requests: vec![one],
            digest_function: api::digest_function::Value::Sha256.into(),
        };
        let response = twice!(self, blobs, batch_update_blobs, message);
        let response = response.map_err(|status| self.error(&status))?.into_inner();
        match response.responses.first() {
            None => Err(self.unreadable("no answer for the blob that was sent")),
            Some(written) if code(written.status.as_ref()) == Code::Ok => Ok(()),
            Some(written) => Err(self.inner_error(written.status.as_ref())),
        }
    }

    async fn capabilities(&self) -> Result<&Capabilities, RemoteError> {
        self.capabilities.get_or_try_init(|| capabilities::ask(self)).await
    }

    /// True if the server executes actions.
    pub(crate) async fn executes(&self) -> Result<bool, RemoteError> {
        Ok(self.capabilities().await?.executes)
    }

    pub(crate) async fn channel(&self) -> Result<Channel, RemoteError> {
        self.channel.get_or_try_init(|| async { self.target.connect() }).await.cloned()
    }

    async fn actions(&self) -> Result<ActionCacheClient<Channel>, RemoteError> {
        Ok(ActionCacheClient::new(self.channel().await?).max_decoding_message_size(MAX_MESSAGE))
    }

    async fn blobs(&self) -> Result<ContentAddressableStorageClient<Channel>, RemoteError> {
        Ok(ContentAddressableStorageClient::new(self.channel().await?).max_decoding_message_size(MAX_MESSAGE))
    }

    pub(crate) fn instance(&self) -> String {
        self.target.instance.clone()
    }

    /// A request with the headers common to all calls.
    pub(crate) fn request<T>(&self, message: T) -> Request<T> {
        self.target.request(message)
    }

    fn checked(&self, blob: Address, bytes: Bytes) -> Result<Bytes, RemoteError> {
        let found = Digest::of(&bytes);
        if found == blob.digest {
            return Ok(bytes);
        }
        Err(RemoteError::Altered { address: self.shown().into(), expected: blob.digest, found })
    }
}

/// The status code of one blob; a missing status means success.
fn code(status: Option<&Status>) -> Code {
    status.map_or(Code::Ok, |status| Code::from_i32(status.code))
}
