//! Dictionaries.

mod key;

use std::hash::BuildHasherDefault;
use std::ops::Index;

use either::Either;
use imbl::shared_ptr::RcK;
use imbl::{GenericHashMap, GenericVector};
use indexmap::IndexMap;
use ustr::{IdentityHasher, Ustr};

pub use key::Key;

use super::contents::Tally;
use super::items::MAX_FLAT;
use super::release::{Item, holds_values, release, releasing};
use super::value::Value;

type Hasher = BuildHasherDefault<IdentityHasher>;

/// A dictionary in insertion order. Keywords, strings and symbols of one name are one key.
#[derive(Clone, Debug)]
pub struct Dict(Storage);

#[derive(Clone, Debug)]
enum Storage {
    /// At most [`MAX_FLAT`] entries.
    Flat(Flat),
    /// More entries than that.
    Persistent(Box<Persistent>),
}

/// A hash table, copied on change.
#[derive(Clone, Debug, Default)]
struct Flat {
    entries: IndexMap<Ustr, Value, Hasher>,
    /// Bit mask of the positions of keys written as strings.
    quoted: u64,
}

/// Persistent trees: a changed copy shares unchanged parts.
#[derive(Clone, Debug, Default)]
struct Persistent {
    /// Index of each key in `entries`.
    places: GenericHashMap<Ustr, usize, Hasher, RcK>,
    /// In insertion order, with a gap for each removed entry. At most half of them are gaps.
    entries: GenericVector<Option<(Key, Item)>, RcK>,
    tally: Tally,
}

const _: () = assert!(MAX_FLAT <= u64::BITS as usize);

impl Dict {
    /// An empty dictionary with the given capacity.
    pub fn with_capacity(entries: usize) -> Dict {
        let flat = IndexMap::with_capacity_and_hasher(entries.min(MAX_FLAT), Hasher::default());
        Dict(Storage::Flat(Flat { entries: flat, quoted: 0 }))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Flat(flat) => flat.entries.len(),
            Storage::Persistent(persistent) => persistent.places.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value of a key.
    pub fn get(&self, key: &Ustr) -> Option<&Value> {
        match &self.0 {
            Storage::Flat(flat) => flat.entries.get(key),
            Storage::Persistent(persistent) => persistent.places.get(key).map(|place| persistent.at(*place)),
        }
    }

    /// True if there is such a key.
    pub fn contains_key(&self, key: &Ustr) -> bool {
        match &self.0 {
            Storage::Flat(flat) => flat.entries.contains_key(key),
            Storage::Persistent(persistent) => persistent.places.contains_key(key),
        }
    }

    /// The entry at a position, in insertion order.
    pub fn get_index(&self, i: usize) -> Option<(Key, &Value)> {
        match &self.0 {
            Storage::Flat(flat) => flat.entries.get_index(i).map(|(name, value)| (flat.key(i, *name), value)),
            Storage::Persistent(persistent) if persistent.entries.len() == persistent.places.len() => {
                persistent.entries.get(i)?.as_ref().map(|(key, value)| (*key, value.value()))
            }
            Storage::Persistent(_) => self.iter().nth(i),
        }
    }

    /// The entries in insertion order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Key, &Value)> + Clone {
        match &self.0 {
            Storage::Flat(flat) => {
                let entries = flat.entries.iter().enumerate();
                Either::Left(entries.map(|(i, (name, value))| (flat.key(i, *name), value)))
            }
            Storage::Persistent(persistent) => {
                let entries = persistent.entries.iter().flatten();
                Either::Right(entries.map(|(key, value)| (*key, value.value())))
            }
        }
    }

    /// The entries sorted by name, as in pytrees, with their positions in insertion order.
    pub fn sorted(&self) -> Vec<(usize, Key, &Value)> {
        let mut entries: Vec<_> = self.iter().enumerate().map(|(i, (key, value))| (i, key, value)).collect();
        entries.sort_unstable_by(|a, b| a.1.as_str().cmp(b.1.as_str()));
        entries
    }

    /// The keys in insertion order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = Key> + Clone {
        self.iter().map(|(key, _)| key)
    }

    /// The values in insertion order.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &Value> + Clone {
        match &self.0 {
            Storage::Flat(flat) => Either::Left(flat.entries.values()),
            Storage::Persistent(persistent) => {
                Either::Right(persistent.entries.iter().flatten().map(|(_, value)| value.value()))
            }
        }
    }

    /// Sets the value of a key: an existing key keeps its position and syntax, a new one goes to the end. Returns the
    /// previous value.
    pub fn insert(&mut self, key: impl Into<Key>, value: Value) -> Option<Value> {
        let key = key.into();
        match &mut self.0 {
            Storage::Flat(flat) if flat.entries.len() < MAX_FLAT || flat.entries.contains_key(&key.name) => {
                flat.insert(key, value)
            }
            Storage::Flat(_) => {
                let mut persistent = Persistent::default();
                self.iter().for_each(|(key, value)| drop(persistent.insert(key, value.clone())));
                persistent.insert(key, value);
                self.0 = Storage::Persistent(Box::new(persistent));
                None
            }
            Storage::Persistent(persistent) => persistent.insert(key, value),
        }
    }

    /// A dictionary of the same keys with other values, in insertion order; the table of more than [`MAX_FLAT`] keys is shared.
    /// Keys beyond the last value keep theirs.
    pub(crate) fn with_values(&self, values: impl Iterator<Item = Value>) -> Dict {
        match &self.0 {
            Storage::Flat(flat) => {
                let mut flat = flat.clone();
                flat.entries.values_mut().zip(values).for_each(|(old, new)| *old = new);
                Dict(Storage::Flat(flat))
            }
            Storage::Persistent(persistent) => {
                Dict(Storage::Persistent(Box::new(persistent.with_values(values))))
            }
        }
    }

    /// Cached contents of persistent storage; `None` for flat storage.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        if let Storage::Persistent(persistent) = &self.0 { Some(&persistent.tally) } else { None }
    }

    /// Removes a key.
    pub fn remove(&mut self, key: &Ustr) {
        match &mut self.0 {
            Storage::Flat(flat) => flat.remove(*key),
            Storage::Persistent(persistent) => {
                persistent.remove(*key);
                if persistent.places.len() <= MAX_FLAT
                    || persistent.entries.len() > 2 * persistent.places.len()
                {
                    *self = self.iter().map(|(key, value)| (key, value.clone())).collect();
                }
            }
        }
    }
}

