//! Compiled programs with verified bytes.

use std::ptr::NonNull;
use std::rc::Rc;

use sha2::{Digest as _, Sha256};

/// IREE reads the file in place: its tables need an alignment of 16 bytes, and constants are used without a copy if
/// aligned to 64.
const ALIGNMENT: usize = 64;

/// A compiled program with a verified SHA-256.
///
/// IREE trusts its input, and damaged bytes can crash the process, so there is no other way to create one. Cloning is
/// cheap; the bytes are shared with every [`Program`](crate::Program) that was loaded from them.
#[derive(Clone)]
pub struct Vmfb {
    /// The verified bytes. Borrowed once, so that the loaded bytes are the verified ones.
    bytes: NonNull<[u8]>,
    /// Keeps `bytes` in place; never accessed again.
    _owner: Rc<dyn AsRef<[u8]>>,
}

impl Vmfb {
    /// Checks the SHA-256 of `bytes` against `expected` and keeps them.
    ///
    /// `bytes` may be any owner of bytes: a `Vec<u8>`, an `Arc<[u8]>`, a mapped file that is not written to. They are
    /// not copied if they start at a multiple of 64, as mapped files do; otherwise they are copied once.
    pub fn verify(bytes: impl AsRef<[u8]> + 'static, expected: &[u8; 32]) -> Result<Self, DigestMismatch> {
        // Boxed first: only then is the address of the bytes final.
        let mut owner: Rc<dyn AsRef<[u8]>> = Rc::new(bytes);
        if !(*owner).as_ref().as_ptr().addr().is_multiple_of(ALIGNMENT) {
            owner = Rc::new(Aligned::copy_of((*owner).as_ref()));
        }
        let slice = (*owner).as_ref();
        let actual = sha256(slice);
        if actual != *expected {
            return Err(DigestMismatch { expected: *expected, actual });
        }
        Ok(Self { bytes: NonNull::from(slice), _owner: owner })
    }

    /// The whole file.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the slice was borrowed from `_owner`, which lives as long as `self`, does not move inside its `Rc`
        // and is never touched again, so nothing can end or change the borrow before `self` does.
        unsafe { self.bytes.as_ref() }
    }
}

impl std::fmt::Debug for Vmfb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Vmfb({} bytes)", self.bytes().len())
    }
}

/// SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The digest does not match: the bytes are damaged, truncated, or another file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "the program's bytes are not the expected ones: their SHA-256 is {}, not {}; \
     delete the file and compile or fetch it again",
    hex::encode(actual),
    hex::encode(expected)
)]
pub struct DigestMismatch {
    /// The expected digest.
    pub expected: [u8; 32],
    /// The actual digest.
    pub actual: [u8; 32],
}

/// Bytes that start at a multiple of [`ALIGNMENT`].
struct Aligned {
    lines: Vec<Line>,
    length: usize,
}

#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u8; ALIGNMENT]);

impl Aligned {
    fn copy_of(bytes: &[u8]) -> Self {
        let line = |chunk: &[u8]| {
            let mut line = Line([0; ALIGNMENT]);
            line.0[..chunk.len()].copy_from_slice(chunk);
            line
        };
        Self { lines: bytes.chunks(ALIGNMENT).map(line).collect(), length: bytes.len() }
    }
}

impl AsRef<[u8]> for Aligned {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: a `Line` is 64 bytes without padding, so the lines are one run of initialised bytes, and `length`
        // is at most their number.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.length) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_the_expected_digest_are_kept_and_aligned() {
        for length in [0, 1, 63, 64, 65, 1000] {
            let bytes: Vec<u8> = (0..length).map(|i| i as u8).collect();
            let vmfb = Vmfb::verify(bytes.clone(), &sha256(&bytes)).unwrap();
            assert_eq!(vmfb.bytes(), bytes);
            assert!(vmfb.bytes().as_ptr().addr().is_multiple_of(ALIGNMENT));
        }
    }

    #[test]
    fn aligned_bytes_are_not_copied() {
        let bytes = Aligned::copy_of(&[7; 100]);
        let place = bytes.as_ref().as_ptr();
        let vmfb = Vmfb::verify(bytes, &sha256(&[7; 100])).unwrap();
        assert_eq!(vmfb.bytes().as_ptr(), place);
    }

    #[test]
    fn one_changed_bit_is_refused() {
        let mut bytes = vec![1, 2, 3];
        let digest = sha256(&bytes);
        bytes[1] ^= 1;
        let error = Vmfb::verify(bytes, &digest).unwrap_err();
        assert_eq!(error.expected, digest);
        insta::assert_snapshot!(error, @"the program's bytes are not the expected ones: their SHA-256 is 50ec7fa7916881c3a4300dada80851ee0a0e4d17006ba678fb53158d224dbcb6, not 039058c6f2c0cb492c533b0a4d14ef77cc0f78abccced5287d84a1a2011cfb81; delete the file and compile or fetch it again");
    }
}
