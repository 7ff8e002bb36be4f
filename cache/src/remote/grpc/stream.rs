//! Large blobs: `ByteStream`, with the resource names of the Remote Execution API.

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bazel_remote_apis::google::bytestream::byte_stream_client::ByteStreamClient;
use bazel_remote_apis::google::bytestream::{QueryWriteStatusRequest, ReadRequest, WriteRequest};
use bytes::Bytes;
use futures_util::{Stream, stream};
use tokio::fs::File;
use tokio::io::{AsyncReadExt as _, AsyncSeekExt as _};
use tonic::transport::Channel;
use tonic::{Code, Status};

use super::super::{Address, RemoteError};
use super::{Grpc, MAX_MESSAGE};

/// Size of one message.
const CHUNK: usize = 1 << 20;

/// Maximum number of resumptions of a broken transfer.
const RESUMES: u32 = 3;

/// Delay before the first resumption, doubled for each further one.
const PAUSE: Duration = Duration::from_millis(100);

/// Content to write.
#[derive(Debug)]
pub(crate) enum Content {
    /// The blob itself.
    Bytes(Bytes),
    /// The blob compressed with zstd.
    Compressed(Bytes),
    /// A file that holds the blob, streamed from disk.
    File(PathBuf),
}

/// Cause of a failed write.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// The file could not be read.
    Local(io::Error),
    /// The server refused it.
    Remote(RemoteError),
}

impl Grpc {
    /// Reads a blob, unchecked but of at most its size; `None` if it is missing.
    pub(super) async fn read_stream(&self, blob: Address, zstd: bool) -> Result<Option<Bytes>, RemoteError> {
        let form = if zstd { "compressed-blobs/zstd" } else { "blobs" };
        let resource_name = self.resource(&format!("{form}/{}/{}", blob.digest, blob.size));
        let mut sink = Sink::new(blob.size, zstd).map_err(|error| self.unreadable(error))?;
        let mut resumes = 0;
        loop {
            let before = sink.len();
            match self.read_into(&mut sink, &resource_name).await {
                Ok(()) => return sink.finish().map(Some).map_err(|error| self.unreadable(error)),
                Err(ReadFailure::Sink(error)) => return Err(self.unreadable(error)),
                Err(ReadFailure::Status(status)) if status.code() == Code::NotFound => return Ok(None),
                // Without progress it is retried once: the connection may have been a stale one.
                Err(ReadFailure::Status(status)) => {
                    let stuck = sink.len() == before && resumes > 0;
                    if resumes == RESUMES || stuck || !is_break(&status) {
                        return Err(self.error(&status));
                    }
                }
            }
            if zstd {
                // The offset in a compressed stream cannot be derived from the decompressed bytes.
                sink = Sink::new(blob.size, zstd).map_err(|error| self.unreadable(error))?;
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(resumes)).await;
            resumes += 1;
        }
    }

    async fn read_into(&self, sink: &mut Sink, resource_name: &str) -> Result<(), ReadFailure> {
        let message = ReadRequest {
            resource_name: resource_name.into(),
            read_offset: sink.len() as i64,
            read_limit: 0,
        };
        let mut client = self.streams().await.map_err(ReadFailure::from)?;
        let mut frames = client.read(self.request(message)).await.map_err(ReadFailure::Status)?.into_inner();
        while let Some(frame) = frames.message().await.map_err(ReadFailure::Status)? {
            sink.take(&frame.data).map_err(ReadFailure::Sink)?;
        }
        Ok(())
    }

    /// Writes a blob. After a break it resumes at the server's offset.
    pub(crate) async fn write_stream(&self, blob: Address, content: &Content) -> Result<(), WriteFailure> {
        let (form, total) = match content {
            Content::Bytes(bytes) => ("blobs", bytes.len() as u64),
            Content::Compressed(bytes) => ("compressed-blobs/zstd", bytes.len() as u64),
            Content::File(_) => ("blobs", blob.size),
        };
        let name = || {
            let upload = unique().map_err(WriteFailure::Local)?;
            Ok(self.resource(&format!("uploads/{upload}/{form}/{}/{}", blob.digest, blob.size)))
        };
        let mut resource_name = name()?;
        let mut offset = 0;
        let mut resumes = 0;
        loop {
            let status = match self.write_from(offset, total, content, &resource_name).await? {
                // A server that already has the blob returns its size, or -1, however little was sent.
                Ok(size) if size == total as i64 || size == blob.size as i64 || size == -1 => return Ok(()),
                Ok(size) => Status::aborted(format!("it took {size} of {total} bytes")),
                Err(status) => status,
            };
            if resumes == RESUMES || !is_break(&status) {
                return Err(WriteFailure::Remote(self.error(&status)));
            }
            tokio::time::sleep(PAUSE * 2_u32.pow(resumes)).await;
            resumes += 1;
            match self.written(&resource_name).await {
                Some((_, true)) => return Ok(()),
                Some((size, false)) if size <= total => offset = size,
                // The server has no state of this upload.
                _ => {
                    offset = 0;
                    resource_name = name()?;
                }
            }
        }
    }

