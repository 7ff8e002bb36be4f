//! Stamps: the cheap check that an entry is as it was when its hash was verified.

use std::fmt::Write;
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

use sha2::{Digest, Sha256};

/// First line of a stamp; another format has another.
const VERSION: &str = "sheaf-stamp 1";

/// The stamp of the folder at `tree`: a digest of the names, kinds, sizes, modes and times of all that is in it. Linux and
/// macOS note a change in a time that programs cannot set back.
pub(super) fn of(tree: &Path) -> io::Result<String> {
    let mut listing = String::new();
    list(tree, "", &mut listing)?;
    Ok(format!("{VERSION}\n{}\n", hex::encode(Sha256::digest(listing.as_bytes()))))
}

/// True if the folder at `tree` has the stamp in the file at `stamp`.
pub(super) fn matches(tree: &Path, stamp: &Path) -> bool {
    let Ok(expected) = fs::read_to_string(stamp) else { return false };
    of(tree).is_ok_and(|found| found == expected)
}

fn list(folder: &Path, path: &str, listing: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Of the link itself.
        let metadata = entry.metadata()?;
        let name = entry.file_name();
        let path = format!("{path}/{}", name.to_string_lossy());
        describe(&path, &metadata, listing);
        if metadata.is_dir() {
            list(&entry.path(), &path, listing)?;
        }
    }
    Ok(())
}

fn describe(path: &str, metadata: &Metadata, listing: &mut String) {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |time| time.as_nanos());
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => 'd',
        kind if kind.is_symlink() => 'l',
        _ => 'f',
    };
    // Names have no line ends, and come last.
    let _ = writeln!(listing, "{kind} {} {modified} {} {path}", metadata.len(), system(metadata));
}

#[cfg(unix)]
fn system(metadata: &Metadata) -> String {
    use std::os::unix::fs::MetadataExt;
    format!("{:o} {}.{}", metadata.mode(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn system(metadata: &Metadata) -> String {
    metadata.permissions().readonly().to_string()
}
