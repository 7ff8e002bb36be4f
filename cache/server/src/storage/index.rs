//! In-memory index of the folder, in LRU order.

use std::collections::{BTreeMap, HashMap};

use sheaf_foundation::Digest;

/// Kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kind {
    /// An `ActionResult`, under the digest of its action.
    Action,
    /// Bytes, under their own digest.
    Blob,
}

/// The name of one file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub kind: Kind,
    pub digest: Digest,
}

/// Metadata of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stored {
    /// Uncompressed size in bytes.
    pub size: u64,
    /// File size in bytes, without the unused rest of its last block.
    pub length: u64,
    /// True if the file is compressed.
    pub packed: bool,
}

/// Block size of file systems: a thousand small entries take more than their lengths.
pub(super) const BLOCK: u64 = 4096;

impl Stored {
    /// Size on disk.
    pub fn space(&self) -> u64 {
        self.length.div_ceil(BLOCK).max(1) * BLOCK
    }
}

/// All entries, and the order of their use.
#[derive(Debug, Default)]
pub(super) struct Index {
    entries: HashMap<Key, (Stored, u64)>,
    order: BTreeMap<u64, Key>,
    /// Logical time, incremented at each use.
    clock: u64,
    space: u64,
    actions: usize,
}

impl Index {
    /// The entry for `key`.
    pub fn get(&self, key: &Key) -> Option<Stored> {
        self.entries.get(key).map(|(stored, _)| *stored)
    }

    /// The entry for `key`, marked as most recently used.
    pub fn get_used(&mut self, key: &Key) -> Option<Stored> {
        let (stored, used) = self.entries.get_mut(key)?;
        self.order.remove(used);
        self.clock += 1;
        *used = self.clock;
        self.order.insert(self.clock, *key);
        Some(*stored)
    }

    /// Inserts an entry as the most recently used; returns the replaced one.
    pub fn insert(&mut self, key: Key, stored: Stored) -> Option<Stored> {
        let older = self.remove(&key);
        self.clock += 1;
        self.entries.insert(key, (stored, self.clock));
        self.order.insert(self.clock, key);
        self.space += stored.space();
        self.actions += usize::from(key.kind == Kind::Action);
        older
    }

    /// Removes an entry.
    pub fn remove(&mut self, key: &Key) -> Option<Stored> {
        let (stored, used) = self.entries.remove(key)?;
        self.order.remove(&used);
        self.space -= stored.space();
        self.actions -= usize::from(key.kind == Kind::Action);
        Some(stored)
    }

    /// The least recently used entry.
    pub fn oldest(&self) -> Option<Key> {
        self.order.first_key_value().map(|(_, key)| *key)
    }

    /// Size of all entries on disk.
    pub fn space(&self) -> u64 {
        self.space
    }

    /// Number of action results, and number of blobs.
    pub fn counts(&self) -> (usize, usize) {
        (self.actions, self.entries.len() - self.actions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { kind: Kind::Blob, digest: Digest::of(name.as_bytes()) }
    }

    fn stored(length: u64) -> Stored {
        Stored { size: length, length, packed: false }
    }

    #[test]
    fn the_longest_unused_is_the_oldest() {
        let mut index = Index::default();
        for name in ["a", "b", "c"] {
            index.insert(key(name), stored(1));
        }
        assert_eq!(index.oldest(), Some(key("a")));
        index.get_used(&key("a"));
        assert_eq!(index.oldest(), Some(key("b")));
        assert!(index.get(&key("b")).is_some());
        assert_eq!(index.oldest(), Some(key("b")));
        index.remove(&key("b"));
        assert_eq!(index.oldest(), Some(key("c")));
    }

    #[test]
    fn space_is_that_of_blocks_and_replacing_counts_once() {
        let mut index = Index::default();
        index.insert(key("a"), stored(1));
        assert_eq!(index.space(), 4096);
        assert_eq!(index.insert(key("a"), stored(4097)), Some(stored(1)));
        assert_eq!(index.space(), 8192);
        index.insert(Key { kind: Kind::Action, ..key("a") }, stored(0));
        assert_eq!((index.space(), index.counts()), (12288, (1, 1)));
        index.remove(&key("a"));
        assert_eq!((index.space(), index.counts()), (4096, (1, 0)));
    }
}
