//! Changing a TOML file in place: what is not changed stays as it was written, and the file is the old one or the new one,
//! whatever happens.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table, TableLike, TomlError, value};

/// Why a file was not changed. Each message has the place, the cause and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum EditError {
    /// The file is there but cannot be read.
    #[error("{} cannot be read: {source}; make it a file that you may read, or move it away", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// The file is not TOML.
    #[error("{} is not TOML, so it is not changed: {source}", path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// What is wrong, with the line.
        source: Box<TomlError>,
    },
    /// The file or its folder cannot be written.
    #[error("{} cannot be written: {source}; it is as it was", path.display())]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
}

/// Changes the file at `path`, which is empty where there is none.
pub(crate) fn edit(path: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(), EditError> {
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(source) => return Err(EditError::Unreadable { path: path.into(), source }),
    };
    let mut document: DocumentMut =
        text.parse().map_err(|source| EditError::NotToml { path: path.into(), source: Box::new(source) })?;
    change(&mut document);
    let changed = document.to_string();
    if changed == text {
        return Ok(());
    }
    replace(path, changed.as_bytes()).map_err(|source| EditError::Unwritable { path: path.into(), source })
}

/// Writes the whole file at `path` beside it and renames it into place. A link stays one: what it leads to is replaced.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    if let Ok(old) = fs::metadata(&path) {
        file.as_file().set_permissions(old.permissions())?;
    } else {
        readable(file.as_file())?;
    }
    file.as_file().sync_all()?;
    file.persist(&path)?;
    if cfg!(unix) {
        fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The usual rights of a file, where temporary files have fewer.
#[cfg(unix)]
fn readable(file: &fs::File) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    file.set_permissions(fs::Permissions::from_mode(0o644))
}

#[cfg(not(unix))]
fn readable(_: &fs::File) -> io::Result<()> {
    Ok(())
}

/// Changes the table under `key` of the top level, made at the end where there is none or where something else is in its
/// place.
pub(crate) fn in_table(document: &mut DocumentMut, key: &str, change: impl FnOnce(&mut dyn TableLike)) {
    let item = document.entry(key).or_insert_with(|| Item::Table(Table::new()));
    if !item.is_table_like() {
        *item = Item::Table(Table::new());
    }
    if let Some(table) = item.as_table_like_mut() {
        change(table);
    }
}

/// Sets a key to a text. Comments around an old value stay.
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
