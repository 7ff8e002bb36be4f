//! `Sheaf.lock`: the pinned dependencies of a project, by digest.
//!
//! ```toml
//! [toolchain]
//! iree = "3.13.0"
//!
//! [toolchain.files]
//! linux-x86_64 = { name = "iree_base_compiler-3.13.0-....whl", sha256 = "d09d2e...", size = 83634623 }
//! linux-aarch64 = { name = "...", sha256 = "...", size = 84974273 }
//!
//! [toolchain.addresses]
//! index = "https://index.example/simple"
//! linux-x86_64 = "https://index.example/files/iree_base_compiler-3.13.0-....whl"
//! ```
//!
//! A file is identified by its name and its SHA-256, so that any mirror serves. The addresses save users of the same
//! index the request for the file's address, and are trusted for nothing else. Each section belongs to one command; the
//! others are kept as they are, with their comments.

use std::collections::BTreeMap;
use std::path::Path;

use toml_edit::{DocumentMut, InlineTable, Item, Table, value};
use url::Url;

use crate::edit::{self, EditError};
use crate::error::FileError;
use crate::spanned_toml::{self, Document, Found, Table as ReadTable};
use crate::tables::is_release;
use sheaf_foundation::Owners;

/// The name of the file, next to `Sheaf.toml`.
pub const LOCK_NAME: &str = "Sheaf.lock";

/// Newest format that this Sheaf reads and writes. Files without a version are those of Sheaf 0.1, which have no packages.
pub(crate) const FORMAT: i64 = 1;

/// Remedy for a file in a newer format.
const NEWER: &str = "update this Sheaf, or use the project with the newer one";

/// The platforms of the compiler.
const PLATFORMS: [&str; 4] = ["linux-x86_64", "linux-aarch64", "macos-universal", "windows-x86_64"];

/// The `[toolchain]` section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolchainLock {
    /// The release of the compiler.
    pub iree: String,
    /// The file of each platform, by the platform's name.
    pub files: BTreeMap<String, LockedFile>,
    /// Addresses of the files on an index; `None` if no index was asked.
    pub addresses: Option<Addresses>,
}

/// Addresses of the files on an index when the section was written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Addresses {
    /// The address of the index.
    pub index: String,
    /// The address of the file of each platform, by the platform's name.
    pub files: BTreeMap<String, String>,
}

/// A file, independent of its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedFile {
    /// Its name.
    pub name: String,
    /// Its SHA-256, in 64 lower-case hexadecimal digits.
    pub sha256: String,
    /// Its size in bytes.
    pub size: u64,
}

impl ToolchainLock {
    /// Reads the section of the file at `path`, if one of the `owners` owns it; `None` if there is no such section.
    pub fn read(path: &Path, owners: &Owners) -> Result<Found<Option<Self>>, FileError> {
        spanned_toml::read_owned(path, owners)?.and(|text| Self::parse(path, &text))
    }

    /// Reads the section in `text`, the contents of `path`.
    pub fn parse(path: &Path, text: &str) -> Result<Option<Self>, FileError> {
        // Files with hundreds of packages and no such section are usual, and each start reads them.
        if !text.contains("toolchain") {
            return Ok(None);
        }
        let document = Document::parse(path, text)?;
        let root = document.root(&["version", "toolchain"]);
        known_format(&root)?;
        let table = root.table("toolchain", &["iree", "files", "addresses"])?;
        let Some(iree) = table.string("iree")? else {
            // Files of an unknown release; an error only if there are any.
            table.missing("iree", "files", "run `sheaf toolchain pin VERSION`")?;
            return Ok(None);
        };
        if !is_release(&iree.value) {
            return Err(iree.wrong("a release of the compiler, such as \"3.13.0\""));
        }
        let listed = table.table("files", &PLATFORMS)?;
        let mut files = BTreeMap::new();
        for platform in PLATFORMS {
            let file = listed.table(platform, &["name", "sha256", "size"])?;
            let size = file.integer("size", &(1..=i64::MAX), "a number of bytes")?;
            let (Some(name), Some(sha256), Some(size)) = (file.string("name")?, file.string("sha256")?, size)
            else {
                continue;
            };
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
            if name.value.is_empty() || name.value.starts_with('.') || !name.value.bytes().all(plain) {
                return Err(name.wrong("the name of a file"));
            }
            let digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
            if sha256.value.len() != 64 || !sha256.value.bytes().all(digit) {
                return Err(sha256.wrong("a SHA-256: 64 digits from 0 to 9 and a to f"));
            }
            let file = LockedFile { name: name.value, sha256: sha256.value, size: size.cast_unsigned() };
            files.insert(platform.to_owned(), file);
        }
        Ok(Some(Self { iree: iree.value, files, addresses: addresses(&table)? }))
    }

