//! Atomic file writes: a file exists whole or not at all, even if the process dies.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use tempfile::NamedTempFile;

/// Prefix of the names of unfinished files.
const STAGED_PREFIX: &str = ".unfinished-";

/// Age from which an unfinished file that is not locked has lost its writer, which locks it as soon as it is made.
const UNLOCKED: Duration = Duration::from_secs(60);

/// Permissions for every user who can read the folder, before the process's mask.
const READABLE: u32 = 0o666;

/// Permissions for the user alone.
const PRIVATE: u32 = 0o600;

/// A file or folder that could not be written; no partial file is left. The message gives the path and the cause;
/// [`remedy`](Self::remedy) the fix.
#[derive(Debug, thiserror::Error)]
#[error("{path} could not be written: {source}")]
pub struct WriteError {
    /// The file or folder.
    pub path: PathBuf,
    /// The operating system's error.
    pub source: io::Error,
}

impl WriteError {
    /// Makes the error of writing `path` from that of the operating system.
    pub fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self { path, source }
    }

    /// The fix to suggest to the user.
    pub fn remedy(&self) -> &'static str {
        match self.source.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
                "free some space there"
            }
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "make the folder writable for you"
            }
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists | io::ErrorKind::IsADirectory => {
                "something else is in its place: move that away"
            }
            _ => "check that disk and folder",
        }
    }
}

/// `error` without the name of the temporary file, which is meaningless to users.
fn without_path(error: io::Error) -> io::Error {
    let cause = error.get_ref().and_then(|wrapped| wrapped.source()?.downcast_ref::<io::Error>());
    cause.and_then(io::Error::raw_os_error).map_or(error, io::Error::from_raw_os_error)
}

/// A complete file, synced to disk under a temporary name. Removed on drop.
pub struct Staged {
    file: NamedTempFile,
    target: PathBuf,
}

impl Staged {
    /// Writes `bytes` to the folder of `target`, which exists, and syncs.
    pub fn write(target: &Path, bytes: &[u8]) -> Result<Self, WriteError> {
        Self::stage(target, READABLE, |file| file.write_all(bytes))
    }

    /// [`Staged::write`] of a file that only the user can read.
    fn private(target: &Path, bytes: &[u8]) -> Result<Self, WriteError> {
        Self::stage(target, PRIVATE, |file| file.write_all(bytes))
    }

    /// Writes what `content` writes, to a file with at most the permissions `mode`.
    fn stage(
        target: &Path,
        mode: u32,
        content: impl FnOnce(&mut fs::File) -> io::Result<()>,
    ) -> Result<Self, WriteError> {
        let stage = || {
            let mut builder = tempfile::Builder::new();
            builder.prefix(STAGED_PREFIX);
            #[cfg(unix)]
            builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(mode));
            #[cfg(not(unix))]
            let _ = mode;
            let mut file = builder.tempfile_in(folder_of(target)).map_err(without_path)?;
            // Some file systems have no locks; there, age alone tells what is abandoned.
            let _ = file.as_file().try_lock();
            content(file.as_file_mut())?;
            file.as_file().sync_all()?;
            Ok(file)
        };
        let file = stage().map_err(WriteError::at(target))?;
        Ok(Self { file, target: target.to_owned() })
    }

    /// Renames the file to its target, replacing an older one.
    ///
    /// The folder itself is not synced: after a power failure, the older file may be found, or a pair of files that do
    /// not match, which the digests detect.
    pub fn publish(self) -> Result<(), WriteError> {
        let Self { file, target } = self;
        file.persist(&target).map(drop).map_err(|error| WriteError { path: target, source: error.error })
    }

    /// Renames the file to its target unless the target exists; returns true if it did.
    fn publish_new(self) -> Result<bool, WriteError> {
        let Self { file, target } = self;
        match file.persist_noclobber(&target) {
            Ok(_) => Ok(true),
            Err(error) if error.error.kind() == io::ErrorKind::AlreadyExists => Ok(false),
            // Some file systems do not support this: the last writer wins.
            Err(error) => Self { file: error.file, target }.publish().map(|()| true),
        }
    }
}

/// Writes `bytes` to `target` atomically (temporary file, sync, rename), creating its folder if needed.
pub fn write(target: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    make_folder(target)?;
    Staged::write(target, bytes)?.publish()
}

/// Like [`write()`], but keeps an existing file. Returns true if the file was written.
pub fn create(target: &Path, bytes: &[u8]) -> Result<bool, WriteError> {
    make_folder(target)?;
    Staged::write(target, bytes)?.publish_new()
}