impl Flat {
    /// The key of that name at a position.
    fn key(&self, i: usize, name: Ustr) -> Key {
        Key { name, quoted: self.quoted >> i & 1 == 1 }
    }

    fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        let (i, before) = self.entries.insert_full(key.name, value);
        if key.quoted && before.is_none() {
            self.quoted |= 1 << i;
        }
        before
    }

    fn remove(&mut self, key: Ustr) {
        if let Some((i, ..)) = self.entries.shift_remove_full(&key) {
            let before = (1 << i) - 1;
            self.quoted = (self.quoted & before) | (self.quoted >> 1 & !before);
        }
    }
}

impl Persistent {
    /// The value at an index that is no gap.
    fn at(&self, place: usize) -> &Value {
        let (_, value) = self.entries[place].as_ref().expect("a key is in its place");
        value.value()
    }

    fn with_values(&self, mut values: impl Iterator<Item = Value>) -> Persistent {
        let entries = self.entries.iter().map(|entry| {
            entry.as_ref().map(|(key, old)| (*key, values.next().map_or_else(|| old.clone(), Item::new)))
        });
        Persistent { entries: entries.collect(), places: self.places.clone(), tally: Tally::default() }
    }

    fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        if let Some(place) = self.places.get(&key.name) {
            let (_, item) = self.entries[*place].as_mut().expect("a key is in its place");
            self.tally.add(&value);
            let before = item.replace(value);
            self.tally.remove(&before);
            return Some(before);
        }
        self.tally.add(&value);
        self.places.insert(key.name, self.entries.len());
        self.entries.push_back(Some((key, Item::new(value))));
        None
    }

    fn remove(&mut self, key: Ustr) {
        if let Some(place) = self.places.remove(&key)
            && let Some((_, item)) = self.entries[place].take()
        {
            self.tally.remove(item.value());
        }
    }
}

impl Default for Dict {
    fn default() -> Dict {
        Dict(Storage::Flat(Flat::default()))
    }
}

impl Index<&Ustr> for Dict {
    type Output = Value;

    fn index(&self, key: &Ustr) -> &Value {
        self.get(key).expect("the key is there")
    }
}

impl<K: Into<Key>> FromIterator<(K, Value)> for Dict {
    fn from_iter<I: IntoIterator<Item = (K, Value)>>(entries: I) -> Dict {
        let entries = entries.into_iter();
        let mut dict = Dict::with_capacity(entries.size_hint().0);
        dict.extend(entries);
        dict
    }
}

impl<K: Into<Key>> Extend<(K, Value)> for Dict {
    fn extend<I: IntoIterator<Item = (K, Value)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| drop(self.insert(key, value)));
    }
}

impl Drop for Dict {
    fn drop(&mut self) {
        match &mut self.0 {
            Storage::Flat(flat) if flat.entries.values().any(holds_values) => {
                release(flat.entries.drain(..).map(|(_, value)| value));
            }
            Storage::Flat(_) => {}
            Storage::Persistent(persistent) => releasing(|| persistent.entries.clear()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_values_leave_keys_and_the_first_dictionary_as_they_are() {
        for count in [0, 1, MAX_FLAT, MAX_FLAT + 1, 500] {
            let key = |i: usize| Key { name: Ustr::from(&format!("key-{i}")), quoted: i.is_multiple_of(3) };
            let first: Dict = (0..count).map(|i| (key(i), Value::Nil)).collect();
            let mut other = first.with_values((0..count).map(|i| Value::Int(i as i64)));
            let expected: Vec<_> = (0..count).map(|i| (key(i), Some(i as i64))).collect();
            let int = |value: &Value| if let Value::Int(n) = value { Some(*n) } else { None };
            assert_eq!(other.iter().map(|(key, value)| (key, int(value))).collect::<Vec<_>>(), expected);
            assert!((0..count).all(|i| other.get(&key(i).name).and_then(int) == Some(i as i64)));
            other.insert(key(count), Value::Nil);
            assert_eq!((other.len(), first.len()), (count + 1, count));
            assert!(first.values().all(|value| matches!(value, Value::Nil)));
        }
    }
}
