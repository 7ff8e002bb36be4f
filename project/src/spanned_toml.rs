//! Span-aware TOML reader: every error has its source location.

use std::cell::RefCell;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::ops::{Range, RangeInclusive};
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{FileError, Warning};
use crate::location::SourceLocation;
use sheaf_foundation::{Foreign, Owners};

/// The file or folder found at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found<T> {
    /// Nothing.
    Absent,
    /// Owned by another user, and not read.
    Foreign(Foreign),
    /// A file, read.
    File(T),
}

impl<T> Found<T> {
    /// Parses the contents of the file with `read`.
    pub(crate) fn and<U>(self, read: impl FnOnce(T) -> Result<U, FileError>) -> Result<Found<U>, FileError> {
        Ok(match self {
            Self::Absent => Found::Absent,
            Self::Foreign(foreign) => Found::Foreign(foreign),
            Self::File(text) => Found::File(read(text)?),
        })
    }
}

/// The text of the file at `path`; `None` if it does not exist.
pub(crate) fn read(path: &Path) -> Result<Option<String>, FileError> {
    match open(path).and_then(|(mut file, _)| whole(&mut file)) {
        Ok(bytes) => text(path, bytes).map(Some),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(FileError::Unreadable { path: path.into(), source }),
    }
}

/// The text of the file at `path`, if one of the `owners` owns it.
pub(crate) fn read_owned(path: &Path, owners: &Owners) -> Result<Found<String>, FileError> {
    // A file of another user need not even be openable.
    if let Some(foreign) =
        fs::symlink_metadata(path).ok().and_then(|metadata| owners.foreign(path, &metadata))
    {
        return Ok(Found::Foreign(foreign));
    }
    let unreadable = |source| FileError::Unreadable { path: path.into(), source };
    let (mut file, metadata) = match open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Absent),
        Err(source) => return Err(unreadable(source)),
    };
    // The opened file decides: the path may lead elsewhere by now.
    if let Some(foreign) = owners.foreign(path, &metadata) {
        return Ok(Found::Foreign(foreign));
    }
    text(path, whole(&mut file).map_err(unreadable)?).map(Found::File)
}

/// Opens a file. A pipe is an error, and does not block.
fn open(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NONBLOCK);
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    if metadata.is_file() || metadata.is_dir() {
        return Ok((file, metadata));
    }
    Err(io::Error::other("it is not a regular file"))
}

fn whole(file: &mut File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, FileError> {
    String::from_utf8(bytes).map_err(|error| {
        let end = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        let location = SourceLocation::new(path, &text, end..end + 1).into();
        FileError::NotToml { location, cause: "a character is not written in UTF-8".into() }
    })
}

/// A parsed TOML file and its warnings.
pub(crate) struct Document<'t> {
    path: &'t Path,
    text: &'t str,
    root: DeTable<'t>,
    warnings: RefCell<Vec<Warning>>,
}

impl<'t> Document<'t> {
    /// Parses `text`, the contents of `path`.
    pub fn parse(path: &'t Path, text: &'t str) -> Result<Self, FileError> {
        let root = DeTable::parse(text).map_err(|error| FileError::NotToml {
            location: SourceLocation::new(path, text, error.span().unwrap_or(0..0)).into(),
            cause: error.message().into(),
        })?;
        Ok(Self { path, text, root: root.into_inner(), warnings: RefCell::default() })
    }

    /// The file.
    pub fn path(&self) -> &'t Path {
        self.path
    }

    /// The top level, with its `known` keys.
    pub fn root<'d>(&'d self, known: &'static [&'static str]) -> Table<'d, 't> {
        Table::new(self, String::new(), Some(&self.root), known)
    }

    /// The warnings so far, in the order of the file.
    pub fn into_warnings(self) -> Vec<Warning> {
        let mut warnings = self.warnings.into_inner();
        warnings.sort_by_key(|warning| (warning.location.line, warning.location.column));
        warnings
    }

    fn location(&self, span: Range<usize>) -> SourceLocation {
        SourceLocation::new(self.path, self.text, span)
    }
}

