//! Temporary folders whose paths need no quoting: the compiler starts its linker through an unquoted shell command
//! line.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// Prefix of the names of these folders.
const PREFIX: &str = "sheaf-compile-";

/// The file in a folder that is locked while the folder's owner runs.
const OWNER: &str = "owner.lock";

/// A folder for the compiler's temporary files, removed on drop. If its process is killed, the next process to create
/// one removes it.
pub(crate) struct Scratch {
    folder: TempDir,
    _owner: File,
}

impl Scratch {
    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn new_in(place: &Path) -> io::Result<Scratch> {
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(place)?;
        // Renamed after locking, so that it never looks abandoned.
        let (unnamed, named) = (folder.path().join("new.lock"), folder.path().join(OWNER));
        let owner = File::create_new(&unnamed)?;
        owner.lock()?;
        fs::rename(unnamed, named)?;
        Ok(Scratch { folder, _owner: owner })
    }
}

/// A fresh folder for the compiler's temporary files; `None` if there is no suitable location, and then the compiler
/// uses the default one. Also removes the folders of this user's killed processes.
pub(crate) fn folder() -> Option<Scratch> {
    let places = [std::env::temp_dir(), PathBuf::from("/tmp")];
    places.iter().filter(|place| is_plain(place)).find_map(|place| {
        remove_abandoned(place);
        Scratch::new_in(place).ok()
    })
}

/// Removes folders whose owners have ended. Folders of other users cannot be locked, or not removed, and remain.
fn remove_abandoned(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if !is_folder || !entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            continue;
        }
        let owner = File::options().write(true).open(entry.path().join(OWNER));
        if owner.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// True if this path needs no quoting in a command line.
fn is_plain(path: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/\\:._-+@,~".contains(byte);
    path.is_absolute() && path.as_os_str().as_encoded_bytes().iter().all(plain)
}

/// A path quoted as one word of a command line.
#[cfg(unix)]
pub(crate) fn quoted(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt, OsStringExt};
    let mut word = b"'".to_vec();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'\'' => word.extend(br"'\''"),
            byte => word.push(*byte),
        }
    }
    word.push(b'\'');
    OsString::from_vec(word)
}

/// A path quoted as one word of a command line. Windows paths cannot contain the quotation mark.
#[cfg(not(unix))]
pub(crate) fn quoted(path: &Path) -> OsString {
    let mut word = OsString::from("\"");
    word.push(path);
    word.push("\"");
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_are_plain() {
        assert!(is_plain(&std::path::absolute("/tmp/x-1.2_3").expect("a path")));
        for path in ["/tmp/a b", "/tmp/$(x)", "/tmp/a;b", "/tmp/it's", "tmp", ""] {
            assert!(!is_plain(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn what_a_killed_process_left_goes_with_the_next_folder() {
        let place = tempfile::tempdir().expect("a folder");
        let owned = Scratch::new_in(place.path()).expect("a folder");
        fs::write(owned.path().join("object.o"), "kept").expect("a file");
        let [abandoned, beginning, other] =
            [format!("{PREFIX}dead"), format!("{PREFIX}new"), "other".to_owned()]
                .map(|name| place.path().join(name));
        for folder in [&abandoned, &beginning, &other] {
            fs::create_dir(folder).expect("a folder");
        }
        // The lock and files of a process that has ended.
        fs::write(abandoned.join(OWNER), "").expect("a file");
        fs::write(abandoned.join("object.o"), "left").expect("a file");
        fs::write(other.join(OWNER), "").expect("a file");
        remove_abandoned(place.path());
        let there = [&abandoned, &beginning, &other].map(|folder| folder.exists());
        assert_eq!(there, [false, true, true]);
        assert!(owned.path().join("object.o").exists());
        let path = owned.path().to_owned();
        drop(owned);
        assert!(!path.exists());
    }

    #[cfg(unix)]
    #[test]
    fn a_shell_reads_a_quoted_path_back() {
        for path in ["/plain", "/my data/it's $HOME; `x` \"y\" \\ *", "/tab\tand\nline"] {
            let mut script = OsString::from("printf %s ");
            script.push(quoted(Path::new(path)));
            let output = std::process::Command::new("sh").arg("-c").arg(script).output().expect("a shell");
            assert_eq!(String::from_utf8_lossy(&output.stdout), path);
        }
    }
}
