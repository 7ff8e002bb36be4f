//! The tables that `Sheaf.toml` and the user's `config.toml` have in common.

use std::fmt;
use std::path::Path;

use crate::error::FileError;
use crate::spanned_toml::{Document, Table};

/// `[toolchain]`: the source of the compiler.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ToolchainTable {
    /// A package index, a mirror or a folder with the compiler's wheel. A relative folder has been joined to the folder
    /// of the file that contains it.
    pub index: Option<String>,
    /// The release of the compiler, such as `3.13.0`; `None` for Sheaf's default.
    pub iree: Option<String>,
    /// Sources of the compiler's wheels by file name: addresses or folders, joined like `index`. They are tried before
    /// the index, in order.
    pub mirrors: Option<Vec<String>>,
}

/// `[cache]`: the shared caches of compiled programs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CacheTable {
    /// The addresses of remote caches, in look-up order.
    pub remote: Option<Vec<String>>,
    /// Read-only or read-write use of remote caches.
    pub mode: Option<Mode>,
    /// The public keys whose signatures are trusted.
    pub trusted_keys: Option<Vec<String>>,
    /// The public keys that are never trusted.
    pub revoked_keys: Option<Vec<String>>,
    /// The credential helper of remote caches.
    pub credential_helper: Option<String>,
    /// Maximum size of the local store, in bytes.
    pub max_size: Option<u64>,
    /// The address of a cluster that compiles.
    pub executor: Option<String>,
}

/// Use of remote caches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    /// Locally compiled programs are uploaded.
    #[default]
    ReadWrite,
    /// Nothing is uploaded.
    ReadOnly,
}

impl Mode {
    /// The valid texts of a mode.
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

/// The keys of `[toolchain]`.
pub(crate) const TOOLCHAIN: &[&str] = &["iree", "index", "mirrors"];

/// The keys of `[cache]`.
pub(crate) const CACHE: &[&str] =
    &["remote", "mode", "trusted-keys", "revoked-keys", "credential-helper", "max-size", "executor"];

impl ToolchainTable {
    /// Reads `[toolchain]` of `document`, whose top level is `root`.
    pub(crate) fn read(document: &Document<'_>, root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("toolchain", TOOLCHAIN)?;
        let folder = document.path().parent().unwrap_or(Path::new(""));
        let iree = table.string("iree")?.map(|text| {
            let wrong = || text.wrong("a release of the compiler, such as \"3.13.0\"");
            if is_release(&text.value) { Ok(text.value.clone()) } else { Err(wrong()) }
        });
        let mirrors = table.strings("mirrors")?;
        Ok(Self {
            index: table.string("index")?.map(|text| joined(folder, text.value)),
            iree: iree.transpose()?,
            mirrors: mirrors.map(|all| all.into_iter().map(|mirror| joined(folder, mirror)).collect()),
        })
    }
}

impl CacheTable {
    /// Reads `[cache]` of the document with the top level `root`.
    pub(crate) fn read(root: &Table<'_, '_>) -> Result<Self, FileError> {
        let table = root.table("cache", CACHE)?;
        let max_size = table.string("max-size")?;
        let max_size = max_size.map(|text| size(&text.value).ok_or_else(|| text.wrong(SIZE_EXPECTED)));
        let mode = table.string("mode")?;
        let mode = mode.map(|text| Mode::parse(&text.value).ok_or_else(|| text.wrong(Mode::EXPECTED)));
        Ok(Self {
            remote: table.strings("remote")?,
            mode: mode.transpose()?,
            trusted_keys: table.strings("trusted-keys")?,
            revoked_keys: table.strings("revoked-keys")?,
            credential_helper: table.string("credential-helper")?.map(|text| text.value),
            max_size: max_size.transpose()?,
            executor: table.string("executor")?.map(|text| text.value),
        })
    }
}

/// The valid texts of a size.
pub(crate) const SIZE_EXPECTED: &str = "a size such as \"500 MB\", \"5 GB\" or \"2 GiB\"";

/// Parses a size: a number and a unit.
pub fn size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let number: f64 = text[..digits].parse().ok()?;
    let unit = match text[digits..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return None,
    };
    Some((number * unit) as u64)
}

/// True for a text of numbers separated by dots.
pub(crate) fn is_release(text: &str) -> bool {
    text.split('.').all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `index` as written in a file in `folder`: an address unchanged, a path joined.
fn joined(folder: &Path, index: String) -> String {
    // One letter before the colon is a Windows drive.
    let is_address = index.split_once(':').is_some_and(|(scheme, _)| {
        scheme.len() > 1 && scheme.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
    });
    if is_address || index.is_empty() { index } else { folder.join(index).to_string_lossy().into_owned() }
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_have_units() {
        assert_eq!(size("500 MB"), Some(500_000_000));
        assert_eq!(size("1.5gib"), Some(3 << 29));
        assert_eq!(size("12"), Some(12));
        for wrong in ["", "GB", "five GB", "5 GX", "-1 GB", "1.2.3 GB"] {
            assert_eq!(size(wrong), None, "{wrong}");
        }
    }
}
