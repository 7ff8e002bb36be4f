//! A bundle as one executable: the runtime, then the `.tar.gz` of the folder, then a trailer of 56 bytes: the archive's
//! length in 8 bytes, least significant first, its SHA-256 in 32, and the 16 bytes of [`MARK`].

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Take, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use sha2::{Digest as _, Sha256};
use sheaf_foundation::Digest;

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
    out.write_all(runtime)?;
    out.write_all(archive)?;
    out.write_all(&(archive.len() as u64).to_le_bytes())?;
    out.write_all(&Digest::of(archive).0)?;
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
    fn archive(&mut self) -> io::Result<Take<&mut File>> {
        self.file.seek(SeekFrom::Start(self.start))?;
        Ok(Read::by_ref(&mut self.file).take(self.length))
    }

    /// Unpacks the bundle into an empty folder, after its digest was compared.
    ///
    /// # Errors
    ///
    /// The archive is damaged, or the folder cannot be written.
    pub fn unpack(&mut self, folder: &Path) -> io::Result<()> {
        let mut hash = Sha256::new();
        let mut archive = self.archive()?;
        let mut piece = vec![0; 1 << 16];
        loop {
            let n = archive.read(&mut piece)?;
            if n == 0 {
                break;
            }
            hash.update(&piece[..n]);
        }
        if Digest(hash.finalize().into()) != self.digest {
            return Err(damaged("its bytes are not those that were appended"));
        }
        unpack(self.archive()?, folder)
    }
}

/// Unpacks a `.tar.gz` of plain files and folders into a folder, and nothing outside of it.
///
/// # Errors
///
/// The archive is damaged, has links or other kinds of files, or the folder cannot be written.
pub fn unpack(archive: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(GzDecoder::new(archive));
    for entry in archive.entries()? {
        let mut entry = entry?;
        let kind = entry.header().entry_type();
        let path = entry.path()?.into_owned();
        if !kind.is_file() && !kind.is_dir() {
            return Err(damaged(&format!("{} is no plain file", path.display())));
        }
        // It refuses paths that leave the folder.
        if !entry.unpack_in(folder)? {
            return Err(damaged(&format!("{} is outside of the bundle", path.display())));
        }
    }
    Ok(())
}

fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the bundle is damaged: {why}"))
}
