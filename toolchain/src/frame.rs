//! Framing of the protocol between the two sides of a compile worker: a mark, a kind, and length-prefixed parts.

use std::io::{self, ErrorKind, Read, Write};

/// Start of every frame, so that a stray print into the stream is detected instead of being read as a length.
const MARK: [u8; 4] = *b"shf1";

/// Maximum number of parts of a frame.
const MAX_PARTS: u32 = 1 << 20;

/// A kind and its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) parts: Vec<Vec<u8>>,
}

impl Frame {
    /// Writes the frame: mark, kind, number of parts (u32), and for each its length (u64) and bytes, little-endian.
    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let count = u32::try_from(self.parts.len()).ok().filter(|count| *count <= MAX_PARTS);
        let count =
            count.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "too many parts in a frame"))?;
        out.write_all(&MARK)?;
        out.write_all(&[self.kind])?;
        out.write_all(&count.to_le_bytes())?;
        for part in &self.parts {
            out.write_all(&(part.len() as u64).to_le_bytes())?;
            out.write_all(part)?;
        }
        out.flush()
    }

    /// Reads one frame, or `None` at the end of the stream. A stream that ends within a frame is an `UnexpectedEof`
    /// error, a malformed one an `InvalidData` error.
    pub(crate) fn read(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut mark = Vec::new();
        input.by_ref().take(MARK.len() as u64).read_to_end(&mut mark)?;
        if mark.is_empty() {
            return Ok(None);
        }
        if mark != MARK {
            let found = String::from_utf8_lossy(&mark).into_owned();
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                format!("a frame cannot begin with {found:?}"),
            ));
        }
        let [kind] = array(input)?;
        let count = u32::from_le_bytes(array(input)?);
        if count > MAX_PARTS {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("a frame cannot have {count} parts")));
        }
        let parts = (0..count).map(|_| part(input)).collect::<io::Result<_>>()?;
        Ok(Some(Self { kind, parts }))
    }
}

fn array<const N: usize>(input: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    input.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn part(input: &mut impl Read) -> io::Result<Vec<u8>> {
    let length = u64::from_le_bytes(array(input)?);
    // Memory grows with the received bytes, not with the announced length.
    let mut bytes = Vec::new();
    input.by_ref().take(length).read_to_end(&mut bytes)?;
    if bytes.len() as u64 == length { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_back_as_they_were() {
        let frames = [
            Frame { kind: 0, parts: vec![] },
            Frame { kind: 7, parts: vec![vec![], b"text".to_vec(), vec![0; 100_000]] },
        ];
        let mut stream = Vec::new();
        for frame in &frames {
            frame.write(&mut stream).expect("memory");
        }
        let mut input = stream.as_slice();
        for frame in frames {
            assert_eq!(Frame::read(&mut input).expect("whole"), Some(frame));
        }
        assert_eq!(Frame::read(&mut input).expect("the end"), None);
    }

    #[test]
    fn a_stream_cut_anywhere_within_a_frame_is_an_error() {
        let mut stream = Vec::new();
        Frame { kind: 1, parts: vec![b"abc".to_vec(), b"d".to_vec()] }.write(&mut stream).expect("memory");
        for length in 1..stream.len() {
            assert!(Frame::read(&mut &stream[..length]).is_err(), "cut at {length}");
        }
    }

    #[test]
    fn other_text_is_not_a_frame() {
        let error = |bytes: &[u8]| Frame::read(&mut &*bytes).expect_err("not a frame").to_string();
        insta::assert_snapshot!(error(b"warning: hello"), @r#"a frame cannot begin with "warn""#);
        insta::assert_snapshot!(error(b"shf1\x00\xff\xff\xff\xff"), @"a frame cannot have 4294967295 parts");
        // A length of 2^64-1 is not allocated.
        insta::assert_snapshot!(error(b"shf1\x00\x01\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff"), @"unexpected end of file");
    }
}
