//! Compilation on a cluster: the `Execution` service of the Remote Execution API.
//!
//! The inputs that the cluster lacks are sent, the action is executed, its output is fetched and checked. The compiler is
//! large (336 MB): its files go from disk as streams, once per cluster, and not at all where the cluster has them.

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

/// How often an execution is asked for again after a break, or after a cluster lost an input.
const ATTEMPTS: u32 = 4;

/// How long is waited before the second attempt; each further one waits twice as long.
const PAUSE: Duration = Duration::from_millis(200);

/// How long a cluster may take to say what it is, and what it has.
const ANSWER: Duration = Duration::from_secs(30);

/// Compiled programs are smaller than this, in bytes.
const MAX_PROGRAM: u64 = 2 << 30;

/// As much of the compiler's messages as is fetched, in bytes.
const MAX_MESSAGES: u64 = 4 << 20;

/// What a cluster made of a compilation.
#[derive(Debug, Clone)]
pub struct Executed {
    /// The compiled program.
    pub program: Bytes,
    /// The result as the cluster has it.
    pub result: api::ActionResult,
    /// Whether it was there already.
    pub cached: bool,
}

/// Why a cluster did not compile.
#[derive(Debug, thiserror::Error)]
pub enum ExecuteError {
    /// The cluster did not serve.
    #[error(transparent)]
    Remote(#[from] RemoteError),
    /// It executes nothing.
    #[error("{address} executes nothing: it is a cache only")]
    CacheOnly {
        /// The address, without credentials.
        address: String,
    },
    /// A file of the compiler is neither on this machine nor there.
    #[error(
        "{address} does not have the compiler's file `{path}` (SHA-256 {}, {} bytes), and it is not on this machine",
        file.digest, file.size
    )]
    NoTool {
        /// The address, without credentials.
        address: String,
        /// Where the file lies in the input tree.
        path: String,
        /// What it should hold.
        file: Address,
    },
    /// A file of the compiler is on this machine and cannot be read.
    #[error("the compiler's file {} cannot be sent: {cause}", path.display())]
    Tool {
        /// The file.
        path: PathBuf,
        /// Why it cannot be read.
        cause: io::Error,
    },
    /// The cluster did not execute the action.
    #[error("{address} did not execute the compilation: {cause}")]
    NotExecuted {
        /// The address, without credentials.
        address: String,
        /// The status that it gave.
        cause: String,
    },
    /// The compiler ran there, and failed.
    #[error("the compiler on {address} ended with status {exit_code}:\n{messages}")]
    Compiler {
        /// The address, without credentials.
        address: String,
        /// Its exit status.
        exit_code: i32,
        /// What it wrote.
        messages: String,
    },
    /// The compiler ran there, and left no program.
    #[error("the compiler on {address} gave no `{OUTPUT}`")]
    NoProgram {
        /// The address, without credentials.
        address: String,
    },
}

impl ExecuteError {
    /// What a person can do about it.
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
    /// Has `action` executed, unless the cluster has its result and `skip_cache` is false.
    ///
    /// `local` says where a file of the compiler lies on this machine; those that are nowhere must be on the cluster. The
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
            // An input was lost since it was asked for, or the cluster went away.
            let again = matches!(status.code(), Code::FailedPrecondition | Code::Unavailable | Code::Aborted);
            if attempt == ATTEMPTS || !again {
                return Err(self.not_executed(&status));
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(attempt - 1)).await;
        };
        self.executed(response).await
    }

    /// An answer for which a cluster need not work.
    async fn soon<T>(&self, answer: impl Future<Output = Result<T, RemoteError>>) -> Result<T, RemoteError> {
        let late = |_| RemoteError::Timeout { address: self.shown().into(), seconds: ANSWER.as_secs() };
        tokio::time::timeout(ANSWER, answer).await.map_err(late)?
    }

    /// Sends what the cluster lacks.
    async fn upload(
        &self,
        action: &CompileAction,
        local: &impl Fn(&ToolFile) -> Option<PathBuf>,
    ) -> Result<(), ExecuteError> {
        let tool = action.tool.iter().map(|file| file.address);
        let all: Vec<_> = action.blobs.iter().map(|(address, _)| *address).chain(tool).collect();
        let missing = self.soon(self.missing(&all)).await?;
        // The compiler first: an action without it is of no use.
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

    /// Executes and waits for the end, also over broken connections.
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
                // The server may end a stream whenever it wants.
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
                // It has forgotten the operation: the caller executes anew.
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

    /// What the compiler wrote: to standard error, or else to standard output.
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

/// Reads operations until one is done; `None` where the stream ends before. The operation's name is noted.
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
