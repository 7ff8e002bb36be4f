//! Blobs of any size, in pieces.

use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStream;
use bazel_remote_apis::google::bytestream::{
    QueryWriteStatusRequest, QueryWriteStatusResponse, ReadRequest, ReadResponse, WriteRequest, WriteResponse,
};
use futures_util::TryStreamExt as _;
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use super::Api;
use super::resource::Resource;
use crate::actions;
use crate::metrics::Request as Wanted;
use crate::storage::{Form, Key, Kind, Reader, Upload};

#[tonic::async_trait]
impl ByteStream for Api {
    type ReadStream = BoxStream<'static, Result<ReadResponse, Status>>;

    async fn read(&self, request: Request<ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let reader = self.counted(Wanted::blob_read, self.open(request.get_ref()).await)?;
        let sent = self.service.metrics.sent.clone();
        let pieces = reader.stream().map_err(Status::from).map_ok(move |piece| {
            sent.inc_by(piece.len() as u64);
            ReadResponse { data: piece.into() }
        });
        Ok(Response::new(Box::pin(pieces)))
    }

    async fn write(
        &self,
        request: Request<Streaming<WriteRequest>>,
    ) -> Result<Response<WriteResponse>, Status> {
        let written = async {
            let committed_size = self.take_in(request.into_inner()).await?;
            Ok(Response::new(WriteResponse { committed_size }))
        };
        self.counted(Wanted::blob_write, written.await)
    }

    /// Uploads cannot be resumed: a blob is either complete or starts over.
    async fn query_write_status(
        &self,
        request: Request<QueryWriteStatusRequest>,
    ) -> Result<Response<QueryWriteStatusResponse>, Status> {
        let query = || {
            let blob = Resource::write(&request.get_ref().resource_name)?;
            let complete = self.service.storage.has_blob(blob.digest, Some(blob.size));
            let committed_size = if complete { blob.size as i64 } else { 0 };
            Ok(Response::new(QueryWriteStatusResponse { committed_size, complete }))
        };
        self.counted(Wanted::blob_find, query())
    }
}

impl Api {
    async fn open(&self, request: &ReadRequest) -> Result<Reader, Status> {
        let blob = Resource::read(&request.resource_name)?;
        let negative = |_| Status::invalid_argument("offset and limit are not negative");
        let offset = u64::try_from(request.read_offset).map_err(negative)?;
        let limit = u64::try_from(request.read_limit).map_err(negative)?;
        let limit = Some(limit).filter(|limit| *limit > 0);
        if offset > blob.size {
            return Err(Status::out_of_range(format!("the blob has {} bytes", blob.size)));
        }
        if blob.zstd && limit.is_some() {
            return Err(Status::invalid_argument("a compressed blob cannot be read with a limit"));
        }
        let form = if blob.zstd { Form::Zstd } else { Form::Plain };
        let key = Key { kind: Kind::Blob, digest: blob.digest };
        let reader = actions::open(&self.service.storage, key, form).await?;
        let reader = reader.filter(|reader| reader.size() == blob.size);
        let reader = reader.ok_or_else(|| Status::not_found("there is no such blob"))?;
        Ok(reader.range(offset, limit))
    }

    /// Receives a blob; returns the number of sent bytes that are kept.
    async fn take_in(&self, mut pieces: Streaming<WriteRequest>) -> Result<i64, Status> {
        let nothing = || Status::invalid_argument("the first message must name a blob");
        let mut message = pieces.message().await?.ok_or_else(nothing)?;
        let name = message.resource_name.clone();
        let blob = Resource::write(&name)?;
        let storage = &self.service.storage;
        // An existing blob need not be sent; the compressed size that the client would have sent is unknown.
        if storage.has_blob(blob.digest, Some(blob.size)) {
            return Ok(if blob.zstd { -1 } else { blob.size as i64 });
        }
        let mut upload = Upload::blob(storage, blob.digest, Some(blob.size), blob.zstd).await?;
        let mut committed: i64 = 0;
        loop {
            if !message.resource_name.is_empty() && message.resource_name != name {
                return Err(Status::invalid_argument("all messages of a write name the same blob"));
            }
            if message.write_offset != committed {
                return Err(Status::invalid_argument(format!(
                    "the piece at {} was sent where {committed} bytes are there; a write begins at 0",
                    message.write_offset
                )));
            }
            committed += message.data.len() as i64;
            self.service.metrics.received.inc_by(message.data.len() as u64);
            upload.push(message.data.into()).await?;
            if message.finish_write {
                upload.finish().await?;
                return Ok(committed);
            }
            let unfinished = || Status::invalid_argument("the write ended without being finished");
            message = pieces.message().await?.ok_or_else(unfinished)?;
        }
    }
}
