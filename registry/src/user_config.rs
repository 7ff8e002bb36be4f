//! `config.toml`: what the user wants for all projects.

use std::path::{Path, PathBuf};

use crate::document::{self, Document};
use crate::error::{FileError, Warning};
use crate::tables::{CacheTable, ToolchainTable};

/// The user's `config.toml`, read and checked; see [`Home::config_file`](crate::Home::config_file).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserConfig {
    /// The file, whether or not it is there.
    pub path: PathBuf,
    /// `[toolchain]`.
    pub toolchain: ToolchainTable,
    /// `[cache]`.
    pub cache: CacheTable,
    /// What is in the file without effect.
    pub warnings: Vec<Warning>,
}

impl UserConfig {
    /// Reads the file at `path`. A file that is not there says nothing.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = document::read(path)?.unwrap_or_default();
        let document = Document::parse(path, &text)?;
        let root = document.root(&["toolchain", "cache"]);
        let toolchain = ToolchainTable::read(&document, &root)?;
        let cache = CacheTable::read(&root)?;
        Ok(Self { path: path.into(), toolchain, cache, warnings: document.into_warnings() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tables::Mode;

    #[test]
    fn says_nothing_when_absent() {
        let path = Path::new("/nowhere/config.toml");
        let config = UserConfig::read(path).unwrap();
        assert_eq!((config.path.as_path(), config.cache), (path, CacheTable::default()));
        assert_eq!(config.toolchain, ToolchainTable::default());
    }

    #[test]
    fn has_the_tables_of_a_user_but_no_package() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "[package]\n[cache]\nmode = \"read-only\"\n").unwrap();
        let config = UserConfig::read(&path).unwrap();
        assert_eq!(config.cache.mode, Some(Mode::ReadOnly));
        let warning = config.warnings[0].to_string().replace(&*folder.path().to_string_lossy(), "~");
        insta::assert_snapshot!(warning, @"
        ~/config.toml:1:2: `package` is not known here and does nothing; known are `toolchain`, `cache`
         1 | [package]
           |  ^^^^^^^
        ");
    }
}
