//! Capabilities of the server.

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::build::bazel::semver::SemVer;
use reapi::capabilities_server::Capabilities;
use reapi::compressor::Value as Compressor;
use tonic::{Request, Response, Status};

use super::{Api, MAX_BATCH};
use crate::access::Pass;
use crate::metrics::Request as Wanted;
use crate::tokens::Role;

#[tonic::async_trait]
impl Capabilities for Api {
    async fn get_capabilities(
        &self,
        request: Request<reapi::GetCapabilitiesRequest>,
    ) -> Result<Response<reapi::ServerCapabilities>, Status> {
        let may_write = request.extensions().get().is_some_and(|pass: &Pass| pass.role == Role::Write);
        let version = |minor| Some(SemVer { major: 2, minor, patch: 0, prerelease: String::new() });
        let cache = reapi::CacheCapabilities {
            digest_functions: vec![reapi::digest_function::Value::Sha256.into()],
            action_cache_update_capabilities: Some(reapi::ActionCacheUpdateCapabilities {
                update_enabled: may_write,
            }),
            max_batch_total_size_bytes: MAX_BATCH as i64,
            max_cas_blob_size_bytes: self.service.storage.max_blob() as i64,
            symlink_absolute_path_strategy: reapi::symlink_absolute_path_strategy::Value::Allowed.into(),
            supported_compressors: vec![Compressor::Zstd.into()],
            supported_batch_update_compressors: vec![Compressor::Zstd.into()],
            ..Default::default()
        };
        let capabilities = reapi::ServerCapabilities {
            cache_capabilities: Some(cache),
            low_api_version: version(0),
            high_api_version: version(3),
            ..Default::default()
        };
        self.counted(Wanted::other, Ok(Response::new(capabilities)))
    }
}
