//! Paths that survive the compiler's way of starting its linker: a shell's command line that it does not quote.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

/// A fresh folder for the compiler's temporary files, which goes with the value; or none if there is no suitable place,
/// and then the compiler must do with the common one.
pub(crate) fn folder() -> Option<TempDir> {
    let places = [std::env::temp_dir(), PathBuf::from("/tmp")];
    places
        .iter()
        .filter(|place| is_plain(place))
        .find_map(|place| tempfile::Builder::new().prefix("sheaf-compile-").tempdir_in(place).ok())
}

/// Can this path stand in a command line as it is?
fn is_plain(path: &Path) -> bool {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/\\:._-+@,~".contains(byte);
    path.is_absolute() && path.as_os_str().as_encoded_bytes().iter().all(plain)
}

/// A path as one word of a command line.
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

/// A path as one word of a command line. Paths cannot contain the quotation mark there.
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
