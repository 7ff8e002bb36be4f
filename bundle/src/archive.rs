//! A bundle as a `.tar.gz` or a `.tar.xz`. The gzip header has a field with the SHA-256 of the whole file, computed with zeros in its
//! place: other readers pass over it. The xz format has digests of its own for all that is in a file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::read::GzDecoder;
use flate2::{Compression, GzBuilder};
use lzma_rust2::{CheckType, FilterType, XzOptions, XzReader, XzWriter};
use sheaf_foundation::Digest;

use crate::manifest::{MANIFEST, RUNTIME, SIGNATURE};
use crate::verify::files_in;

/// Start of the digest's field: its name and length, as RFC 1952, section 2.3.1.1, lays fields out.
const FIELD: [u8; 4] = [b'S', b'H', 32, 0];

/// Place of the digest: the header has 10 bytes before the length of its fields.
const DIGEST_AT: usize = 10 + 2 + FIELD.len();

/// Start of a file in the xz format.
const XZ: &[u8; 6] = b"\xfd7zXZ\0";

/// Maximum memory of decompression, in KB: ten times that of what [`pack_xz`] writes.
const MAX_MEMORY: u32 = 100_000;

/// The `.tar.gz` of a folder under a name; equal folders give equal bytes. Without the runtime, unless `with_runtime`.
///
/// # Errors
///
/// A file cannot be read.
pub fn pack(folder: &Path, name: &str, with_runtime: bool) -> io::Result<Vec<u8>> {
    let field: Vec<u8> = FIELD.into_iter().chain([0; 32]).collect();
    let gzip = GzBuilder::new().extra(field).write(Vec::new(), Compression::best());
    let mut bytes = tar_of(folder, name, with_runtime, gzip)?.finish()?;
    let digest = Digest::of(&bytes);
    bytes[DIGEST_AT..DIGEST_AT + 32].copy_from_slice(&digest.0);
    Ok(bytes)
}

/// The `.tar.xz` of a folder under a name, for a platform: more than a quarter smaller than the `.tar.gz`.
///
/// # Errors
///
/// A file cannot be read.
pub fn pack_xz(folder: &Path, name: &str, platform: &str) -> io::Result<Vec<u8>> {
    // The level of 8 MB of memory, with the longest search.
    let mut options = XzOptions::with_preset(6);
    options.lzma_options.nice_len = 273;
    options.set_check_sum_type(CheckType::Sha256);
    match platform.rsplit_once('-') {
        Some((_, "x86_64")) => options.prepend_pre_filter(FilterType::BcjX86, 0),
        Some((_, "aarch64")) => {
            // Instructions of four bytes.
            (options.lzma_options.lc, options.lzma_options.lp) = (2, 2);
            options.prepend_pre_filter(FilterType::BcjArm64, 0);
        }
        _ => {}
    }
    tar_of(folder, name, true, XzWriter::new(Vec::new(), options)?)?.finish()
}

/// Writes the files of a bundle as a tar archive.
fn tar_of<W: Write>(folder: &Path, name: &str, with_runtime: bool, to: W) -> io::Result<W> {
    let listed = files_in(folder)?.into_iter().filter(|file| with_runtime || file.path != RUNTIME);
    let listed = listed.map(|file| (file.path, file.executable));
    let own = [MANIFEST, SIGNATURE].into_iter().filter(|own| folder.join(own).is_file());
    let mut tar = tar::Builder::new(to);
    for (path, executable) in listed.chain(own.map(|own| (own.to_owned(), false))) {
        let file = File::open(folder.join(&path))?;
        let mut header = tar::Header::new_gnu();
        header.set_size(file.metadata()?.len());
        header.set_mode(if executable { 0o755 } else { 0o644 });
        header.set_mtime(0);
        tar.append_data(&mut header, Path::new(name).join(path), file)?;
    }
    tar.into_inner()
}

