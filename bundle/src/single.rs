//! A bundle as one executable: the runtime, then the `.tar.gz` of the other files, then a trailer of 56 bytes: the archive's
//! length in 8 bytes, least significant first, the SHA-256 of all before in 32, and the 16 bytes of [`MARK`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use sheaf_foundation::Digest;

use crate::archive::{self, damaged};
use crate::manifest::RUNTIME;

/// The end of an executable that has a bundle.
const MARK: &[u8; 16] = b"sheaf bundle 1\n\0";

/// Length of the trailer.
const TRAILER: u64 = 56;

/// An archive at the end of an executable.
pub struct Appended {
    file: File,
    start: u64,
    length: u64,
    digest: Digest,
}

/// Writes a runtime with an archive behind it.
///
/// # Errors
///
/// It cannot be written.
pub fn append(runtime: &[u8], archive: &[u8], out: &mut dyn Write) -> io::Result<()> {
    let length = (archive.len() as u64).to_le_bytes();
    let mut hash = Sha256::new();
    for part in [runtime, archive, &length] {
        hash.update(part);
        out.write_all(part)?;
    }
    out.write_all(&hash.finalize())?;
    out.write_all(MARK)
}

/// The archive of an executable; `None` if it has none.
///
/// # Errors
///
/// The file cannot be read, or its trailer is damaged.
pub fn find(executable: &Path) -> io::Result<Option<Appended>> {
    let mut file = File::open(executable)?;
    let end = file.seek(SeekFrom::End(0))?;
    let Some(start) = end.checked_sub(TRAILER) else { return Ok(None) };
    file.seek(SeekFrom::Start(start))?;
    let mut trailer = [0; TRAILER as usize];
    file.read_exact(&mut trailer)?;
    let (length, rest) = trailer.split_at(8);
    let (digest, mark) = rest.split_at(32);
    if mark != MARK {
        return Ok(None);
    }
    let mut bytes = [0; 8];
    bytes.copy_from_slice(length);
    let length = u64::from_le_bytes(bytes);
    let start = start.checked_sub(length).ok_or_else(|| damaged("it is longer than the file"))?;
    let mut sum = [0; 32];
    sum.copy_from_slice(digest);
    Ok(Some(Appended { file, start, length, digest: Digest(sum) }))
}

impl Appended {
    /// Unpacks the bundle without its runtime into an empty folder, after the digest was compared.
    ///
    /// # Errors
    ///
    /// The file is damaged, or the folder cannot be written.
    pub fn unpack(&mut self, folder: &Path) -> io::Result<()> {
        let end = self.start + self.length + 8;
        let mut hash = Sha256::new();
        let mut before = self.part(0, end)?;
        let mut piece = vec![0; 1 << 16];
        loop {
            let n = before.read(&mut piece)?;
            if n == 0 {
                break;
            }
            hash.update(&piece[..n]);
        }
        if Digest(hash.finalize().into()) != self.digest {
            return Err(damaged("its bytes are not those that it was made of"));
        }
        let (start, length) = (self.start, self.length);
        archive::unpack(GzDecoder::new(self.part(start, length)?), folder)
    }

    /// [`Appended::unpack`] with the runtime.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn unpack_all(&mut self, folder: &Path) -> io::Result<()> {
        self.unpack(folder)?;
        let length = self.start;
        let mut out = File::create(folder.join(RUNTIME))?;
        io::copy(&mut self.part(0, length)?, &mut out).map(drop)
    }

    fn part(&mut self, start: u64, length: u64) -> io::Result<Take<&mut File>> {
        self.file.seek(SeekFrom::Start(start))?;
        Ok(Read::by_ref(&mut self.file).take(length))
    }
}
