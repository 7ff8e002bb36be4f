//! The content-addressed storage, except for blobs too large for a message.

use std::collections::{HashSet, VecDeque};

use bazel_remote_apis::build::bazel::remote::execution::v2 as reapi;
use bazel_remote_apis::google::rpc;
use futures_util::stream::BoxStream;
use prost::Message as _;
use reapi::compressor::Value as Compressor;
use reapi::content_addressable_storage_server::ContentAddressableStorage;
use reapi::{batch_read_blobs_response as read, batch_update_blobs_request as update};
use tonic::{Code, Request, Response, Status, Streaming};

use super::{Api, MAX_BATCH, address};
use crate::actions;
use crate::metrics::Request as Wanted;
use crate::storage::{Form, Key, Kind, Upload};
use crate::wire;
use sheaf_foundation::Digest;

/// Number of folders per page of a tree.
const PAGE: usize = 100;

/// Maximum number of folders of a tree; the rest is left out.
const MAX_FOLDERS: usize = 100_000;

/// Maximum number of blobs per batch read.
const MAX_DIGESTS: usize = 10_000;

#[tonic::async_trait]
impl ContentAddressableStorage for Api {
    async fn find_missing_blobs(
        &self,
        request: Request<reapi::FindMissingBlobsRequest>,
    ) -> Result<Response<reapi::FindMissingBlobsResponse>, Status> {
        let find = || {
            let mut missing_blob_digests = Vec::new();
            for wanted in request.into_inner().blob_digests {
                let (digest, size) = address(Some(&wanted))?;
                if !self.service.storage.has_blob(digest, Some(size)) {
                    missing_blob_digests.push(wanted);
                }
            }
            Ok(Response::new(reapi::FindMissingBlobsResponse { missing_blob_digests }))
        };
        self.counted(Wanted::blob_find, find())
    }

    async fn batch_update_blobs(
        &self,
        request: Request<reapi::BatchUpdateBlobsRequest>,
    ) -> Result<Response<reapi::BatchUpdateBlobsResponse>, Status> {
        let mut responses = Vec::new();
        for blob in request.into_inner().requests {
            let digest = blob.digest.clone();
            let written = self.counted(Wanted::blob_write, self.update(blob).await);
            let status = Some(status(written.err()));
            responses.push(reapi::batch_update_blobs_response::Response { digest, status });
        }
        Ok(Response::new(reapi::BatchUpdateBlobsResponse { responses }))
    }

    async fn batch_read_blobs(
        &self,
        request: Request<reapi::BatchReadBlobsRequest>,
    ) -> Result<Response<reapi::BatchReadBlobsResponse>, Status> {
        let digests = request.into_inner().digests;
        if digests.len() > MAX_DIGESTS {
            let message = format!("a batch has {MAX_DIGESTS} blobs at most");
            return self.counted(Wanted::blob_read, Err(Status::invalid_argument(message)));
        }
        let total = digests.iter().map(|digest| u64::try_from(digest.size_bytes).unwrap_or(0));
        if total.fold(0, u64::saturating_add) > MAX_BATCH {
            let message =
                format!("a batch has {MAX_BATCH} bytes at most; larger blobs are read with ByteStream");
            return self.counted(Wanted::blob_read, Err(Status::invalid_argument(message)));
        }
        let mut responses = Vec::new();
        for digest in digests {
            let blob = match address(Some(&digest)) {
                Ok((digest, size)) => self.blob(digest, size).await,
                Err(status) => Err(status),
            };
            let blob = self.counted(Wanted::blob_read, blob);
            let (data, status) = match blob {
                Ok(data) => (data, status(None)),
                Err(error) => (Vec::new(), status(Some(error))),
            };
            self.service.metrics.sent.inc_by(data.len() as u64);
            responses.push(read::Response {
                digest: Some(digest),
                data,
                compressor: Compressor::Identity.into(),
                status: Some(status),
            });
        }
        Ok(Response::new(reapi::BatchReadBlobsResponse { responses }))
    }

    type GetTreeStream = BoxStream<'static, Result<reapi::GetTreeResponse, Status>>;

