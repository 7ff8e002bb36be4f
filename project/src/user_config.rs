//! `config.toml`: the user's settings for all projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dependencies::{mirrors, registries};
use crate::error::{FileError, Warning};
use crate::resolver::ResolverTable;
use crate::spanned_toml::{self, Document};
use crate::tables::{CacheTable, ToolchainTable};

/// The user's parsed and checked `config.toml`; see [`Home::config_file`](crate::Home::config_file).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserConfig {
    /// The file, which may not exist.
    pub path: PathBuf,
    /// `[toolchain]`.
    pub toolchain: ToolchainTable,
    /// `[cache]`.
    pub cache: CacheTable,
    /// `safe-directories`: the folders in which files of all users are trusted; see [`Owners`](crate::Owners).
    pub safe_directories: Vec<PathBuf>,
    /// `[registries]`: addresses of indexes by name.
    pub registries: BTreeMap<String, String>,
    /// `[mirrors]`: the addresses that are asked, in this order, before that of an index. Only the user's network decides
    /// this, so projects have no such table.
    pub mirrors: BTreeMap<String, Vec<String>>,
    /// `[resolver]`.
    pub resolver: ResolverTable,
    /// Ineffective keys of the file.
    pub warnings: Vec<Warning>,
}

impl UserConfig {
    /// Reads the file at `path`. A missing file is empty.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let text = spanned_toml::read(path)?.unwrap_or_default();
        let document = Document::parse(path, &text)?;
        let known = &["safe-directories", "toolchain", "cache", "registries", "mirrors", "resolver"];
        let root = document.root(known);
        let mut safe_directories = Vec::new();
        for folder in root.texts("safe-directories")?.unwrap_or_default() {
            if folder.value != "*" && !Path::new(&folder.value).is_absolute() {
                return Err(folder.wrong("a folder by its whole path, or \"*\" for all"));
            }
            safe_directories.push(folder.value.into());
        }
        let toolchain = ToolchainTable::read(&document, &root)?;
        let cache = CacheTable::read(&root)?;
        let registries = registries(&root)?;
        let mirrors = mirrors(&root)?;
        let resolver = ResolverTable::read(&root)?;
        let warnings = document.into_warnings();
        let path = path.into();
        Ok(Self { path, toolchain, cache, safe_directories, registries, mirrors, resolver, warnings })
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
        assert!(config.safe_directories.is_empty());
    }

    #[test]
    fn safe_directories_are_whole_paths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        std::fs::write(&path, "safe-directories = [\"/srv/shared\", \"*\"]\n").unwrap();
        let named = UserConfig::read(&path).unwrap().safe_directories;
        assert_eq!(named, [Path::new("/srv/shared"), Path::new("*")]);
        std::fs::write(&path, "safe-directories = [\"shared\"]\n").unwrap();
        let error = UserConfig::read(&path).unwrap_err().to_string();
        insta::assert_snapshot!(error.replace(&*folder.path().to_string_lossy(), "~"), @r#"
        ~/config.toml:1:21: `safe-directories[0]` is "shared", but it must be a folder by its whole path, or "*" for all
         1 | safe-directories = ["shared"]
           |                     ^^^^^^^^
        "#);
    }

    #[test]
    fn mirrors_are_lists_of_addresses() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            UserConfig::read(&path).map(|config| config.mirrors)
        };
        let index = "https://git.example/index";
        let mirrors =
            read(&format!("[mirrors]\n\"{index}\" = [\"/srv/index\", \"sparse+https://b.example/x\"]\n"));
        let listed = ["/srv/index", "sparse+https://b.example/x"].map(str::to_owned);
        assert_eq!(mirrors.unwrap(), BTreeMap::from([(index.to_owned(), listed.to_vec())]));
        let message = |text: &str| read(text).unwrap_err().to_string();
        assert!(message(&format!("[mirrors]\n\"{index}\" = \"/srv/index\"\n")).contains("a list of strings"));
        let secret = message(&format!("[mirrors]\n\"{index}\" = [\"https://me:secret@b.example/x\"]\n"));
        assert!(secret.contains("has no password") && !secret.contains("secret"), "{secret}");
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
        ~/config.toml:1:2: `package` is not known here and does nothing; known are `safe-directories`, `toolchain`, `cache`, `registries`, `mirrors`, `resolver`
         1 | [package]
           |  ^^^^^^^
        ");
    }
}
