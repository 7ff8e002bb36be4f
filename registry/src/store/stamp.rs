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

/// True if the folder `tree` of an entry has the stamp in its file `stamp`.
///
/// The path of the store is walked once, and not for each file: with a dozen files in each of 200 packages, that is a third of the
/// time that a program with them takes to start.
#[cfg(unix)]
pub(super) fn matches(entry: &Path) -> bool {
    use rustix::fs::{AtFlags, Mode, OFlags, open, openat, statat};
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let Ok(entry) = open(entry, flags | OFlags::DIRECTORY, Mode::empty()) else { return false };
    let Ok(stamp) = openat(&entry, "stamp", flags, Mode::empty()) else { return false };
    // Not by std, which asks for size and position first.
    let mut bytes = vec![0; USUAL];
    let mut length = 0;
    loop {
        match rustix::io::read(&stamp, &mut bytes[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(rustix::io::Errno::INTR) => {}
            Err(_) => return false,
        }
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
    }
    let Ok(text) = str::from_utf8(&bytes[..length]) else { return false };
    let mut place = String::new();
    all_lines(text, |line, path| {
        place.clear();
        place.push_str("tree");
        if !path.is_empty() {
            place.push('/');
            place.push_str(path);
        }
        statat(&entry, &*place, AtFlags::SYMLINK_NOFOLLOW).is_ok_and(|found| is_of(line, &found))
    })
}

/// The same, by path.
#[cfg(not(unix))]
pub(super) fn matches(entry: &Path) -> bool {
    let tree = entry.join("tree");
    let Ok(text) = fs::read_to_string(entry.join("stamp")) else { return false };
    all_lines(&text, |line, path| {
        let place =
            if path.is_empty() { fs::symlink_metadata(&tree) } else { fs::symlink_metadata(tree.join(path)) };
        let mut found = String::new();
        place.is_ok_and(|metadata| {
            describe(path, &metadata, &mut found);
            found.strip_suffix('\n') == Some(line)
        })
    })
}

/// Usual size of a stamp, in bytes.
#[cfg(unix)]
const USUAL: usize = 4096;

/// True if the text is a whole stamp, and `matches` is true of each line and the path in it.
fn all_lines(text: &str, mut matches: impl FnMut(&str, &str) -> bool) -> bool {
    let lines = text.strip_prefix(FIRST).and_then(|lines| lines.strip_suffix(LAST));
    lines.filter(|lines| !lines.is_empty()).is_some_and(|lines| {
        lines.strip_suffix('\n').is_some_and(|lines| {
            lines.split('\n').all(|line| {
                let path = line.splitn(FIELDS, ' ').nth(FIELDS - 1);
                path.is_some_and(|path| matches(line, path))
            })
        })
    })
}

/// True if a line is that of a file in this state: [`describe`] would write the same.
#[cfg(unix)]
fn is_of(line: &str, found: &rustix::fs::Stat) -> bool {
    let mode = i128::from(found.st_mode);
    let kind = match mode & 0o170_000 {
        0o040_000 => "d",
        0o120_000 => "l",
        _ => "f",
    };
    let seconds = i128::from(found.st_mtime);
    let modified = if seconds < 0 { 0 } else { seconds * 1_000_000_000 + i128::from(found.st_mtime_nsec) };
    let decimal = |text: &str| text.parse::<i128>().ok();
    let mut fields = line.splitn(FIELDS, ' ');
    let mut next = || fields.next().unwrap_or_default();
    next() == kind
        && decimal(next()) == Some(found.st_size.into())
        && decimal(next()) == Some(modified)
        && i128::from_str_radix(next(), 8) == Ok(mode)
        && next().split_once('.').is_some_and(|(seconds, part)| {
            decimal(seconds) == Some(found.st_ctime.into())
                && decimal(part) == Some(found.st_ctime_nsec.into())
        })
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    /// An entry with its stamp.
    fn entry() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let tree = folder.path().join("tree");
        fs::create_dir_all(tree.join("a folder/b")).unwrap();
        for name in ["Sheaf.toml", "a folder/x y.shf", "a folder/b/z", "run.sh"] {
            fs::write(tree.join(name), "(print 1)").unwrap();
        }
        std::os::unix::fs::symlink("run.sh", tree.join("link")).unwrap();
        // Long ago: a system counts time in steps of milliseconds, within which a change would not show.
        for name in ["Sheaf.toml", "a folder/b/z", "a folder"] {
            fs::File::open(tree.join(name)).unwrap().set_modified(UNIX_EPOCH).unwrap();
        }
        fs::write(folder.path().join("stamp"), of(&tree).unwrap()).unwrap();
        folder
    }

    /// A stamp that never matched would cost a hash of every package at each start, and nothing else would show it.
    #[test]
    fn a_tree_has_its_stamp_until_something_changes() {
        assert!(matches(entry().path()));
        let changes: [fn(&Path) -> io::Result<()>; 7] = [
            |tree| fs::write(tree.join("a folder/b/z"), "(print 2)"),
            |tree| fs::write(tree.join("Sheaf.toml"), "longer than before"),
            |tree| fs::write(tree.join("a folder/new"), ""),
            |tree| fs::remove_file(tree.join("run.sh")),
            |tree| fs::rename(tree.join("a folder/b"), tree.join("a folder/c")),
            |tree| fs::remove_dir_all(tree),
            |tree| {
                let file = fs::File::options().write(true).open(tree.join("run.sh"))?;
                file.set_modified(UNIX_EPOCH + std::time::Duration::from_secs(1))
            },
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let entry = entry();
            change(&entry.path().join("tree")).unwrap();
            assert!(!matches(entry.path()), "change {number}");
        }
    }

    #[test]
    fn modes_and_links_are_parts_of_it() {
        use std::os::unix::fs::PermissionsExt;
        let changed = entry();
        let program = changed.path().join("tree/run.sh");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        assert!(!matches(changed.path()));
        let changed = entry();
        let link = changed.path().join("tree/link");
        fs::remove_file(&link).unwrap();
        std::os::unix::fs::symlink("Sheaf.toml", &link).unwrap();
        assert!(!matches(changed.path()));
    }

    #[test]
    fn a_stamp_that_is_not_whole_is_none() {
        let entry = entry();
        let path = entry.path().join("stamp");
        let whole = fs::read_to_string(&path).unwrap();
        for length in [0, 5, FIRST.len(), whole.len() / 2, whole.len() - LAST.len(), whole.len() - 1] {
            fs::write(&path, &whole[..length]).unwrap();
            assert!(!matches(entry.path()), "{length} bytes");
        }
        for other in [
            whole.replace("sheaf-stamp 2", "sheaf-stamp 1"),
            format!("{FIRST}{LAST}"),
            whole.replace("f 9 ", "f x "),
        ] {
            fs::write(&path, other).unwrap();
            assert!(!matches(entry.path()));
        }
        fs::write(&path, &whole).unwrap();
        assert!(matches(entry.path()));
        fs::remove_file(&path).unwrap();
        assert!(!matches(entry.path()));
    }
}