/// Creates the folder of `target` if needed.
fn make_folder(target: &Path) -> Result<(), WriteError> {
    let Some(folder) = target.parent() else { return Ok(()) };
    fs::create_dir_all(folder).map_err(|error| {
        // A folder that cannot be inspected, such as one of an unreachable file server, is reported as existing.
        let exists = error.kind() == io::ErrorKind::AlreadyExists;
        let source = if exists { fs::metadata(folder).err() } else { None };
        WriteError { path: folder.to_owned(), source: source.unwrap_or(error) }
    })
}

/// [`write()`] for a file of the user: follows links, keeps the permissions of an older file, and syncs the folder, so that the
/// new file survives a power failure.
pub fn replace(target: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    replace_with(target, &mut |to| to.write_all(bytes))
}

/// [`replace`] with the bytes that `content` writes, in pieces of any size. An error of `content` leaves the older file. A pipe
/// or a device is written to, since a file in its place would be another thing.
pub fn replace_with(
    target: &Path,
    content: &mut dyn FnMut(&mut dyn io::Write) -> io::Result<()>,
) -> Result<(), WriteError> {
    let mut write = |file: &mut fs::File| {
        let mut buffered = io::BufWriter::with_capacity(1 << 16, file);
        content(&mut buffered)?;
        buffered.flush()
    };
    let older = fs::metadata(target).ok();
    if older.as_ref().is_some_and(|older| !older.is_file() && !older.is_dir()) {
        return fs::OpenOptions::new()
            .write(true)
            .open(target)
            .and_then(|mut file| write(&mut file))
            .map_err(WriteError::at(target));
    }
    let target = fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
    make_folder(&target)?;
    let staged = Staged::stage(&target, READABLE, write)?;
    // Before the rename: private files stay private.
    if let Some(older) = older {
        staged.file.as_file().set_permissions(older.permissions()).map_err(WriteError::at(&target))?;
    }
    staged.publish()?;
    if cfg!(unix) {
        let folder = folder_of(&target);
        fs::File::open(folder).and_then(|folder| folder.sync_all()).map_err(WriteError::at(folder))?;
    }
    Ok(())
}

/// [`write()`] for a secret: only the user can read the file.
pub fn write_private(target: &Path, bytes: &[u8]) -> Result<(), WriteError> {
    make_folder(target)?;
    Staged::private(target, bytes)?.publish()
}

/// Like [`write_private`], but keeps an existing file. Returns true if the file was written.
pub fn create_private(target: &Path, bytes: &[u8]) -> Result<bool, WriteError> {
    make_folder(target)?;
    Staged::private(target, bytes)?.publish_new()
}

/// The folder of a file.
fn folder_of(target: &Path) -> &Path {
    target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes unfinished files of killed processes from `folder` that can be removed: those at least `age` old, and those
/// of a minute that no process holds locked.
pub fn remove_unfinished(folder: &Path, age: Duration) {
    let Ok(files) = fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let unfinished = file.file_name().to_string_lossy().starts_with(STAGED_PREFIX);
        if unfinished
            && (age.is_zero() || is_older(&file, age) || is_older(&file, UNLOCKED) && is_free(&file))
        {
            let _ = fs::remove_file(file.path());
        }
    }
}

/// True if the file can be locked. Where there are no locks, none can be.
fn is_free(file: &fs::DirEntry) -> bool {
    fs::File::open(file.path()).is_ok_and(|file| file.try_lock().is_ok())
}

