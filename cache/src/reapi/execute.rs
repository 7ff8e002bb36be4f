//! Compilation on a cluster: the `Execution` service of the Remote Execution API.
//!
//! Uploads the inputs that the cluster lacks, executes the action, then downloads and checks the output. The compiler
//! is large (336 MB): its files are streamed from disk, once per cluster, and skipped if the cluster has them.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::build::bazel::remote::execution::v2::execution_client::ExecutionClient;
use bazel_remote_apis::google::longrunning::Operation;
use bazel_remote_apis::google::longrunning::operation::Result as Outcome;
use bytes::Bytes;
use prost::Message as _;
use tonic::{Code, Status, Streaming};

use super::action::{CompileAction, ToolFile};
use super::{OUTPUT, address};
use crate::remote::grpc::{Grpc, WriteFailure};
use crate::remote::{Address, RemoteError};

/// Maximum number of attempts at an execution, after broken connections or inputs lost by the cluster.
const ATTEMPTS: u32 = 4;

/// Delay before the second attempt, doubled for each further one.
const PAUSE: Duration = Duration::from_millis(200);

/// Time limit for a cluster's capabilities and list of missing blobs.
const ANSWER: Duration = Duration::from_secs(30);

/// Upper limit of a compiled program's size, in bytes.
const MAX_PROGRAM: u64 = 2 << 30;

/// Maximum size of the compiler's messages that are downloaded, in bytes.
const MAX_MESSAGES: u64 = 4 << 20;

/// Result of a remote compilation.
#[derive(Debug, Clone)]
pub struct Executed {
    /// The compiled program.
    pub program: Bytes,
    /// The result as returned by the cluster.
    pub result: api::ActionResult,
    /// True if it was in the action cache.
    pub cached: bool,
}

/// Cause of a failed remote compilation.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The cluster failed.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// The server has no execution service.
    #[error("{address} executes nothing: it is a cache only")]
    CacheOnly {
        /// The address, without credentials.
        address: String,
    },
    /// A file of the compiler is neither on this machine nor on the cluster.
    #[error(
        "{address} does not have the compiler's file `{path}` (SHA-256 {}, {} bytes), and it is not on this machine",
        file.digest, file.size
    )]
    NoTool {
        /// The address, without credentials.
        address: String,
        /// Its path in the input tree.
        path: String,
        /// Its expected digest and size.
        file: Address,
    },
    /// A file of the compiler cannot be read on this machine.
    #[error("the compiler's file {} cannot be sent: {cause}", path.display())]
    Tool {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        cause: io::Error,
    },
    /// The cluster did not execute the action.
    #[error("{address} did not execute the compilation: {cause}")]
    NotExecuted {
        /// The address, without credentials.
        address: String,
        /// The status that it returned.
        cause: String,
    },
    /// The remote compiler failed.
    #[error("the compiler on {address} ended with status {exit_code}:\n{messages}")]
    Compiler {
        /// The address, without credentials.
        address: String,
        /// Its exit status.
        exit_code: i32,
        /// Its output.
        messages: String,
    },
    /// The remote compiler succeeded without output.
    #[error("the compiler on {address} gave no `{OUTPUT}`")]
    NoProgram {
        /// The address, without credentials.
        address: String,
    },
}

impl ExecuteError {
    /// The fix to suggest to the user.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Remote(error) => error.remedy(),
            Self::CacheOnly { .. } => {
                "name a cluster that executes with --remote-executor, and caches with --cache-remote"
            }
            Self::NoTool { .. } => {
                "compile once from Linux on x86-64 with the compiler installed: it sends the compiler to the cluster"
            }
            Self::Tool { .. } => "install the toolchain again: `sheaf toolchain install`",
            Self::NotExecuted { .. } => {
                "check the cluster: it needs a worker with the properties OSFamily=linux and ISA=x86-64"
            }
            Self::Compiler { .. } => {
                "see the compiler's messages; a worker needs the C library and /bin/sh, by which the compiler starts its linker"
            }
            Self::NoProgram { .. } => "check the log of the cluster's worker",
        }
    }
}

