//! Capabilities, results of actions, executions.

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::longrunning::{Operation, operation};
use bazel_remote_apis::google::protobuf::Any;
use futures_util::stream::{self, Iter};
use prost::Message as _;
use tonic::{Request, Response, Status};

use super::{Fake, Fault};

type Operations = Iter<std::vec::IntoIter<Result<Operation, Status>>>;

#[tonic::async_trait]
impl api::capabilities_server::Capabilities for Fake {
    async fn get_capabilities(
        &self,
        request: Request<api::GetCapabilitiesRequest>,
    ) -> Result<Response<api::ServerCapabilities>, Status> {
        self.called("GetCapabilities", &request).await?;
        Ok(Response::new(self.state().capabilities.clone()))
    }
}

#[tonic::async_trait]
impl api::action_cache_server::ActionCache for Fake {
    async fn get_action_result(
        &self,
        request: Request<api::GetActionResultRequest>,
    ) -> Result<Response<api::ActionResult>, Status> {
        self.called("GetActionResult", &request).await?;
        let digest = request.into_inner().action_digest.unwrap_or_default();
        let mut result =
            self.state().results.get(&digest.hash).cloned().ok_or_else(|| Status::not_found("no result"))?;
        // As some servers do regardless of the request: the output of the action is a separate blob.
        if !result.stdout_raw.is_empty() {
            let hash = super::hash(&result.stdout_raw);
            let stdout = std::mem::take(&mut result.stdout_raw);
            result.stdout_digest = Some(api::Digest { hash: hash.clone(), size_bytes: stdout.len() as i64 });
            self.state().blobs.insert(hash, stdout);
        }
        Ok(Response::new(result))
    }

    async fn update_action_result(
        &self,
        request: Request<api::UpdateActionResultRequest>,
    ) -> Result<Response<api::ActionResult>, Status> {
        self.called("UpdateActionResult", &request).await?;
        let request = request.into_inner();
        let result = request.action_result.unwrap_or_default();
        self.state().results.insert(request.action_digest.unwrap_or_default().hash, result.clone());
        Ok(Response::new(result))
    }
}

#[tonic::async_trait]
impl api::execution_server::Execution for Fake {
    type ExecuteStream = Operations;

    async fn execute(&self, request: Request<api::ExecuteRequest>) -> Result<Response<Operations>, Status> {
        self.called("Execute", &request).await?;
        let hash = request.into_inner().action_digest.unwrap_or_default().hash;
        let name = format!("operations/{hash}");
        if self.fault(|fault| *fault == Fault::LosesInput).is_some() {
            self.state().blobs.clear();
        }
        let present = self.state().blobs.contains_key(&hash);
        let waits = Operation { name: name.clone(), ..Operation::default() };
        if !present {
            return Err(Status::failed_precondition("an input is missing"));
        }
        let fault = self.fault(|fault| matches!(fault, Fault::ExecutionBreaks | Fault::ExecutionForgotten));
        match fault {
            Some(Fault::ExecutionForgotten) => return Ok(Response::new(stream::iter(vec![Ok(waits)]))),
            Some(_) => {
                self.state().executions.insert(name, api::ExecuteResponse::default());
                return Ok(Response::new(stream::iter(vec![
                    Ok(waits),
                    Err(Status::unavailable("going down")),
                ])));
            }
            None => {}
        }
        Ok(Response::new(stream::iter(vec![Ok(waits), Ok(self.done(&name))])))
    }

    type WaitExecutionStream = Operations;

    async fn wait_execution(
        &self,
        request: Request<api::WaitExecutionRequest>,
    ) -> Result<Response<Operations>, Status> {
        self.called("WaitExecution", &request).await?;
        let name = request.into_inner().name;
        if !self.state().executions.contains_key(&name) {
            return Err(Status::not_found("no such operation"));
        }
        Ok(Response::new(stream::iter(vec![Ok(self.done(&name))])))
    }
}

impl Fake {
    /// The result of an execution: the blob `program`.
    fn done(&self, name: &str) -> Operation {
        let program = b"program".to_vec();
        let digest = api::Digest { hash: super::hash(&program), size_bytes: program.len() as i64 };
        self.state().blobs.insert(digest.hash.clone(), program);
        let file = api::OutputFile { path: "main.vmfb".into(), digest: Some(digest), ..Default::default() };
        let result = api::ActionResult { output_files: vec![file], ..Default::default() };
        let response = api::ExecuteResponse { result: Some(result), ..Default::default() };
        let type_url = "type.googleapis.com/build.bazel.remote.execution.v2.ExecuteResponse".into();
        let any = Any { type_url, value: response.encode_to_vec() };
        Operation {
            name: name.into(),
            done: true,
            result: Some(operation::Result::Response(any)),
            metadata: None,
        }
    }
}