/// A table of a document; a missing one has no keys.
pub(crate) struct Table<'d, 't> {
    document: &'d Document<'t>,
    name: String,
    content: Option<&'d DeTable<'t>>,
}

/// A string with its source location.
pub(crate) struct Text<'d, 't> {
    document: &'d Document<'t>,
    key: String,
    span: Range<usize>,
    pub value: String,
}

impl<'d, 't> Table<'d, 't> {
    fn new(
        document: &'d Document<'t>,
        name: String,
        content: Option<&'d DeTable<'t>>,
        known: &'static [&'static str],
    ) -> Self {
        let unknown = content.into_iter().flatten().filter(|(key, _)| !known.contains(&&**key.get_ref()));
        document.warnings.borrow_mut().extend(unknown.map(|(key, _)| Warning {
            location: document.location(key.span()),
            key: key.get_ref().to_string(),
            table: name.clone(),
            known,
        }));
        Self { document, name, content }
    }

    /// The table under `key`, with its `known` keys.
    pub fn table(&self, key: &str, known: &'static [&'static str]) -> Result<Self, FileError> {
        let table = self.get(key).map(|value| self.table_in(key, value)).transpose()?;
        Ok(Self::new(self.document, self.full(key), table, known))
    }

    /// The keys of the table under `key`, in the order of the file.
    pub fn keys(&self, key: &str) -> Result<Vec<Text<'d, 't>>, FileError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let table = self.table_in(key, value)?;
        let name = self.full(key);
        let mut keys: Vec<_> = table
            .iter()
            .map(|(item, _)| Text {
                document: self.document,
                key: format!("{name}.{}", item.get_ref()),
                span: item.span(),
                value: item.get_ref().to_string(),
            })
            .collect();
        keys.sort_by_key(|key| key.span.start);
        Ok(keys)
    }

    /// The table under `key`, any of whose keys is known.
    pub fn open_table(&self, key: &str) -> Result<Self, FileError> {
        let content = self.get(key).map(|value| self.table_in(key, value)).transpose()?;
        Ok(Self { document: self.document, name: self.full(key), content })
    }

    /// The tables of the list of tables under `key`, with their `known` keys.
    pub fn tables(&self, key: &str, known: &'static [&'static str]) -> Result<Vec<Self>, FileError> {
        let Some(value) = self.get(key) else { return Ok(Vec::new()) };
        let Some(list) = value.get_ref().as_array() else {
            let example = format!("[[{key}]]");
            return Err(self.wrong_type(self.full(key), value, "a list of tables", example));
        };
        let table =
            |item| Ok(Self::new(self.document, self.full(key), Some(self.table_in(key, item)?), known));
        list.iter().map(table).collect()
    }

    /// The value under `key` if it is a string.
    pub fn text_at(&self, key: &str) -> Option<Text<'d, 't>> {
        self.get(key)
            .filter(|value| value.get_ref().as_str().is_some())
            .and_then(|value| self.text(self.full(key), value).ok())
    }

    /// The string under `key`, which must be there; `remedy` is for users of a file without it.
    pub fn required(&self, key: &str, remedy: &'static str) -> Result<Text<'d, 't>, FileError> {
        let first = self.content.into_iter().flatten().map(|(key, _)| key.span().start).min().unwrap_or(0);
        self.string(key)?.ok_or_else(|| FileError::Missing {
            location: self.document.location(first..first).into(),
            key: self.full(key),
            remedy,
        })
    }

    /// The string under `key`.
    pub fn string(&self, key: &str) -> Result<Option<Text<'d, 't>>, FileError> {
        self.get(key).map(|value| self.text(self.full(key), value)).transpose()
    }

    /// The integer under `key`, an error that names `expected` unless it is in `range`.
    pub fn integer(
        &self,
        key: &str,
        range: &RangeInclusive<i64>,
        expected: &'static str,
    ) -> Result<Option<i64>, FileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let DeValue::Integer(number) = value.get_ref() else {
            return Err(self.wrong_type(self.full(key), value, "an integer", "100".into()));
        };
        let parsed = i64::from_str_radix(number.as_str(), number.radix());
        match parsed.ok().filter(|number| range.contains(number)) {
            Some(number) => Ok(Some(number)),
            None => {
                let value = Text {
                    document: self.document,
                    key: self.full(key),
                    span: value.span(),
                    value: number.as_str().into(),
                };
                Err(value.wrong(expected))
            }
        }
    }

    /// The list of strings under `key`.
    pub fn strings(&self, key: &str) -> Result<Option<Vec<String>>, FileError> {
        let texts = self.texts(key)?;
        Ok(texts.map(|texts| texts.into_iter().map(|text| text.value).collect()))
    }

    /// The same, with their locations.
    pub fn texts(&self, key: &str) -> Result<Option<Vec<Text<'d, 't>>>, FileError> {
        let Some(value) = self.get(key) else { return Ok(None) };
        let key = self.full(key);
        let Some(list) = value.get_ref().as_array() else {
            return Err(self.wrong_type(key, value, "a list of strings", "[\"text\"]".into()));
        };
        let items = list.iter().enumerate();
        let texts = items.map(|(index, item)| self.text(format!("{key}[{index}]"), item));
        texts.collect::<Result<_, _>>().map(Some)
    }

    /// True if there is a value under `key`.
    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    /// The truth value under `key`; false without one.
    pub fn flag(&self, key: &str) -> Result<bool, FileError> {
        let Some(value) = self.get(key) else { return Ok(false) };
        let flag = value.get_ref().as_bool();
        flag.ok_or_else(|| self.wrong_type(self.full(key), value, "true or false", "true".into()))
    }

    /// Errors if `key` is missing while `other` is present.
    pub fn missing(&self, key: &str, other: &str, remedy: &'static str) -> Result<(), FileError> {
        let found = self.content.into_iter().flatten().find(|(name, _)| name.get_ref() == other);
        found.map_or(Ok(()), |(name, _)| {
            let location = self.document.location(name.span()).into();
            Err(FileError::Missing { location, key: self.full(key), remedy })
        })
    }

    /// The error for a key whose value is refused for this `cause`.
    pub fn refused(&self, key: &str, cause: String, remedy: &'static str) -> FileError {
        let found = self.content.into_iter().flatten().find(|(name, _)| name.get_ref() == key);
        let span = found.map_or(0..0, |(name, _)| name.span());
        FileError::Refused { location: self.document.location(span).into(), cause, remedy }
    }

    fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'t>>> {
        self.content?.get(key)
    }

    fn table_in(&self, key: &str, value: &'d Spanned<DeValue<'t>>) -> Result<&'d DeTable<'t>, FileError> {
        let key = self.full(key);
        let example = format!("[{key}]");
        value.get_ref().as_table().ok_or_else(|| self.wrong_type(key, value, "a table", example))
    }

    fn text(&self, key: String, value: &Spanned<DeValue<'_>>) -> Result<Text<'d, 't>, FileError> {
        match value.get_ref().as_str() {
            Some(text) => Ok(Text { document: self.document, key, span: value.span(), value: text.into() }),
            None => Err(self.wrong_type(key, value, "a string", "\"text\"".into())),
        }
    }

    fn wrong_type(
        &self,
        key: String,
        value: &Spanned<DeValue<'_>>,
        expected: &'static str,
        example: String,
    ) -> FileError {
        let found = match value.get_ref() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        let location = self.document.location(value.span()).into();
        FileError::WrongType { location, key, found, expected, example }
    }

    fn full(&self, key: &str) -> String {
        if self.name.is_empty() { key.into() } else { format!("{}.{key}", self.name) }
    }
}

impl Text<'_, '_> {
    /// Its location.
    pub fn location(&self) -> SourceLocation {
        self.document.location(self.span.clone())
    }

    /// The error for a value that is refused for this `cause`.
    pub fn refused(&self, cause: String, remedy: &'static str) -> FileError {
        FileError::Refused { location: self.location().into(), cause, remedy }
    }

    /// The error for a value that is not `expected`.
    pub fn wrong(&self, expected: &'static str) -> FileError {
        FileError::WrongValue {
            location: self.document.location(self.span.clone()).into(),
            key: self.key.clone(),
            value: self.value.clone(),
            expected,
        }
    }
}