impl Grpc {
    /// Executes `action`, or takes its cached result unless `skip_cache` is true.
    ///
    /// `local` maps a file of the compiler to its path on this machine; files without one must be on the cluster. The
    /// caller limits the time.
    pub async fn execute(
        &self,
        action: &CompileAction,
        skip_cache: bool,
        local: impl Fn(&ToolFile) -> Option<PathBuf>,
    ) -> Result<Executed, ExecuteError> {
        if !self.soon(self.executes()).await? {
            return Err(ExecuteError::CacheOnly { address: self.shown().into() });
        }
        let mut attempt = 0;
        let response = loop {
            self.upload(action, &local).await?;
            let status = match self.operation(action.address, skip_cache).await {
                Ok(response) => match &response.status {
                    Some(status) if status.code != 0 => {
                        Status::new(Code::from_i32(status.code), &status.message)
                    }
                    _ => break response,
                },
                Err(status) => status,
            };
            attempt += 1;
            // An input was lost after the upload, or the cluster became unavailable.
            let again = matches!(status.code(), Code::FailedPrecondition | Code::Unavailable | Code::Aborted);
            if attempt == ATTEMPTS || !again {
                return Err(self.not_executed(&status));
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        };
        self.executed(response).await
    }

    /// An answer that needs no execution, within [`ANSWER`].
    async fn soon<T>(&self, answer: impl Future<Output = Result<T, RemoteError>>) -> Result<T, RemoteError> {
        let late = |_| RemoteError::Timeout { address: self.shown().into(), seconds: ANSWER.as_secs() };
        tokio::time::timeout(ANSWER, answer).await.map_err(late)?
    }

    /// Uploads the blobs that the cluster lacks.
    async fn upload(
        &self,
        action: &CompileAction,
        local: &impl Fn(&ToolFile) -> Option<PathBuf>,
    ) -> Result<(), ExecuteError> {
        let tool = action.tool.iter().map(|file| file.address);
        let all: Vec<_> = action.blobs.iter().map(|(address, _)| *address).chain(tool).collect();
        let missing = self.soon(self.missing(&all)).await?;
        // The compiler first: an action without it is useless.
        for file in action.tool.iter().filter(|file| missing.contains(&file.address)) {
            let Some(path) = local(file) else {
                let address = self.shown().into();
                return Err(ExecuteError::NoTool { address, path: file.path.clone(), file: file.address });
            };
            self.write_file(file.address, &path).await.map_err(|failure| match failure {
                WriteFailure::Local(cause) => ExecuteError::Tool { path, cause },
                WriteFailure::Remote(error) => ExecuteError::Remote(error),
            })?;
        }
        for (address, bytes) in action.blobs.iter().filter(|(address, _)| missing.contains(address)) {
            self.write(*address, bytes.clone()).await?;
        }
        Ok(())
    }

    /// Executes and waits for completion, reconnecting if the connection breaks.
    async fn operation(&self, action: Address, skip_cache: bool) -> Result<api::ExecuteResponse, Status> {
        let request = self.request(api::ExecuteRequest {
            instance_name: self.instance(),
            skip_cache_lookup: skip_cache,
            action_digest: Some(action.into()),
            digest_function: api::digest_function::Value::Sha256.into(),
            ..api::ExecuteRequest::default()
        });
        let mut client = self.execution().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let mut operations = client.execute(request).await?.into_inner();
        let mut name = String::new();
        let mut breaks = 0;
        loop {
            let status = match follow(&mut operations, &mut name).await {
                Ok(Some(response)) => return Ok(response),
                // The server may end a stream at any time.
                Ok(None) => Status::unavailable("it ended the answer before the compilation was done"),
                Err(status) => status,
            };
            let broken =
                matches!(status.code(), Code::Unavailable | Code::Unknown | Code::Internal | Code::Cancelled);
            if name.is_empty() || breaks == ATTEMPTS || !broken {
                return Err(status);
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(breaks)).await;
            breaks += 1;
            let request = self.request(api::WaitExecutionRequest { name: name.clone() });
            operations = match client.wait_execution(request).await {
                Ok(operations) => operations.into_inner(),
                // The server has lost the operation: the caller executes it again.
                Err(gone) if gone.code() == Code::NotFound => return Err(Status::aborted(status.message())),
                Err(status) => return Err(status),
            };
        }
    }

    async fn executed(&self, response: api::ExecuteResponse) -> Result<Executed, ExecuteError> {
        let shown = || self.shown().to_owned();
        let Some(result) = response.result else { return Err(ExecuteError::NoProgram { address: shown() }) };
        if result.exit_code != 0 {
            let messages = self.messages(&result).await;
            return Err(ExecuteError::Compiler { address: shown(), exit_code: result.exit_code, messages });
        }
        let file = result.output_files.iter().find(|file| file.path == OUTPUT);
        let digest = file.and_then(|file| file.digest.as_ref());
        let Some(blob) = digest.and_then(address).filter(|blob| blob.size <= MAX_PROGRAM) else {
            return Err(ExecuteError::NoProgram { address: shown() });
        };
        let Some(program) = self.read(blob).await? else {
            return Err(ExecuteError::NoProgram { address: shown() });
        };
        Ok(Executed { program, result, cached: response.cached_result })
    }

    /// The compiler's output: standard error, or standard output if that is empty.
    async fn messages(&self, result: &api::ActionResult) -> String {
        for (raw, digest) in
            [(&result.stderr_raw, &result.stderr_digest), (&result.stdout_raw, &result.stdout_digest)]
        {
            let blob =
                digest.as_ref().and_then(address).filter(|blob| (1..=MAX_MESSAGES).contains(&blob.size));
            let fetched = match blob {
                Some(blob) if raw.is_empty() => self.read(blob).await.ok().flatten(),
                _ => None,
            };
            let bytes = fetched.as_deref().unwrap_or(raw);
            if !bytes.is_empty() {
                return String::from_utf8_lossy(bytes).trim_end().to_owned();
            }
        }
        "it wrote nothing".into()
    }

    async fn execution(&self) -> Result<ExecutionClient<tonic::transport::Channel>, RemoteError> {
        Ok(ExecutionClient::new(self.channel().await?).max_decoding_message_size(super::MAX_MESSAGE))
    }

    fn not_executed(&self, status: &Status) -> ExecuteError {
        match self.error(status) {
            RemoteError::Failed { address, cause } => ExecuteError::NotExecuted { address, cause },
            other => ExecuteError::Remote(other),
        }
    }
}

/// Reads operations until one is done; `None` if the stream ends first. Records the operation's name.
async fn follow(
    operations: &mut Streaming<Operation>,
    name: &mut String,
) -> Result<Option<api::ExecuteResponse>, Status> {
    while let Some(operation) = operations.message().await? {
        if !operation.name.is_empty() {
            *name = operation.name;
        }
        match operation.result {
            _ if !operation.done => {}
            Some(Outcome::Response(any)) => {
                let response = api::ExecuteResponse::decode(any.value.as_slice());
                return response
                    .map(Some)
                    .map_err(|error| Status::data_loss(format!("its answer cannot be read: {error}")));
            }
            Some(Outcome::Error(status)) => {
                return Err(Status::new(Code::from_i32(status.code), status.message));
            }
            None => return Err(Status::data_loss("an operation is done and says nothing of its outcome")),
        }
    }
    Ok(None)
}