    /// Writes the section into the file at `path`, creating it if needed. All other sections are kept as they are.
    pub fn write(&self, path: &Path) -> Result<(), EditError> {
        edit_lock(path, |document| self.put(document))
    }

    fn put(&self, document: &mut DocumentMut) {
        if document.is_empty() {
            document.decor_mut().set_prefix("# Written by Sheaf; keep it under version control.\n\n");
        }
        let mut files = Table::new();
        // In the order of `PLATFORMS`, not alphabetically.
        for platform in PLATFORMS {
            let Some(file) = self.files.get(platform) else { continue };
            let mut inline = InlineTable::new();
            inline.insert("name", file.name.as_str().into());
            inline.insert("sha256", file.sha256.as_str().into());
            inline.insert("size", i64::try_from(file.size).unwrap_or(i64::MAX).into());
            files.insert(platform, value(inline));
        }
        edit::in_table(document, "toolchain", |table| {
            edit::set(table, "iree", &self.iree);
            table.insert("files", Item::Table(files));
            let addresses = self.addresses.as_ref().map(Addresses::table);
            match addresses {
                Some(addresses) => table.insert("addresses", Item::Table(addresses)),
                None => table.remove("addresses"),
            };
        });
    }
}

/// Refuses a file in a newer format, in which the known keys may mean something else.
pub(crate) fn known_format(root: &ReadTable<'_, '_>) -> Result<(), FileError> {
    match root.integer("version", &(0..=i64::MAX), "the number of a format")? {
        Some(format) if format > FORMAT => {
            let cause = format!("this file was written by a newer Sheaf, in format {format}");
            Err(root.refused("version", cause, NEWER))
        }
        _ => Ok(()),
    }
}

/// Refuses the file at `path` if it is in a newer format. Other faults are left to the readers of its sections.
pub(crate) fn check_format(path: &Path, owners: &Owners) -> Result<(), FileError> {
    let Ok(Found::File(text)) = spanned_toml::read_owned(path, owners) else { return Ok(()) };
    Document::parse(path, &text).map_or(Ok(()), |document| known_format(&document.root(&["version"])))
}

/// Edits the file at `path`, unless it is in a newer format.
pub(crate) fn edit_lock(path: &Path, change: impl FnOnce(&mut DocumentMut)) -> Result<(), EditError> {
    edit::try_edit(path, |document| {
        match document.get("version").and_then(Item::as_integer) {
            Some(format) if format > FORMAT => {
                return Err(EditError::Newer { path: path.into(), format, remedy: NEWER });
            }
            _ => change(document),
        }
        Ok(())
    })
}

impl Addresses {
    fn table(&self) -> Table {
        let mut table = Table::new();
        table.insert("index", value(&self.index));
        for platform in PLATFORMS {
            if let Some(file) = self.files.get(platform) {
                table.insert(platform, value(file));
            }
        }
        table
    }
}

