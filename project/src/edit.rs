//! In-place edits of a TOML file: unchanged parts stay as written, and writes are atomic.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, value};

use sheaf_foundation::atomic;

use crate::lock::LOCK_NAME;

/// Cause of a failed edit. Each message has the location, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file exists but cannot be read.
    #[error("{} cannot be read: {source}; make it a file that you may read, or move it away", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not TOML, so it is not changed; {}\n{}", path.display(), correct(path), source.to_string().trim())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The syntax error, with the line.
        source: Box<TomlError>,
    },
    /// The file is in a newer format.
    #[error("{} was written by a newer Sheaf, in format {format}, so it is not changed; {remedy}", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its format.
        format: i64,
        /// The fix.
        remedy: &'static str,
    },
    /// The file or its folder cannot be written.
    #[error(
        "{} cannot be written: {source}; it is as it was: make it and its folder writable, with room on the disk",
        path.display()
    )]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
}

/// The fix for a file that is not TOML.
fn correct(path: &Path) -> &'static str {
    if path.file_name().is_some_and(|name| name == LOCK_NAME) {
        "correct this line, or move the file away: the command writes it anew"
    } else {
        "correct this line"
    }
}

/// Start of some files on Windows.
const BYTE_ORDER_MARK: &str = "\u{feff}";

/// Edits the file at `path`, empty if it does not exist. Keeps a byte-order mark, and Windows line ends if all are
/// such.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(), EditError> {
    try_edit(path, |document| {
        change(document);
        Ok(())
    })
}

/// The same, unless `change` refuses the file.
pub(crate) fn try_edit(
    path: &Path,
    change: impl FnOnce(&mut DocumentMut) -> Result<(), EditError>,
) -> Result<(), EditError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(EditError::Unreadable { path: path.into(), source }),
    };
    let plain = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&text);
    let mut document: DocumentMut =
        plain.parse().map_err(|source| EditError::NotToml { path: path.into(), source: Box::new(source) })?;
    change(&mut document)?;
    let mut changed = document.to_string();
    let ends = plain.matches('\n').count();
    if ends > 0 && plain.matches("\r\n").count() == ends {
        changed = changed.replace("\r\n", "\n").replace('\n', "\r\n");
    }
    if plain.len() < text.len() {
        changed.insert_str(0, BYTE_ORDER_MARK);
    }
    if changed == text {
        return Ok(());
    }
    atomic::replace(path, changed.as_bytes())
        .map_err(|error| EditError::Unwritable { path: path.into(), source: error.source })
}

/// Changes the table under `key` of the top level, created at the end if it does not exist or is not a table.
pub(crate) fn in_table(document: &mut DocumentMut, key: &str, change: impl FnOnce(&mut dyn TableLike)) {
    let item = document.entry(key).or_insert_with(|| Item::Table(Table::new()));
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    if let Some(table) = item.as_table_like_mut() {
        change(table);
    }
}

/// Sets a key to a text. Comments around an old value are kept.
pub(crate) fn set(table: &mut dyn TableLike, key: &str, text: &str) {
    match table.get_mut(key).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = text.into();
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(key, value(text));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The file after setting `a` to `new`.
    fn edited(name: &str, text: &str) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        let neutral = |error: EditError| error.to_string().replace(&*folder.path().to_string_lossy(), "~");
        edit(&path, |document| set(document.as_table_mut(), "a", "new")).map_err(neutral)?;
        Ok(fs::read_to_string(&path).unwrap())
    }

    #[test]
    fn the_form_of_a_file_stays() {
        for (before, after) in [
            ("# x\r\na = \"old\" # y\r\n", "# x\r\na = \"new\" # y\r\n"),
            ("\u{feff}a = \"old\"\n", "\u{feff}a = \"new\"\n"),
            ("\u{feff}# x\r\n[b]\r\n", "\u{feff}a = \"new\"\r\n# x\r\n[b]\r\n"),
            ("\u{feff}a = \"new\"\r\n", "\u{feff}a = \"new\"\r\n"),
            ("", "a = \"new\"\n"),
        ] {
            assert_eq!(edited("Sheaf.toml", before).as_deref(), Ok(after), "{before:?}");
        }
    }

    #[test]
    fn what_cannot_be_changed_is_said_with_what_to_do() {
        insta::assert_snapshot!(edited("Sheaf.lock", "[toolchain\n").unwrap_err(), @"
        ~/Sheaf.lock is not TOML, so it is not changed; correct this line, or move the file away: the command writes it anew
        TOML parse error at line 1, column 11
          |
        1 | [toolchain
          |           ^
        unclosed table, expected `]`
        ");
        let error = edited("Sheaf.toml", "[toolchain\n").unwrap_err();
        assert!(
            error.contains("; correct this line\nTOML parse error") && error.ends_with("expected `]`"),
            "{error}"
        );
        let path = Path::new("/proc/nowhere/Sheaf.toml");
        let error = edit(path, |document| set(document.as_table_mut(), "a", "new")).unwrap_err();
        insta::assert_snapshot!(error, @"/proc/nowhere/Sheaf.toml cannot be written: No such file or directory (os error 2); it is as it was: make it and its folder writable, with room on the disk");
    }
}
