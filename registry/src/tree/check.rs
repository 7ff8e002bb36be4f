//! Rules for the files of a package.
//!
//! They are checked entry by entry, so that a tree of a few kilobytes which unfolds to terabytes stops at the limits.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::path::Path;

use super::TreeError;
use super::links::Links;
use super::name::{folded, portable};

/// First line of a file that Git LFS keeps elsewhere.
const LFS: &[u8] = b"version https://git-lfs.github.com/spec/v1";

/// Maximum length of a link's target in bytes.
pub(crate) const TARGET: usize = 1024;

/// Maximum length of a path inside the tree, in bytes.
const PATH: usize = 1024;

/// Limits of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum number of files, folders and links together.
    pub entries: usize,
    /// Maximum size of all files together, in bytes.
    pub bytes: u64,
    /// Maximum size of one file, in bytes.
    pub file: u64,
    /// Maximum number of folders inside one another.
    pub depth: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { entries: 20_000, bytes: 1 << 30, file: 256 << 20, depth: 32 }
    }
}

/// Size of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summary {
    /// Number of files, folders and links together.
    pub entries: usize,
    /// Size of all files together, in bytes.
    pub bytes: u64,
}

/// Checks the rules for the folder at `root`. Links are not followed.
pub fn check(root: &Path, limits: &Limits) -> Result<Summary, TreeError> {
    let mut rules = Rules::new(*limits);
    check_folder(root, "", &mut rules)?;
    rules.finish()
}

fn check_folder(folder: &Path, path: &str, rules: &mut Rules) -> Result<(), TreeError> {
    let failed = |source| TreeError::Io { path: folder.into(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).map_err(failed)? {
        names.push(entry.map_err(failed)?.file_name());
        // A folder may hold more names than there is memory.
        rules.room(names.len(), path)?;
    }
    names.sort();
    let mut siblings = Siblings::default();
    for name in names {
        let file = folder.join(&name);
        let failed = |source| TreeError::Io { path: file.clone(), source };
        let kind = fs::symlink_metadata(&file).map_err(failed)?;
        let path = rules.enter(path, name.as_encoded_bytes(), kind.is_symlink(), &mut siblings)?;
        if kind.is_dir() {
            check_folder(&file, &path, rules)?;
        } else if kind.is_symlink() {
            let target = fs::read_link(&file).map_err(failed)?;
            rules.link(&path, target.as_os_str().as_encoded_bytes())?;
        } else if kind.is_file() {
            rules.size(&path, kind.len())?;
            let mut start = Vec::new();
            let file = fs::File::open(&file).map_err(failed)?;
            file.take(LFS.len() as u64).read_to_end(&mut start).map_err(failed)?;
            Rules::contents(&path, &start)?;
        } else {
            return Err(TreeError::Kind { path });
        }
    }
    Ok(())
}

/// The names of one folder so far, by folded name.
#[derive(Debug, Default)]
pub(crate) struct Siblings(HashMap<String, String>);

/// The rules, applied to one entry after another.
#[derive(Debug)]
pub(crate) struct Rules {
    limits: Limits,
    total: Summary,
    links: Links,
}

impl Rules {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, total: Summary::default(), links: Links::default() }
    }

    /// The path of the entry `name` of the folder `path`, counted.
    pub(crate) fn enter(
        &mut self,
        path: &str,
        name: &[u8],
        is_link: bool,
        siblings: &mut Siblings,
    ) -> Result<String, TreeError> {
        let name = portable(name, is_link).map_err(|reason| TreeError::Name {
            path: shown(&join(path, &String::from_utf8_lossy(name))),
            reason,
        })?;
        let full = join(path, name);
        self.room(1, &full)?;
        self.total.entries += 1;
        if full.len() > PATH {
            return Err(TreeError::Name {
                path: shown(&full),
                reason: "makes a path of more than 1024 bytes",
            });
        }
        let depth = full.matches('/').count();
        if depth > self.limits.depth {
            let what = format!("more than {} folders inside one another", self.limits.depth);
            return Err(TreeError::TooLarge { what, path: shown(&full) });
        }
        if let Some(first) = siblings.0.insert(folded(name), name.into()) {
            return Err(TreeError::Collision { first: shown(&join(path, &first)), second: shown(&full) });
        }
        Ok(full)
    }

    /// An error unless there is room for `more` entries.
    pub(crate) fn room(&self, more: usize, path: &str) -> Result<(), TreeError> {
        if self.total.entries + more <= self.limits.entries {
            return Ok(());
        }
        let what = format!("more than {} files and folders", self.limits.entries);
        Err(TreeError::TooLarge { what, path: shown(path) })
    }

    /// Counts a file's size, before its contents are read.
    pub(crate) fn size(&mut self, path: &str, bytes: u64) -> Result<(), TreeError> {
        if bytes > self.limits.file {
            let what = format!("a file of {}, more than {},", size(bytes), size(self.limits.file));
            return Err(TreeError::TooLarge { what, path: shown(path) });
        }
        self.total.bytes = self.total.bytes.saturating_add(bytes);
        if self.total.bytes <= self.limits.bytes {
            return Ok(());
        }
        let what = format!("more than {} of files", size(self.limits.bytes));
        Err(TreeError::TooLarge { what, path: shown(path) })
    }

    /// Checks the start of a file's contents.
    pub(crate) fn contents(path: &str, start: &[u8]) -> Result<(), TreeError> {
        if start.starts_with(LFS) { Err(TreeError::Lfs { path: shown(path) }) } else { Ok(()) }
    }

    /// The target of a link, to be followed by [`finish`](Self::finish).
    pub(crate) fn link<'t>(&mut self, path: &str, target: &'t [u8]) -> Result<&'t str, TreeError> {
        let bad = |reason| TreeError::Link {
            path: shown(path),
            target: shown(&String::from_utf8_lossy(&target[..target.len().min(TARGET)])),
            reason,
        };
        if target.len() > TARGET {
            return Err(bad("is longer than 1024 bytes"));
        }
        let text = str::from_utf8(target).map_err(|_| bad("is not UTF-8"))?;
        self.links.insert(path, text);
        Ok(text)
    }

    /// Follows the links; the tree's size.
    pub(crate) fn finish(self) -> Result<Summary, TreeError> {
        match self.links.first_escape() {
            Some((path, target, reason)) => {
                Err(TreeError::Link { path: shown(path), target: shown(target), reason })
            }
            None => Ok(self.total),
        }
    }
}

/// The parts of `path`, a folder inside a tree written with `/`; `None` unless each is a name.
pub(crate) fn relative(path: &str) -> Option<Vec<&str>> {
    path.split('/').map(|part| portable(part.as_bytes(), false).ok()).collect()
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.into() } else { format!("{path}/{name}") }
}

/// A path of others, escaped for the terminal.
fn shown(path: &str) -> String {
    path.chars()
        .flat_map(|c| if c == '\'' || c == '"' { vec![c] } else { c.escape_debug().collect() })
        .collect()
}

/// A number of bytes in readable units.
fn size(bytes: u64) -> String {
    match bytes {
        1073741824.. if bytes.is_multiple_of(1 << 30) => format!("{} GiB", bytes >> 30),
        1048576.. if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ => format!("{bytes} bytes"),
    }
}
