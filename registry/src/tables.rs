//! The tables that `Sheaf.toml` and the user's `config.toml` have in common.

use std::fmt;
use std::path::Path;

use crate::document::{Document, Table};
use crate::error::FileError;

/// `[toolchain]`: where the compiler comes from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainTable {
    /// A package index, a mirror or a folder with the compiler's wheel. A relative folder has been joined to the
    /// folder of the file it was written in.
    pub index: Option<String>,
}

/// `[cache]`: where compiled programs are shared.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheTable {
    /// The addresses of remote caches, in the order in which they are asked.
    pub remote: Option<Vec<String>>,
    /// Whether remote caches are written too.
    pub mode: Option<Mode>,
    /// The public keys whose signatures are trusted.
    pub trusted_keys: Option<Vec<String>>,
}

/// How remote caches are used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// What is compiled here is sent there.
    #[default]
    ReadWrite,
    /// Nothing is sent.
    ReadOnly,
}

impl Mode {
    /// What the text of a mode must be.
    pub(crate) const EXPECTED: &str = "\"read-write\" or \"read-only\"";

    pub(crate) fn parse(text: &str) -> Option<Self> {
        [Self::ReadWrite, Self::ReadOnly].into_iter().find(|mode| mode.to_string() == text)
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ReadWrite => "read-write",
            Self::ReadOnly => "read-only",
        })
    }
}

impl ToolchainTable {
    /// Reads `[toolchain]` of `document`, whose top level is `root`.
    pub(crate) fn read(document: &Document<'_>, root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("toolchain", &["index"])?;
        let folder = document.path().parent().unwrap_or(Path::new(""));
        Ok(Self { index: table.string("index")?.map(|text| joined(folder, text.value)) })
    }
}

impl CacheTable {
    /// Reads `[cache]`, when the top level is `root`.
    pub(crate) fn read(root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("cache", &["remote", "mode", "trusted-keys"])?;
        let mode = table.string("mode")?;
        let mode = mode.map(|text| Mode::parse(&text.value).ok_or_else(|| text.wrong(Mode::EXPECTED)));
        Ok(Self {
            remote: table.strings("remote")?,
            mode: mode.transpose()?,
            trusted_keys: table.strings("trusted-keys")?,
        })
    }
}

/// `index` from the point of view of a file in `folder`: an address as it is, a path joined.
fn joined(folder: &Path, index: String) -> String {
    // One letter before the colon is a drive of Windows.
    let is_address = index.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if is_address || index.is_empty() { index } else { folder.join(index).to_string_lossy().into_owned() }
}
