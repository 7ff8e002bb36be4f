//! `ByteStream`, with the names of the Remote Execution API.

use bazel_remote_apis::google::bytestream as api;
use bazel_remote_apis::google::bytestream::byte_stream_server::ByteStream;
use futures_util::stream::{self, Iter};
use tonic::{Request, Response, Status, Streaming};

use super::{Fake, Fault, hash};

#[tonic::async_trait]
impl ByteStream for Fake {
    type ReadStream = Iter<std::vec::IntoIter<Result<api::ReadResponse, Status>>>;

    async fn read(&self, request: Request<api::ReadRequest>) -> Result<Response<Self::ReadStream>, Status> {
        let call = format!("Read {} from {}", request.get_ref().resource_name, request.get_ref().read_offset);
        self.called(&call, &request).await?;
        let request = request.into_inner();
        let digest = request.resource_name.rsplit('/').nth(1).unwrap_or_default().to_owned();
        let found = self.state().blobs.get(&digest).cloned();
        let mut bytes = found.ok_or_else(|| Status::not_found("no such blob"))?;
        if let Some(Fault::ReadsAs(other)) = self.fault(|fault| matches!(fault, Fault::ReadsAs(_))) {
            bytes = other;
        }
        if request.resource_name.contains("compressed-blobs/zstd/") {
            bytes = zstd::encode_all(&*bytes, 1).expect("zstd");
        }
        let bytes = &bytes[request.read_offset as usize..];
        let broken = match self.fault(|fault| matches!(fault, Fault::ReadBreaks(_))) {
            Some(Fault::ReadBreaks(size)) => Some(size.min(bytes.len())),
            _ => None,
        };
        let frames = bytes[..broken.unwrap_or(bytes.len())].chunks(100_000);
        let mut frames: Vec<_> = frames.map(|data| Ok(api::ReadResponse { data: data.to_vec() })).collect();
        if broken.is_some() {
            frames.push(Err(Status::unavailable("going down")));
        }
        Ok(Response::new(stream::iter(frames)))
    }

    async fn write(
        &self,
        request: Request<Streaming<api::WriteRequest>>,
    ) -> Result<Response<api::WriteResponse>, Status> {
        self.called("Write", &request).await?;
        let fault = self.fault(|fault| matches!(fault, Fault::WriteBreaks(_) | Fault::WriteForgotten(_)));
        let mut messages = request.into_inner();
        let mut name = String::new();
        while let Some(message) = messages.message().await? {
            if !message.resource_name.is_empty() {
                name = message.resource_name;
                self.state().calls.push(format!("Write {name} from {}", message.write_offset));
            }
            let mut state = self.state();
            let bytes = state.uploads.entry(name.clone()).or_default();
            if message.write_offset as usize != bytes.len() {
                return Err(Status::invalid_argument("an offset that was not agreed on"));
            }
            bytes.extend(message.data);
            let size = bytes.len();
            match fault {
                Some(Fault::WriteBreaks(limit)) if size > limit => {
                    return Err(Status::unavailable("going down"));
                }
                Some(Fault::WriteForgotten(limit)) if size > limit => {
                    state.uploads.clear();
                    return Err(Status::unavailable("going down"));
                }
                _ if message.finish_write => {
                    let bytes = state.uploads.remove(&name).unwrap_or_default();
                    let compressed = name.contains("/compressed-blobs/zstd/");
                    let bytes = if compressed { zstd::decode_all(&*bytes).expect("zstd") } else { bytes };
                    if name.rsplit('/').nth(1) != Some(&hash(&bytes)) {
                        return Err(Status::invalid_argument("the digest is another"));
                    }
                    state.blobs.insert(hash(&bytes), bytes);
                    return Ok(Response::new(api::WriteResponse { committed_size: size as i64 }));
                }
                _ => {}
            }
        }
        Err(Status::invalid_argument("an upload that was not finished"))
    }

    async fn query_write_status(
        &self,
        request: Request<api::QueryWriteStatusRequest>,
    ) -> Result<Response<api::QueryWriteStatusResponse>, Status> {
        self.called("QueryWriteStatus", &request).await?;
        let state = self.state();
        let bytes = state
            .uploads
            .get(&request.get_ref().resource_name)
            .ok_or_else(|| Status::not_found("forgotten"))?;
        Ok(Response::new(api::QueryWriteStatusResponse {
            committed_size: bytes.len() as i64,
            complete: false,
        }))
    }
}
