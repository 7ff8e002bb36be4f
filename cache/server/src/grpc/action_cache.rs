//! The action cache.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use prost::Message as _;
use reapi::action_cache_server::ActionCache;
use tonic::{Request, Response, Status};

use super::{Api, address};
use crate::actions;
use crate::metrics::Request as Wanted;

#[tonic::async_trait]
impl ActionCache for Api {
    async fn get_action_result(
        &self,
        request: Request<reapi::GetActionResultRequest>,
    ) -> Result<Response<reapi::ActionResult>, Status> {
        let answer = async {
            let (action, _) = address(request.get_ref().action_digest.as_ref())?;
            let gone = || Status::not_found("there is no such entry");
            let found = actions::find(&self.service.storage, action).await?.ok_or_else(gone)?;
            let result = reapi::ActionResult::decode(&found[..]).map_err(|_| gone())?;
            self.service.metrics.sent.inc_by(found.len() as u64);
            Ok(Response::new(result))
        };
        self.counted(Wanted::action_read, answer.await)
    }

    async fn update_action_result(
        &self,
        request: Request<reapi::UpdateActionResultRequest>,
    ) -> Result<Response<reapi::ActionResult>, Status> {
        let answer = async {
            let (action, _) = address(request.get_ref().action_digest.as_ref())?;
            let result = request.into_inner().action_result;
            let result = result.ok_or_else(|| Status::invalid_argument("an action result is missing"))?;
            let bytes = result.encode_to_vec();
            self.service.metrics.received.inc_by(bytes.len() as u64);
            actions::keep(&self.service.storage, action, bytes.into()).await?;
            Ok(Response::new(result))
        };
        self.counted(Wanted::action_write, answer.await)
    }
}
