//! Shared elements: in memory of their own, or in a file that is mapped into memory.

use std::fmt;
use std::ops::{Deref, Range};
use std::sync::{Arc, OnceLock};

use super::Element;

/// The bytes of a file, for as long as this lives.
pub trait FileBytes: Send + Sync {
    /// The bytes.
    fn bytes(&self) -> &[u8];

    /// Fails if they are no longer those of the file as it was opened.
    fn check(&self) -> Result<(), FileChanged> {
        Ok(())
    }
}

impl FileBytes for Vec<u8> {
    fn bytes(&self) -> &[u8] {
        self
    }
}

/// The error of a file that changed while its bytes were in use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileChanged {
    /// The file and the change.
    pub message: String,
    /// The fix.
    pub help: String,
}

/// A part of a file.
#[derive(Clone)]
pub struct FilePart {
    /// The bytes of the whole file.
    pub file: Arc<dyn FileBytes>,
    /// The part.
    pub range: Range<usize>,
}

impl FilePart {
    /// The bytes of the part.
    pub fn bytes(&self) -> &[u8] {
        &self.file.bytes()[self.range.clone()]
    }
}

/// Immutable elements; a clone shares them.
#[derive(Clone)]
pub struct Shared<T>(Storage<T>);

#[derive(Clone)]
enum Storage<T> {
    Owned(Arc<Vec<T>>),
    /// The elements are one aligned part of a file.
    Mapped(FilePart),
    Joined(Arc<Joined<T>>),
}

/// Parts of files, joined in memory at the first access.
struct Joined<T> {
    parts: Vec<FilePart>,
    elements: OnceLock<Vec<T>>,
}

impl<T: Element> Shared<T> {
    /// Elements in parts of files, one after the other. Nothing is read until they are accessed; then a single part with
    /// aligned elements stays in the file, and all else is copied.
    ///
    /// `None` if a part does not consist of whole elements.
    pub(super) fn in_files(parts: Vec<FilePart>) -> Option<Self> {
        if parts.iter().any(|part| !part.range.len().is_multiple_of(size_of::<T>())) {
            return None;
        }
        Some(Shared(match <[FilePart; 1]>::try_from(parts) {
            Ok([part]) if T::view(part.bytes()).is_some() => Storage::Mapped(part),
            Ok(part) => Storage::Joined(Arc::new(Joined { parts: part.into(), elements: OnceLock::new() })),
            Err(parts) => Storage::Joined(Arc::new(Joined { parts, elements: OnceLock::new() })),
        }))
    }
}

impl<T: Element> Shared<T> {
    /// The elements.
    pub fn as_slice(&self) -> &[T] {
        match &self.0 {
            Storage::Owned(elements) => elements,
            Storage::Mapped(part) => T::view(part.bytes()).unwrap_or_default(),
            Storage::Joined(joined) => joined.elements.get_or_init(|| {
                let mut all = Vec::with_capacity(
                    joined.parts.iter().map(|p| p.range.len()).sum::<usize>() / size_of::<T>(),
                );
                joined.parts.iter().for_each(|part| T::append(part.bytes(), &mut all));
                all
            }),
        }
    }

    /// The files that hold the elements; none if they are in memory.
    pub(super) fn files(&self) -> &[FilePart] {
        match &self.0 {
            Storage::Owned(_) => &[],
            Storage::Mapped(part) => std::slice::from_ref(part),
            Storage::Joined(joined) if joined.elements.get().is_some() => &[],
            Storage::Joined(joined) => &joined.parts,
        }
    }

    /// The number of elements, without access to them.
    pub(super) fn count(&self) -> usize {
        match &self.0 {
            Storage::Owned(elements) => elements.len(),
            Storage::Mapped(part) => part.range.len() / size_of::<T>(),
            Storage::Joined(joined) => {
                joined.parts.iter().map(|p| p.range.len()).sum::<usize>() / size_of::<T>()
            }
        }
    }
}

impl<T: Element> Deref for Shared<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        self.as_slice()
    }
}

impl<T> From<Vec<T>> for Shared<T> {
    fn from(elements: Vec<T>) -> Self {
        Shared(Storage::Owned(Arc::new(elements)))
    }
}

impl<T: Element + PartialEq> PartialEq for Shared<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T: Element + fmt::Debug> fmt::Debug for Shared<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_slice().fmt(f)
    }
}