    /// One attempt; returns the server's committed size.
    async fn write_from(
        &self,
        offset: u64,
        total: u64,
        content: &Content,
        resource_name: &str,
    ) -> Result<Result<i64, Status>, WriteFailure> {
        let mut source = match content {
            Content::Bytes(bytes) | Content::Compressed(bytes) => Source::Bytes(bytes.clone()),
            Content::File(path) => Source::File(File::open(path).await.map_err(WriteFailure::Local)?),
        };
        source.skip(offset).await.map_err(WriteFailure::Local)?;
        let trouble = Arc::new(Mutex::new(None));
        let messages = messages(source, offset, total, resource_name.to_owned(), Arc::clone(&trouble));
        let mut client = self.streams().await.map_err(WriteFailure::Remote)?;
        let answer = client.write(self.request(messages)).await;
        if let Some(error) = trouble.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(WriteFailure::Local(error));
        }
        Ok(answer.map(|answer| answer.into_inner().committed_size))
    }

    /// The server's committed size of an upload, and true if complete; `None` if it does not report it.
    async fn written(&self, resource_name: &str) -> Option<(u64, bool)> {
        let request = self.request(QueryWriteStatusRequest { resource_name: resource_name.into() });
        let status = self.streams().await.ok()?.query_write_status(request).await.ok()?.into_inner();
        Some((u64::try_from(status.committed_size).ok()?, status.complete))
    }

    async fn streams(&self) -> Result<ByteStreamClient<Channel>, RemoteError> {
        Ok(ByteStreamClient::new(self.channel().await?).max_decoding_message_size(MAX_MESSAGE))
    }

    /// A resource name within the instance.
    fn resource(&self, rest: &str) -> String {
        let instance = &self.target.instance;
        if instance.is_empty() { rest.into() } else { format!("{instance}/{rest}") }
    }
}

/// True if a transfer may be resumed after this error.
fn is_break(status: &Status) -> bool {
    matches!(
        status.code(),
        Code::Unavailable | Code::Aborted | Code::Cancelled | Code::Unknown | Code::Internal
    )
}

enum ReadFailure {
    Status(Status),
    Sink(io::Error),
}

impl From<RemoteError> for ReadFailure {
    fn from(error: RemoteError) -> Self {
        Self::Sink(io::Error::other(error))
    }
}

/// The messages of one upload, from `offset` on.
fn messages(
    source: Source,
    offset: u64,
    total: u64,
    resource_name: String,
    trouble: Arc<Mutex<Option<io::Error>>>,
) -> impl Stream<Item = WriteRequest> + Send + 'static {
    let first = (source, offset, resource_name, false);
    stream::unfold(first, move |(mut source, offset, resource_name, finished)| {
        let trouble = Arc::clone(&trouble);
        async move {
            if finished {
                return None;
            }
            let wanted = (total - offset).min(CHUNK as u64) as usize;
            let data = match source.next(wanted).await {
                Ok(data) => data,
                // The stream ends early: the server aborts the upload, and the caller gets the file's error.
                Err(error) => {
                    *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    return None;
                }
            };
            let next = offset + data.len() as u64;
            let finish_write = next == total;
            let message = WriteRequest {
                resource_name: resource_name.clone(),
                write_offset: offset as i64,
                finish_write,
                data,
            };
            // The name is required in the first message only.
            Some((message, (source, next, String::new(), finish_write)))
        }
    })
}

/// Source of an upload.
enum Source {
    Bytes(Bytes),
    File(File),
}

impl Source {
    async fn skip(&mut self, offset: u64) -> io::Result<()> {
        match self {
            Self::Bytes(bytes) => drop(bytes.split_to(offset as usize)),
            Self::File(file) => drop(file.seek(io::SeekFrom::Start(offset)).await?),
        }
        Ok(())
    }

    async fn next(&mut self, wanted: usize) -> io::Result<Vec<u8>> {
        match self {
            Self::Bytes(bytes) => Ok(bytes.split_to(wanted).to_vec()),
            Self::File(file) => {
                let mut data = vec![0; wanted];
                file.read_exact(&mut data).await?;
                Ok(data)
            }
        }
    }
}

/// Destination of a download, limited to the blob's size.
enum Sink {
    Plain(Bounded),
    Zstd(Box<zstd::stream::write::Decoder<'static, Bounded>>),
}

struct Bounded {
    bytes: Vec<u8>,
    size: u64,
}

impl Sink {
    fn new(size: u64, zstd: bool) -> io::Result<Self> {
        // The size is untrusted: memory is allocated as bytes arrive.
        let bounded = Bounded { bytes: Vec::new(), size };
        if !zstd {
            return Ok(Self::Plain(bounded));
        }
        Ok(Self::Zstd(Box::new(zstd::stream::write::Decoder::new(bounded)?)))
    }

    fn len(&self) -> u64 {
        match self {
            Self::Plain(bounded) => bounded.bytes.len() as u64,
            Self::Zstd(_) => 0,
        }
    }

    fn take(&mut self, data: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(bounded) => bounded.write_all(data),
            Self::Zstd(decoder) => decoder.write_all(data),
        }
    }

    fn finish(self) -> io::Result<Bytes> {
        match self {
            Self::Plain(bounded) => Ok(bounded.bytes.into()),
            Self::Zstd(mut decoder) => {
                decoder.flush()?;
                Ok(decoder.into_inner().bytes.into())
            }
        }
    }
}

impl Write for Bounded {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        if data.len() as u64 > self.size - self.bytes.len() as u64 {
            return Err(io::Error::other(format!("a blob of {} bytes has more than that", self.size)));
        }
        self.bytes.extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A random UUID (version 4) that identifies an upload.
fn unique() -> io::Result<String> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes)?;
    bytes[6] = bytes[6] & 0x0f | 0x40;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let hex = hex::encode(bytes);
    Ok([&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-"))
}
