//! `config.toml`: the user's settings for all projects.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::dependencies::{is_address, registries};
use crate::error::{FileError, Warning};
use crate::resolver::ResolverTable;
use crate::spanned_toml::{self, Document, Table, Text};
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
    /// `[mirrors]`: for the address of a registry those of its mirrors, which are asked first.
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
        let root =
            document.root(&["safe-directories", "toolchain", "cache", "registries", "mirrors", "resolver"]);
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
        Ok(Self {
            path: path.into(),
            safe_directories,
            toolchain,
            cache,
            registries,
            mirrors,
            resolver,
            warnings,
        })
    }
}

/// Reads `[mirrors]`: an address, or a list of them, under the address that they stand for.
fn mirrors(root: &Table<'_, '_>) -> Result<BTreeMap<String, Vec<String>>, FileError> {
    let table = root.open_table("mirrors")?;
    let read = |address: Text<'_, '_>| {
        let mirrors = match table.text_at(&address.value) {
            Some(mirror) => vec![mirror],
            None => table.texts(&address.value)?.unwrap_or_default(),
        };
        if let Some(wrong) = mirrors.iter().find(|mirror| !is_address(&mirror.value)) {
            return Err(wrong.wrong("the address of a registry, without a password"));
        }
        Ok((address.value, mirrors.into_iter().map(|mirror| mirror.value).collect()))
    };
    root.keys("mirrors")?.into_iter().map(read).collect()
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
    fn a_registry_may_have_mirrors() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("config.toml");
        let text = "[mirrors]\n\"https://a.example/index\" = \"https://m.example/a\"\n\
                    \"https://b.example/index\" = [\"/srv/b\", \"sparse+https://m.example/b\"]\n";
        std::fs::write(&path, text).unwrap();
        let mirrors = UserConfig::read(&path).unwrap().mirrors;
        assert_eq!(mirrors["https://a.example/index"], ["https://m.example/a"]);
        assert_eq!(mirrors["https://b.example/index"], ["/srv/b", "sparse+https://m.example/b"]);
        std::fs::write(&path, "[mirrors]\n\"https://a.example/index\" = [\"https://me:secret@m.example\"]\n")
            .unwrap();
        assert!(UserConfig::read(&path).is_err());
        std::fs::write(&path, "[mirrors]\n\"https://a.example/index\" = 1\n").unwrap();
        assert!(UserConfig::read(&path).is_err());
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
