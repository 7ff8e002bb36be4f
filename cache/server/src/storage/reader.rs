//! Streaming of an entry.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};

use bytes::Bytes;
use futures_util::{Stream, TryStreamExt as _};
use sha2::{Digest as _, Sha256};

use super::upload::{blocking, compress};
use super::{FRAME, Key, Kind, Storage, StorageError, Stored};

/// Encoding of a streamed entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// Uncompressed.
    Plain,
    /// As a series of zstd frames.
    Zstd,
}

/// An open entry. It stays readable if the entry is evicted meanwhile.
pub(crate) struct Reader {
    storage: Storage,
    key: Key,
    stored: Stored,
    file: Option<File>,
    form: Form,
    /// Read offset in the file.
    at: u64,
    /// Number of bytes of the entry read so far.
    position: u64,
    /// Start of the requested range.
    start: u64,
    /// End of the requested range, exclusive.
    end: u64,
    hasher: Option<Sha256>,
    /// True if a piece was returned.
    begun: bool,
}

impl Reader {
    /// A reader of the whole entry; the empty blob needs no file.
    pub(super) fn new(storage: Storage, key: Key, stored: Stored, file: Option<File>, form: Form) -> Self {
        Self {
            storage,
            key,
            stored,
            file,
            form,
            at: 0,
            position: 0,
            start: 0,
            end: stored.size,
            hasher: (key.kind == Kind::Blob).then(Sha256::new),
            begun: false,
        }
    }

    /// Size of the entry, whatever the form.
    pub fn size(&self) -> u64 {
        self.stored.size
    }

    /// Limits the range to at most `limit` bytes from `start` on.
    pub fn range(mut self, start: u64, limit: Option<u64>) -> Self {
        self.start = start.min(self.stored.size);
        self.end =
            limit.map_or(self.stored.size, |limit| self.start.saturating_add(limit)).min(self.stored.size);
        if self.start != 0 || self.end != self.stored.size {
            self.hasher = None;
        }
        if !self.stored.packed {
            // Skips the bytes before the range.
            self.position = self.start;
            self.at = self.start;
        }
        self
    }

    /// The pieces, each of at most [`FRAME`] bytes before compression.
    pub fn stream(self) -> impl Stream<Item = Result<Bytes, StorageError>> + Send + 'static {
        futures_util::stream::unfold(Some(self), async |reader| {
            let mut reader = reader?;
            let read = blocking(move || {
                let piece = reader.next()?;
                Ok((piece, reader))
            });
            match read.await {
                Ok((Some(piece), reader)) => Some((Ok(piece.into()), Some(reader))),
                Ok((None, _)) => None,
                Err(error) => Some((Err(error), None)),
            }
        })
    }

    /// All bytes at once, for entries known to be small.
    ///
    /// Concatenated here and not in the blocking threads that read the pieces: each of those many threads would keep
    /// the memory of the largest entry that it ever concatenated.
    pub async fn all(self) -> Result<Vec<u8>, StorageError> {
        let mut all = Vec::with_capacity((self.end - self.start) as usize);
        let mut pieces = std::pin::pin!(self.stream());
        while let Some(piece) = pieces.try_next().await? {
            all.extend_from_slice(&piece);
        }
        Ok(all)
    }

    /// The next piece.
    fn next(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        let result = self.step();
        if let Err(StorageError::Disk(error)) = &result
            && matches!(error.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        {
            self.storage.discard(&self.key);
        }
        match result {
            // Zstd encodes the empty blob as a frame, too.
            Ok(None) if self.form == Form::Zstd && !self.begun => {
                self.begun = true;
                Ok(Some(compress(&[])?))
            }
            Ok(piece) => {
                self.begun = true;
                Ok(piece)
            }
            Err(error) => Err(error),
        }
    }

    fn step(&mut self) -> Result<Option<Vec<u8>>, StorageError> {
        // Compressed bytes are sent unchanged; the receiver's digest check detects damage.
        if self.form == Form::Zstd && self.stored.packed && self.hasher.is_some() {
            let piece = self.read_file(FRAME)?;
            self.at += piece.len() as u64;
            return Ok((!piece.is_empty()).then_some(piece));
        }
        while self.position < self.end {
            let from = self.position;
            let frame = self.read_frame()?;
            self.position += frame.len() as u64;
            if let Some(hasher) = &mut self.hasher {
                hasher.update(&frame);
                // Reported before the last piece is returned, so that no client has a complete wrong blob.
                if self.position == self.stored.size
                    && std::mem::take(hasher).finalize()[..] != self.key.digest.0[..]
                {
                    return Err(damaged("its SHA-256 is another").into());
                }
            }
            if self.position <= self.start {
                continue;
            }
            let head = self.start.saturating_sub(from) as usize;
            let tail = (self.end.min(self.position) - from) as usize;
            let piece = if (head, tail) == (0, frame.len()) { frame } else { frame[head..tail].to_vec() };
            return Ok(Some(if self.form == Form::Zstd { compress(&piece)? } else { piece }));
        }
        Ok(None)
    }

    /// The next [`FRAME`] bytes of the entry, or the rest.
    fn read_frame(&mut self) -> io::Result<Vec<u8>> {
        if !self.stored.packed {
            let frame = self.read_file(FRAME)?;
            self.at += frame.len() as u64;
            return if frame.is_empty() { Err(damaged("it is too short")) } else { Ok(frame) };
        }
        let packed = self.read_file(zstd::zstd_safe::compress_bound(FRAME))?;
        let length = zstd::zstd_safe::find_frame_compressed_size(&packed)
            .map_err(|code| damaged(zstd::zstd_safe::get_error_name(code)))?;
        let frame =
            zstd::bulk::decompress(&packed[..length], FRAME).map_err(|error| damaged(&error.to_string()))?;
        self.at += length as u64;
        if frame.is_empty() { Err(damaged("a frame is empty")) } else { Ok(frame) }
    }

    /// At most `length` bytes of the file, from the read offset.
    fn read_file(&self, length: usize) -> io::Result<Vec<u8>> {
        let Some(mut file) = self.file.as_ref() else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(self.at))?;
        let left = self.stored.length.saturating_sub(self.at).min(length as u64);
        let mut bytes = Vec::with_capacity(left as usize);
        file.take(left).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The error of a file that the server did not write.
fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("a file of the cache is damaged: {why}"))
}
