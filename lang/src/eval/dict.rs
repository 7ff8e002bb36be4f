//! Dictionaries.

use std::hash::BuildHasherDefault;
use std::ops::{Deref, DerefMut};

use indexmap::IndexMap;
use ustr::{IdentityHasher, Ustr};

use super::value::Value;

type Entries = IndexMap<Ustr, Value, BuildHasherDefault<IdentityHasher>>;

/// A dictionary in insertion order. Keywords, strings and symbols of one name are one key.
#[derive(Clone, Debug, Default)]
pub struct Dict(Entries);

impl Dict {
    /// An empty dictionary with room for that many entries.
    pub fn with_capacity(entries: usize) -> Dict {
        Dict(Entries::with_capacity_and_hasher(entries, BuildHasherDefault::default()))
    }
}

impl Deref for Dict {
    type Target = Entries;

    fn deref(&self) -> &Entries {
        &self.0
    }
}

impl DerefMut for Dict {
    fn deref_mut(&mut self) -> &mut Entries {
        &mut self.0
    }
}

impl FromIterator<(Ustr, Value)> for Dict {
    fn from_iter<I: IntoIterator<Item = (Ustr, Value)>>(entries: I) -> Dict {
        Dict(entries.into_iter().collect())
    }
}