/// Reads the addresses of the files on an index; `None` without an index, which they depend on.
fn addresses(toolchain: &ReadTable<'_, '_>) -> Result<Option<Addresses>, FileError> {
    const KEYS: &[&str] = &["index", PLATFORMS[0], PLATFORMS[1], PLATFORMS[2], PLATFORMS[3]];
    let table = toolchain.table("addresses", KEYS)?;
    let address = |key: &str| {
        let text = table.string(key)?;
        let web = |text: &str| Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        match text {
            Some(text) if !web(&text.value) => Err(text.wrong("an http or https address")),
            text => Ok(text.map(|text| text.value)),
        }
    };
    let index = address("index")?;
    let mut files = BTreeMap::new();
    for platform in PLATFORMS {
        files.extend(address(platform)?.map(|file| (platform.to_owned(), file)));
    }
    Ok(index.map(|index| Addresses { index, files }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(iree: &str) -> ToolchainLock {
        let file = |platform: &str| {
            let name = format!("compiler-{iree}-{platform}.whl");
            (platform.to_owned(), LockedFile { name, sha256: "0a".repeat(32), size: 83_634_623 })
        };
        let files = ["linux-x86_64", "windows-x86_64"].map(file).into();
        ToolchainLock { iree: iree.into(), files, addresses: None }
    }

    fn read(path: &Path) -> Found<Option<ToolchainLock>> {
        ToolchainLock::read(path, &Owners::of_process(|_| None, &[])).unwrap()
    }

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_NAME);
        assert_eq!(read(&path), Found::Absent);
        lock("3.13.0").write(&path).unwrap();
        assert_eq!(read(&path), Found::File(Some(lock("3.13.0"))));
        insta::assert_snapshot!(std::fs::read_to_string(&path).unwrap(), @r#"
        # Written by Sheaf; keep it under version control.

        [toolchain]
        iree = "3.13.0"

        [toolchain.files]
        linux-x86_64 = { name = "compiler-3.13.0-linux-x86_64.whl", sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", size = 83634623 }
        windows-x86_64 = { name = "compiler-3.13.0-windows-x86_64.whl", sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", size = 83634623 }
        "#);
        let first = std::fs::read(&path).unwrap();
        lock("3.13.0").write(&path).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), first, "the same again changes nothing");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn other_sections_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_NAME);
        let others = "# mine\nversion = 1\n\n[[package]] # a\nname = \"vision\"\n";
        std::fs::write(&path, others).unwrap();
        lock("3.12.0").write(&path).unwrap();
        lock("3.13.0").write(&path).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with(others), "{text}");
        assert_eq!(text.matches("[toolchain]").count(), 1, "{text}");
        assert_eq!(read(&path), Found::File(Some(lock("3.13.0"))));
    }

    #[test]
    fn where_an_index_had_the_files_is_written_for_those_that_it_had() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_NAME);
        let file = "https://files.example/a/compiler-linux.whl".to_owned();
        let addresses = Addresses {
            index: "https://index.example/simple".into(),
            files: [("linux-x86_64".into(), file)].into(),
        };
        let lock = ToolchainLock { addresses: Some(addresses), ..lock("3.13.0") };
        lock.write(&path).unwrap();
        assert_eq!(read(&path), Found::File(Some(lock.clone())));
        let text = std::fs::read_to_string(&path).unwrap();
        insta::assert_snapshot!(text.split_once("[toolchain.addresses]").unwrap().1, @r#"
        index = "https://index.example/simple"
        linux-x86_64 = "https://files.example/a/compiler-linux.whl"
        "#);
        let without = ToolchainLock { addresses: None, ..lock };
        without.write(&path).unwrap();
        assert_eq!(read(&path), Found::File(Some(without)));
    }

    /// A newer Sheaf may have changed the meaning of a section.
    #[test]
    fn a_file_of_a_newer_format_is_neither_read_nor_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(LOCK_NAME);
        let text = "# newer\nversion = 2\n\n[toolchain]\niree = { release = \"4.0.0\" }\n";
        std::fs::write(&path, text).unwrap();
        let owners = Owners::of_process(|_| None, &[]);
        let neutral = |error: String| error.replace(&*folder.path().to_string_lossy(), "~");
        for error in
            [ToolchainLock::read(&path, &owners).unwrap_err(), check_format(&path, &owners).unwrap_err()]
        {
            insta::allow_duplicates! {
                insta::assert_snapshot!(neutral(error.to_string()), @"
                ~/Sheaf.lock:2:1: this file was written by a newer Sheaf, in format 2; update this Sheaf, or use the project with the newer one
                 2 | version = 2
                   | ^^^^^^^
                ");
            }
        }
        let packages = crate::packages_lock::PackagesLock::default();
        for error in [lock("3.13.0").write(&path).unwrap_err(), packages.write(&path).unwrap_err()] {
            insta::allow_duplicates! {
                insta::assert_snapshot!(neutral(error.to_string()), @"~/Sheaf.lock was written by a newer Sheaf, in format 2, so it is not changed; update this Sheaf, or use the project with the newer one");
            }
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        assert!(check_format(&folder.path().join("none"), &owners).is_ok());
    }

    #[test]
    fn a_section_with_nothing_in_it_says_nothing() {
        assert_eq!(ToolchainLock::parse(Path::new("/p/Sheaf.lock"), "[toolchain]\n").unwrap(), None);
    }

    #[test]
    fn what_means_nothing_is_shown() {
        let message =
            |text: &str| ToolchainLock::parse(Path::new("/p/Sheaf.lock"), text).unwrap_err().to_string();
        let file = |name: &str, sha256: &str, size: &str| {
            format!(
                "[toolchain]\niree = \"3.13.0\"\n[toolchain.files]\n\
                 linux-x86_64 = {{ name = \"{name}\", sha256 = \"{sha256}\", size = {size} }}\n"
            )
        };
        let good = "0a".repeat(32);
        insta::assert_snapshot!(message("[toolchain]\niree = \"latest\"\n"), @r#"
        /p/Sheaf.lock:2:8: `toolchain.iree` is "latest", but it must be a release of the compiler, such as "3.13.0"
         2 | iree = "latest"
           |        ^^^^^^^^
        "#);
        insta::assert_snapshot!(message(&file("a.whl", &good, "1").replace("iree = \"3.13.0\"\n", "")), @"
        /p/Sheaf.lock:2:12: `toolchain.iree` is missing; run `sheaf toolchain pin VERSION`
         2 | [toolchain.files]
           |            ^^^^^
        ");
        insta::assert_snapshot!(message(&file("../a.whl", &good, "1")), @r#"
        /p/Sheaf.lock:4:25: `toolchain.files.linux-x86_64.name` is "../a.whl", but it must be the name of a file
         4 | linux-x86_64 = { name = "../a.whl", sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", size = 1 }
           |                         ^^^^^^^^^^
        "#);
        insta::assert_snapshot!(message(&file("a.whl", "0A", "1")), @r#"
        /p/Sheaf.lock:4:43: `toolchain.files.linux-x86_64.sha256` is "0A", but it must be a SHA-256: 64 digits from 0 to 9 and a to f
         4 | linux-x86_64 = { name = "a.whl", sha256 = "0A", size = 1 }
           |                                           ^^^^
        "#);
        insta::assert_snapshot!(message(&file("a.whl", &good, "-1")), @r#"
        /p/Sheaf.lock:4:118: `toolchain.files.linux-x86_64.size` is "-1", but it must be a number of bytes
         4 | linux-x86_64 = { name = "a.whl", sha256 = "0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a", size = -1 }
           |                                                                                                                      ^^
        "#);
        let addresses = "[toolchain.addresses]\nindex = \"ftp://index.example\"\n";
        insta::assert_snapshot!(message(&format!("{}{addresses}", file("a.whl", &good, "1"))), @r#"
        /p/Sheaf.lock:6:9: `toolchain.addresses.index` is "ftp://index.example", but it must be an http or https address
         6 | index = "ftp://index.example"
           |         ^^^^^^^^^^^^^^^^^^^^^
        "#);
        assert!(message("[toolchain\n").contains("this is not TOML"));
    }
}
