//! Indexes of registries: the versions of each package, as lines of JSON.
//!
//! ```text
//! config.toml            version = 1, and the name of the registry
//! at/te/attention-lib    one line of JSON for each version: `Entry`
//! ```
//!
//! An index is a git repository, a static copy of its files on an http(s) server, or a folder. Only the files of packages
//! that a resolution meets are read. Nothing in an index is trusted: an entry says where a version's source is and which
//! commit and tree hash it has, both of which are verified before the source is used.

mod config;
mod entry;
mod files;
mod http;
mod layout;
mod signature;

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

pub use config::{CONFIG_NAME, IndexConfig};
pub use entry::{Entry, EntryDependency, EntryError, yanked_line};
pub use files::{Folder, GitFiles, IndexFiles};
pub use http::HttpFiles;
pub use layout::package_path;
pub use signature::{AlteredEntry, EntrySignature, Programs};

/// Failure to read an index.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index cannot be reached or read.
    #[error("the registry {index} cannot be read: {cause}; {remedy}")]
    Unreadable {
        /// Address of the index.
        index: String,
        /// The cause.
        cause: String,
        /// The fix.
        remedy: String,
    },
    /// The index has no usable `config.toml`.
    #[error("{index} is no registry of Sheaf: {cause}; check the address under [registries]")]
    NoIndex {
        /// Address of the index.
        index: String,
        /// The cause.
        cause: String,
    },
    /// The lines of one package are invalid. Other packages of the registry can be used.
    #[error("the registry {index} has a line about {package} that cannot be used: {cause}")]
    Package {
        /// Address of the index.
        index: String,
        /// The package.
        package: String,
        /// The invalid line.
        cause: EntryError,
    },
}

/// The index of one registry. Reads each file once.
pub struct Index {
    address: String,
    /// The address in messages, with the mirror that is read in its place.
    shown: String,
    files: Box<dyn IndexFiles>,
    read: RefCell<HashMap<String, Arc<[Entry]>>>,
}

impl Index {
    /// The index with these files; an error unless its `config.toml` can be used.
    pub fn open(address: String, files: Box<dyn IndexFiles>) -> Result<Self, IndexError> {
        let shown = address.clone();
        Self::new(address, shown, files)
    }

    /// The index at `address`, read from the files of a mirror. The packages are those of `address`.
    pub fn open_mirror(
        address: String,
        mirror: &str,
        files: Box<dyn IndexFiles>,
    ) -> Result<Self, IndexError> {
        let shown = format!("{address} (mirror {mirror})");
        Self::new(address, shown, files)
    }

    fn new(address: String, shown: String, files: Box<dyn IndexFiles>) -> Result<Self, IndexError> {
        let index = Self { address, shown, files, read: RefCell::default() };
        let no_index = |cause: String| IndexError::NoIndex { index: index.shown.clone(), cause };
        let bytes = index.file(CONFIG_NAME)?;
        let bytes = bytes.ok_or_else(|| no_index(format!("it has no {CONFIG_NAME}")))?;
        IndexConfig::parse(&bytes).map_err(|cause| {
            index.files.forget(CONFIG_NAME);
            no_index(cause)
        })?;
        Ok(index)
    }

    /// Address of the index.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The versions of a package, lowest first; none if the registry does not have it.
    pub fn entries(&self, package: &str) -> Result<Arc<[Entry]>, IndexError> {
        if let Some(entries) = self.read.borrow().get(package) {
            return Ok(Arc::clone(entries));
        }
        let Some(path) = package_path(package) else { return Ok(Arc::from([])) };
        let bytes = self.file(&path)?.unwrap_or_default();
        let entries = Entry::parse_all(package, &bytes).map_err(|cause| {
            self.files.forget(&path);
            IndexError::Package { index: self.shown.clone(), package: package.into(), cause }
        })?;
        let entries: Arc<[Entry]> = entries.into();
        self.read.borrow_mut().insert(package.into(), Arc::clone(&entries));
        Ok(entries)
    }

    /// Reads the files of packages that are wanted soon, side by side where that is quicker.
    pub fn prefetch<'a>(&self, packages: impl Iterator<Item = &'a str>) {
        let read = self.read.borrow();
        let wanted = packages.filter(|package| !read.contains_key(*package)).filter_map(package_path);
        self.files.prefetch(&wanted.collect::<Vec<_>>());
    }

    /// The names of all packages, sorted; `None` if the index cannot be listed.
    pub fn names(&self) -> Result<Option<Vec<String>>, IndexError> {
        self.files.list().map_err(|error| self.unreadable(error))
    }

    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, IndexError> {
        self.files.read(path).map_err(|error| self.unreadable(error))
    }

    fn unreadable(&self, error: files::FilesError) -> IndexError {
        IndexError::Unreadable { index: self.shown.clone(), cause: error.cause, remedy: error.remedy }
    }
}