fn is_older(file: &fs::DirEntry, age: Duration) -> bool {
    let modified = file.metadata().and_then(|metadata| metadata.modified());
    modified.ok().and_then(|modified| modified.elapsed().ok()).is_some_and(|elapsed| elapsed >= age)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let files = fs::read_dir(folder).unwrap();
        files.map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/b/file");
        write(&target, b"older and longer").unwrap();
        write(&target, b"newer").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"newer");
        assert_eq!(names(target.parent().unwrap()), ["file"]);
    }

    #[test]
    fn what_fails_half_way_leaves_the_older_file() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        replace(&target, b"older").unwrap();
        let failed = replace_with(&target, &mut |to| {
            to.write_all(&vec![0; 1 << 20])?;
            Err(io::Error::other("half way"))
        });
        assert_eq!(failed.unwrap_err().source.to_string(), "half way");
        assert_eq!(fs::read(&target).unwrap(), b"older");
        assert_eq!(names(folder.path()), ["file"]);
    }

    #[test]
    fn the_first_of_two_files_stays() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("a/file");
        assert!(create(&target, b"first").unwrap());
        assert!(!create(&target, b"second").unwrap());
        assert_eq!(fs::read(&target).unwrap(), b"first");
        assert_eq!(names(target.parent().unwrap()), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn what_is_replaced_keeps_its_links_and_permissions() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, b"older").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        replace(&link, b"newer").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"newer");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        symlink(folder.path().join("none"), folder.path().join("dangling")).unwrap();
        replace(&folder.path().join("dangling"), b"bytes").unwrap();
        replace(&folder.path().join("new"), b"bytes").unwrap();
        assert_eq!(fs::read(folder.path().join("new")).unwrap(), b"bytes");
        write_private(&folder.path().join("secret"), b"bytes").unwrap();
        assert_eq!(fs::metadata(folder.path().join("secret")).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(!create_private(&folder.path().join("secret"), b"other").unwrap());
    }

    #[cfg(unix)]
    #[test]
    fn devices_are_written_to_and_stay() {
        use std::os::unix::fs::FileTypeExt as _;
        replace(Path::new("/dev/null"), b"bytes").unwrap();
        assert!(fs::metadata("/dev/null").unwrap().file_type().is_char_device());
    }

    #[test]
    fn what_is_not_published_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let target = folder.path().join("file");
        let staged = Staged::write(&target, b"bytes").unwrap();
        assert_eq!(names(folder.path()).len(), 1);
        assert!(!target.exists());
        drop(staged);
        assert!(names(folder.path()).is_empty());
    }

    #[cfg(unix)]
    #[test]
    fn others_may_read_what_they_may_read_in_the_folder() {
        use std::os::unix::fs::PermissionsExt as _;

        let folder = tempfile::tempdir().unwrap();
        let (ours, usual) = (folder.path().join("ours"), folder.path().join("usual"));
        write(&ours, b"").unwrap();
        fs::write(&usual, b"").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(ours), mode(usual));
    }

    #[test]
    fn only_old_unfinished_files_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        for name in [".unfinished-1", "finished"] {
            fs::write(folder.path().join(name), b"").unwrap();
        }
        remove_unfinished(folder.path(), Duration::from_secs(60 * 60));
        assert_eq!(names(folder.path()).len(), 2);
        remove_unfinished(folder.path(), Duration::ZERO);
        assert_eq!(names(folder.path()), ["finished"]);
    }

    #[test]
    fn unfinished_files_of_killed_writers_are_removed_after_a_minute() {
        let folder = tempfile::tempdir().unwrap();
        let (killed, held) = (folder.path().join(".unfinished-1"), folder.path().join(".unfinished-2"));
        let age = |path: &Path| {
            let file = fs::File::create(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - Duration::from_secs(61)).unwrap();
            file
        };
        drop(age(&killed));
        let writer = age(&held);
        writer.lock().unwrap();
        fs::write(folder.path().join(".unfinished-3"), b"young").unwrap();
        remove_unfinished(folder.path(), Duration::from_secs(60 * 60));
        let mut left = names(folder.path());
        left.sort();
        assert_eq!(left, [".unfinished-2", ".unfinished-3"]);
    }

    #[test]
    fn an_unfinished_file_is_locked_while_it_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let staged = Staged::write(&folder.path().join("file"), b"bytes").unwrap();
        let other = fs::File::open(staged.file.path()).unwrap();
        assert!(matches!(other.try_lock(), Err(fs::TryLockError::WouldBlock)));
        staged.publish().unwrap();
        other.try_lock().unwrap();
    }

    #[test]
    fn errors_say_where_why_and_what_to_do() {
        let message = |kind: io::ErrorKind| {
            let error = WriteError { path: "/home/ada/.cache/sheaf".into(), source: kind.into() };
            format!("{error}; {}", error.remedy())
        };
        insta::assert_snapshot!(message(io::ErrorKind::StorageFull), @"/home/ada/.cache/sheaf could not be written: no storage space; free some space there");
        insta::assert_snapshot!(message(io::ErrorKind::ReadOnlyFilesystem), @"/home/ada/.cache/sheaf could not be written: read-only filesystem or storage medium; make the folder writable for you");
        insta::assert_snapshot!(message(io::ErrorKind::NotADirectory), @"/home/ada/.cache/sheaf could not be written: not a directory; something else is in its place: move that away");
        insta::assert_snapshot!(message(io::ErrorKind::Other), @"/home/ada/.cache/sheaf could not be written: other error; check that disk and folder");
    }
}
