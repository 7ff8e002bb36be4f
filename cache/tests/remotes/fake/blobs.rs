//! Content-addressed storage in batches.

use bazel_remote_apis::build::bazel::remote::execution::v2 as api;
use bazel_remote_apis::google::rpc;
use futures_util::stream::Empty;
use tonic::{Code, Request, Response, Status, Streaming};

use super::{Fake, Fault, hash};

const ZSTD: i32 = api::compressor::Value::Zstd as i32;

fn status(code: Code, message: &str) -> rpc::Status {
    rpc::Status { code: code.into(), message: message.into(), details: vec![] }
}

#[tonic::async_trait]
impl api::content_addressable_storage_server::ContentAddressableStorage for Fake {
    async fn find_missing_blobs(
        &self,
        request: Request<api::FindMissingBlobsRequest>,
    ) -> Result<Response<api::FindMissingBlobsResponse>, Status> {
        self.called("FindMissingBlobs", &request).await?;
        let state = self.state();
        let digests = request.into_inner().blob_digests;
        let missing_blob_digests =
            digests.into_iter().filter(|digest| !state.blobs.contains_key(&digest.hash)).collect();
        Ok(Response::new(api::FindMissingBlobsResponse { missing_blob_digests }))
    }

    async fn batch_update_blobs(
        &self,
        request: Request<api::BatchUpdateBlobsRequest>,
    ) -> Result<Response<api::BatchUpdateBlobsResponse>, Status> {
        self.called("BatchUpdateBlobs", &request).await?;
        let mut responses = Vec::new();
        for one in request.into_inner().requests {
            let digest = one.digest.unwrap_or_default();
            let data =
                if one.compressor == ZSTD { zstd::decode_all(&*one.data).expect("zstd") } else { one.data };
            let call = format!("BatchUpdateBlobs compressor {} of {} bytes", one.compressor, data.len());
            let right = hash(&data) == digest.hash;
            let status = (!right).then(|| status(Code::InvalidArgument, "the digest is another"));
            let mut state = self.state();
            state.calls.push(call);
            if right {
                state.blobs.insert(digest.hash.clone(), data);
            }
            responses.push(api::batch_update_blobs_response::Response { digest: Some(digest), status });
        }
        Ok(Response::new(api::BatchUpdateBlobsResponse { responses }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<api::BatchReadBlobsRequest>,
    ) -> Result<Response<api::BatchReadBlobsResponse>, Status> {
        self.called("BatchReadBlobs", &request).await?;
        let request = request.into_inner();
        let zstd = request.acceptable_compressors.contains(&ZSTD);
        let mut responses = Vec::new();
        for digest in request.digests {
            let mut found = self.state().blobs.get(&digest.hash).cloned();
            if let Some(Fault::ReadsAs(bytes)) = self.fault(|fault| matches!(fault, Fault::ReadsAs(_))) {
                found = Some(bytes);
            }
            let status = found.is_none().then(|| status(Code::NotFound, "no such blob"));
            let data = found.unwrap_or_default();
            let data = if zstd { zstd::encode_all(&*data, 1).expect("zstd") } else { data };
            let compressor = if zstd { ZSTD } else { 0 };
            responses.push(api::batch_read_blobs_response::Response {
                digest: Some(digest),
                data,
                compressor,
                status,
            });
        }
        Ok(Response::new(api::BatchReadBlobsResponse { responses }))
    }

    type GetTreeStream = Empty<Result<api::GetTreeResponse, Status>>;

    async fn get_tree(
        &self,
        _: Request<api::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        Err(Status::unimplemented("GetTree"))
    }

    async fn split_blob(
        &self,
        _: Request<api::SplitBlobRequest>,
    ) -> Result<Response<api::SplitBlobResponse>, Status> {
        Err(Status::unimplemented("SplitBlob"))
    }

    type GetChunkMappingStream = Empty<Result<api::GetChunkMappingResponse, Status>>;

    async fn get_chunk_mapping(
        &self,
        _: Request<api::GetChunkMappingRequest>,
    ) -> Result<Response<Self::GetChunkMappingStream>, Status> {
        Err(Status::unimplemented("GetChunkMapping"))
    }

    async fn splice_blob(
        &self,
        _: Request<api::SpliceBlobRequest>,
    ) -> Result<Response<api::SpliceBlobResponse>, Status> {
        Err(Status::unimplemented("SpliceBlob"))
    }

    async fn register_chunk_mapping(
        &self,
        _: Request<Streaming<api::RegisterChunkMappingRequest>>,
    ) -> Result<Response<api::RegisterChunkMappingResponse>, Status> {
        Err(Status::unimplemented("RegisterChunkMapping"))
    }
}
