//! Stamps: the cheap check that an entry is as it was when its hash was verified.

use std::fmt::Write as _;
use std::fs::{self, Metadata};
use std::io;
use std::path::Path;
use std::time::UNIX_EPOCH;

/// First line of a stamp; another format has another.
const FIRST: &str = "sheaf-stamp 2\n";

/// Last line of a stamp: after a power failure the rest may be missing.
const LAST: &str = "end\n";

/// The stamp of the folder at `tree`: a line for it and for all that is in it, with kind, size, times, mode and path.
///
/// Linux and macOS note a change in a time that programs cannot set back. The time of a folder changes if a name is added to
/// it or removed, so a check asks for what the stamp names, and lists no folder.
pub(super) fn of(tree: &Path) -> io::Result<String> {
    let mut lines = FIRST.to_owned();
    describe("", &fs::symlink_metadata(tree)?, &mut lines);
    list(tree, "", &mut lines)?;
    lines.push_str(LAST);
    Ok(lines)
}

/// True if the folder at `tree` has the stamp in the file at `stamp`.
pub(super) fn matches(tree: &Path, stamp: &Path) -> bool {
    let Ok(text) = fs::read_to_string(stamp) else { return false };
    let lines = text.strip_prefix(FIRST).and_then(|lines| lines.strip_suffix(LAST));
    let mut found = String::new();
    let is_same = |line: &str| {
        let path = line.strip_suffix('\n').and_then(|line| line.splitn(FIELDS, ' ').nth(FIELDS - 1));
        let Some(path) = path else { return false };
        let place =
            if path.is_empty() { fs::symlink_metadata(tree) } else { fs::symlink_metadata(tree.join(path)) };
        found.clear();
        place.is_ok_and(|metadata| {
            describe(path, &metadata, &mut found);
            found == line
        })
    };
    lines.is_some_and(|lines| !lines.is_empty() && lines.split_inclusive('\n').all(is_same))
}

fn list(folder: &Path, path: &str, lines: &mut String) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        // Of the link itself.
        let metadata = entry.metadata()?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let path = if path.is_empty() { name.into_owned() } else { format!("{path}/{name}") };
        describe(&path, &metadata, lines);
        if metadata.is_dir() {
            list(&entry.path(), &path, lines)?;
        }
    }
    Ok(())
}

/// Number of fields of a line; the last is the path.
const FIELDS: usize = 6;

fn describe(path: &str, metadata: &Metadata, lines: &mut String) {
    let modified = metadata.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let modified = modified.map_or(0, |time| time.as_nanos());
    let kind = match metadata.file_type() {
        kind if kind.is_dir() => 'd',
        kind if kind.is_symlink() => 'l',
        _ => 'f',
    };
    let _ = write!(lines, "{kind} {} {modified} ", metadata.len());
    system(metadata, lines);
    // Names of a verified tree have no line ends.
    let _ = writeln!(lines, " {path}");
}

#[cfg(unix)]
fn system(metadata: &Metadata, lines: &mut String) {
    use std::os::unix::fs::MetadataExt;
    let _ = write!(lines, "{:o} {}.{}", metadata.mode(), metadata.ctime(), metadata.ctime_nsec());
}

#[cfg(not(unix))]
fn system(metadata: &Metadata, lines: &mut String) {
    let _ = write!(lines, "{} -", metadata.permissions().readonly());
}
