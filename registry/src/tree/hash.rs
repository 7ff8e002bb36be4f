//! Hash of a tree.

use std::fmt;
use std::io::{self, Read};
use std::path::Path;
use std::str::FromStr;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use nix_nar::{Encoder, NarError};
use sha2::{Digest, Sha256};

/// Size of the reads, in bytes. The encoder wants room for the longest name and the longest target of a link at once.
const BUFFER: usize = 64 * 1024;

/// Prefix of a hash in SRI form.
const PREFIX: &str = "sha256-";

/// SHA-256 of the NAR of a folder, written as `sha256-<base64>`, the form of Nix and of subresource integrity.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeHash([u8; 32]);

/// A text that is no tree hash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no tree hash: one is `sha256-` and the base64 form of 32 bytes", .0.escape_debug())]
pub struct NotATreeHash(pub String);

impl TreeHash {
    /// The 64 lower-case hexadecimal digits, a name for files.
    pub fn hex(&self) -> String {
        hex::encode(self.0)
    }

    /// The hash with these hexadecimal digits, as [`hex`](Self::hex) writes them.
    pub fn from_hex(digits: &str) -> Option<Self> {
        let lower = digits.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit));
        let mut bytes = [0; 32];
        (lower && hex::decode_to_slice(digits, &mut bytes).is_ok()).then_some(Self(bytes))
    }
}

impl fmt::Display for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD.encode(self.0))
    }
}

impl fmt::Debug for TreeHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for TreeHash {
    type Err = NotATreeHash;

    fn from_str(text: &str) -> Result<Self, NotATreeHash> {
        let bytes = text.strip_prefix(PREFIX).and_then(|digits| STANDARD.decode(digits).ok());
        let bytes = bytes.and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or_else(|| NotATreeHash(text.into()))
    }
}

/// The hash of the folder at `path`. The files are read in pieces.
///
/// An error if a file cannot be read, changes meanwhile, or is neither file, folder nor link, or if a name is not
/// UTF-8.
pub fn hash(path: &Path) -> io::Result<TreeHash> {
    let mut nar = Encoder::new(path).map_err(|error| match error {
        NarError::IoError(error) => error,
        error => io::Error::other(error.to_string()),
    })?;
    let mut digest = Sha256::new();
    let mut buffer = vec![0; BUFFER];
    loop {
        match nar.read(&mut buffer) {
            Ok(0) => return Ok(TreeHash(digest.finalize().into())),
            Ok(length) => digest.update(&buffer[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