/// Unpacks the archive in these bytes, after its digests were compared.
///
/// # Errors
///
/// It is damaged, or none that [`pack`] or [`pack_xz`] has made; the folder cannot be written.
pub fn unpack_checked(mut bytes: Vec<u8>, folder: &Path) -> io::Result<()> {
    if bytes.starts_with(XZ) {
        let mut rest = &bytes[..];
        let whole = io::copy(&mut xz_reader(&mut rest), &mut io::sink());
        whole.map_err(|error| damaged(&error.to_string()))?;
        if !rest.is_empty() {
            return Err(damaged("bytes follow its end"));
        }
        return unpack(xz_reader(&bytes[..]), folder);
    }
    let field = bytes.get(DIGEST_AT - FIELD.len()..DIGEST_AT + 32);
    let Some(sum) = field.filter(|field| field[..4] == FIELD).map(|field| field[4..].to_owned()) else {
        return Err(damaged("it is no archive that `sheaf bundle` has made"));
    };
    bytes[DIGEST_AT..DIGEST_AT + 32].fill(0);
    if Digest::of(&bytes).0[..] != sum[..] {
        return Err(damaged("its bytes are not those that it was made of"));
    }
    unpack(GzDecoder::new(&bytes[..]), folder)
}

fn xz_reader<R: Read>(from: R) -> XzReader<R> {
    XzReader::new_mem_limit(from, false, MAX_MEMORY)
}

/// Unpacks a tar archive of plain files and folders into a folder, and nothing outside of it.
///
/// # Errors
///
/// The archive is damaged, has links or other kinds of files, or the folder cannot be written.
pub(crate) fn unpack(archive: impl Read, folder: &Path) -> io::Result<()> {
    let mut archive = tar::Archive::new(archive);
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

pub(crate) fn damaged(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the bundle is damaged: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("src")).unwrap();
        std::fs::write(folder.path().join("src/main.shf"), "(print 1)".repeat(50)).unwrap();
        std::fs::write(folder.path().join(MANIFEST), "{}").unwrap();
        std::fs::write(folder.path().join(RUNTIME), "runs").unwrap();
        folder
    }

    /// The archives of a folder: `.tar.gz`, and `.tar.xz` for each kind of platform.
    fn packed(folder: &Path) -> Vec<Vec<u8>> {
        let platforms = ["linux-x86_64", "linux-aarch64", "other"];
        let xz = platforms.map(|platform| pack_xz(folder, "xor", platform).unwrap());
        [pack(folder, "xor", true).unwrap()].into_iter().chain(xz).collect()
    }

    #[test]
    fn is_unpacked_as_it_was_packed() {
        let folder = folder();
        assert_eq!(packed(folder.path()), packed(folder.path()));
        for bytes in packed(folder.path()) {
            let again = tempfile::tempdir().unwrap();
            unpack_checked(bytes, again.path()).unwrap();
            assert_eq!(files_in(&again.path().join("xor")).unwrap(), files_in(folder.path()).unwrap());
        }
        let without = tempfile::tempdir().unwrap();
        unpack_checked(pack(folder.path(), "", false).unwrap(), without.path()).unwrap();
        assert!(!without.path().join(RUNTIME).exists());
    }

    #[test]
    fn every_altered_bit_and_every_missing_end_is_found() {
        for bytes in packed(folder().path()) {
            let altered = (0..8 * bytes.len()).map(|bit| {
                let mut altered = bytes.clone();
                altered[bit / 8] ^= 1 << (bit % 8);
                altered
            });
            let cut = (0..bytes.len()).map(|end| bytes[..end].to_vec());
            let longer = [&bytes[..], &[0]].concat();
            for (i, damaged) in altered.chain(cut).chain([longer]).enumerate() {
                let error = unpack_checked(damaged, tempfile::tempdir().unwrap().path()).unwrap_err();
                assert!(error.to_string().starts_with("the bundle is damaged"), "{i}: {error}");
            }
        }
    }

    #[test]
    fn nothing_is_written_outside_of_the_folder() {
        let outside = |kind: tar::EntryType, path: &str, link: &str| {
            let mut tar = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_entry_type(kind);
            header.as_mut_bytes()[..path.len()].copy_from_slice(path.as_bytes());
            header.set_size(0);
            header.set_mode(0o644);
            if !link.is_empty() {
                header.set_link_name(link).unwrap();
            }
            header.set_cksum();
            tar.append(&header, std::io::empty()).unwrap();
            let bytes = tar.into_inner().unwrap();
            let folder = tempfile::tempdir().unwrap();
            let inside = folder.path().join("inside");
            std::fs::create_dir(&inside).unwrap();
            let error = unpack(&bytes[..], &inside).unwrap_err();
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "{path}");
            error.to_string()
        };
        let escaped = outside(tar::EntryType::Regular, "../escaped", "");
        assert_eq!(escaped, "the bundle is damaged: ../escaped is outside of the bundle");
        let link = outside(tar::EntryType::Symlink, "data", "/etc");
        assert_eq!(link, "the bundle is damaged: data is no plain file");
    }
}
