//! Blocking client of a remote execution cluster.

use std::path::PathBuf;
use std::time::Duration;

use tokio::runtime::Runtime;

use crate::reapi::action::{CompileAction, ToolFile};
use crate::reapi::execute::ExecuteError;
use crate::remote::grpc::{Grpc, GrpcOptions};
use crate::remote::{Credentials, Remote, RemoteError, background};

/// A cluster that compiles through the Remote Execution API.
#[derive(Debug)]
pub struct Executor {
    cluster: Grpc,
    runtime: Runtime,
}

impl Executor {
    /// The cluster at the user's `address`; sends nothing yet.
    pub fn open(address: &str, credentials: &Credentials) -> Result<Self, RemoteError> {
        let url = Remote::parse(address)?;
        let headers = credentials.headers(&url, true)?;
        let headers = headers.into_iter().map(|(name, value)| (name, value.reveal().to_owned())).collect();
        let cluster = Grpc::new(address, GrpcOptions { headers, ..GrpcOptions::default() })?;
        let runtime = background("remote-executor")?;
        Ok(Self { cluster, runtime })
    }

    /// The VMFB of a compilation, or an error after `limit`. `local` maps a file of the compiler to its path on this
    /// machine; files without one must be on the cluster already.
    pub fn compile(
        &self,
        action: &CompileAction,
        limit: Duration,
        local: impl Fn(&ToolFile) -> Option<PathBuf>,
    ) -> Result<Vec<u8>, ExecuteError> {
        self.runtime.block_on(async {
            // The caches have been checked already, and the cluster's own action cache is untrusted: anyone may have
            // written it.
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
