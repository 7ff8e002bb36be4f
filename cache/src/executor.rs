//! A cluster that compiles, for callers who wait.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::reapi::action::{CompileAction, ToolFile};
use crate::reapi::execute::ExecuteError;
use crate::remote::grpc::{Grpc, GrpcOptions};
use crate::remote::{Credentials, Remote, RemoteError, background};

/// A cluster that compiles, by the Remote Execution API.
#[derive(Debug)]
pub struct Executor {
    cluster: Grpc,
    runtime: Runtime,
}

impl Executor {
    /// The cluster at `address`, which the user named; nothing is sent yet.
    pub fn open(address: &str, credentials: &Credentials) -> Result<Self, RemoteError> {
        let url = Remote::parse(address)?;
        let headers = credentials.headers(&url, true)?;
        let headers = headers.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect();
        let cluster = Grpc::new(address, GrpcOptions { headers, ..GrpcOptions::default() })?;
        let runtime = background("remote-executor")?;
        Ok(Self { cluster, runtime })
    }

    /// The VMFB that a compilation gives, unless it takes longer than `limit`. `local` says where a file of the compiler
    /// lies on this machine; what lies nowhere must be on the cluster already.
    pub fn compile(
        &self,
        action: &CompileAction,
        limit: Duration,
        local: impl Fn(&ToolFile) -> Option<PathBuf>,
    ) -> Result<Vec<u8>, ExecuteError> {
        self.runtime.block_on(async {
            // Whoever asks has looked in the caches. What the cluster's own cache holds may be from anybody.
            match tokio::time::timeout(limit, self.cluster.execute(action, true, local)).await {
                Ok(executed) => Ok(executed?.program.into()),
                Err(_) => Err(RemoteError::Timeout {
                    address: self.cluster.shown().into(),
                    seconds: limit.as_secs(),
                }
                .into()),
            }
        })
    }
}