    /// The whole tree, breadth first, in pages; missing folders are left out.
    async fn get_tree(
        &self,
        request: Request<reapi::GetTreeRequest>,
    ) -> Result<Response<Self::GetTreeStream>, Status> {
        let begin = async {
            let root = address(request.get_ref().root_digest.as_ref())?;
            self.folder(root).await?.ok_or_else(|| Status::not_found("the root is not there"))?;
            Ok(root)
        };
        let root = self.counted(Wanted::blob_read, begin.await)?;
        let walk = Walk { api: self.clone(), seen: HashSet::from([root.0]), queue: VecDeque::from([root]) };
        let pages = futures_util::stream::try_unfold(walk, async |mut walk| {
            let directories = walk.page().await?;
            let page = reapi::GetTreeResponse { directories, next_page_token: String::new() };
            Ok((!page.directories.is_empty()).then_some((page, walk)))
        });
        Ok(Response::new(Box::pin(pages)))
    }

    async fn split_blob(
        &self,
        _request: Request<reapi::SplitBlobRequest>,
    ) -> Result<Response<reapi::SplitBlobResponse>, Status> {
        Err(no_chunks())
    }

    type GetChunkMappingStream = BoxStream<'static, Result<reapi::GetChunkMappingResponse, Status>>;

    async fn get_chunk_mapping(
        &self,
        _request: Request<reapi::GetChunkMappingRequest>,
    ) -> Result<Response<Self::GetChunkMappingStream>, Status> {
        Err(no_chunks())
    }

    async fn splice_blob(
        &self,
        _request: Request<reapi::SpliceBlobRequest>,
    ) -> Result<Response<reapi::SpliceBlobResponse>, Status> {
        Err(no_chunks())
    }

    async fn register_chunk_mapping(
        &self,
        _request: Request<Streaming<reapi::RegisterChunkMappingRequest>>,
    ) -> Result<Response<reapi::RegisterChunkMappingResponse>, Status> {
        Err(no_chunks())
    }
}

/// Chunks belong to newer versions of the API than the server advertises.
fn no_chunks() -> Status {
    Status::unimplemented("this server does not divide blobs into chunks")
}

fn status(error: Option<Status>) -> rpc::Status {
    let (code, message) =
        error.map_or((Code::Ok, String::new()), |error| (error.code(), error.message().into()));
    rpc::Status { code: code.into(), message, details: vec![] }
}

impl Api {
    async fn update(&self, blob: update::Request) -> Result<(), Status> {
        let (digest, size) = address(blob.digest.as_ref())?;
        let zstd = match blob.compressor() {
            Compressor::Identity => false,
            Compressor::Zstd => true,
            _ => return Err(Status::invalid_argument("blobs come as they are, or compressed with zstd")),
        };
        self.service.metrics.received.inc_by(blob.data.len() as u64);
        let mut upload = Upload::blob(&self.service.storage, digest, Some(size), zstd).await?;
        upload.push(blob.data.into()).await?;
        Ok(upload.finish().await?)
    }

    /// The bytes of a blob that fits into a message.
    async fn blob(&self, digest: Digest, size: u64) -> Result<Vec<u8>, Status> {
        let key = Key { kind: Kind::Blob, digest };
        let reader = actions::open(&self.service.storage, key, Form::Plain).await?;
        let reader = reader.filter(|reader| reader.size() == size);
        Ok(reader.ok_or_else(|| Status::not_found("there is no such blob"))?.all().await?)
    }

    /// A folder of a tree, if it exists and is well-formed.
    async fn folder(&self, (digest, size): (Digest, u64)) -> Result<Option<reapi::Directory>, Status> {
        if size > MAX_BATCH {
            return Ok(None);
        }
        match self.blob(digest, size).await {
            Ok(bytes) if !wire::is_sound(&bytes) => Ok(None),
            Ok(bytes) => Ok(reapi::Directory::decode(&bytes[..]).ok()),
            Err(status) if status.code() == Code::NotFound => Ok(None),
            Err(status) => Err(status),
        }
    }
}

/// A traversal of a tree of folders.
struct Walk {
    api: Api,
    seen: HashSet<Digest>,
    queue: VecDeque<(Digest, u64)>,
}

impl Walk {
    /// The next folders; empty at the end.
    async fn page(&mut self) -> Result<Vec<reapi::Directory>, Status> {
        let mut page = Vec::new();
        let mut bytes = 0;
        while page.len() < PAGE && bytes < MAX_BATCH / 2 {
            let Some(next) = self.queue.pop_front() else { break };
            let Some(folder) = self.api.folder(next).await? else { continue };
            for child in
                folder.directories.iter().filter_map(|child| actions::address(child.digest.as_ref()?))
            {
                if self.seen.len() < MAX_FOLDERS && self.seen.insert(child.0) {
                    self.queue.push_back(child);
                }
            }
            bytes += next.1;
            page.push(folder);
        }
        Ok(page)
    }
}
