//! Dictionaries.

mod key;

use std::hash::BuildHasherDefault;
use std::ops::Index;
use std::rc::Rc;

use either::Either;
use imbl::shared_ptr::RcK;
use imbl::{GenericHashMap, GenericVector};
use indexmap::IndexSet;
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

/// A hash table of the keys, shared by dictionaries with the same ones, and the values, copied on change.
#[derive(Clone, Debug, Default)]
struct Flat {
    keys: Rc<Keys>,
    /// In the order of the keys.
    values: Vec<Value>,
}

/// Keys in insertion order.
#[derive(Clone, Debug, Default)]
struct Keys {
    names: IndexSet<Ustr, Hasher>,
    /// Bit mask of the positions of keys written as strings.
    quoted: u64,
}

/// Persistent trees: a changed copy shares unchanged parts.
#[derive(Clone, Debug, Default)]
struct Persistent {
    /// Index of each key in `keys`.
    places: GenericHashMap<Ustr, usize, Hasher, RcK>,
    /// In insertion order, with a gap for each removed entry. At most half of them are gaps.
    keys: GenericVector<Option<Key>, RcK>,
    /// In the order of the keys; `nil` in a gap.
    values: GenericVector<Item, RcK>,
    tally: Tally,
}

const _: () = assert!(MAX_FLAT <= u64::BITS as usize);

impl Dict {
    /// An empty dictionary with the given capacity.
    pub fn with_capacity(entries: usize) -> Dict {
        let entries = entries.min(MAX_FLAT);
        let names = IndexSet::with_capacity_and_hasher(entries, Hasher::default());
        let keys = Rc::new(Keys { names, quoted: 0 });
        Dict(Storage::Flat(Flat { keys, values: Vec::with_capacity(entries) }))
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Flat(flat) => flat.values.len(),
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
            Storage::Flat(flat) => flat.keys.names.get_index_of(key).map(|i| &flat.values[i]),
            Storage::Persistent(persistent) => persistent.places.get(key).map(|place| persistent.at(*place)),
        }
    }

    /// True if there is such a key.
    pub fn contains_key(&self, key: &Ustr) -> bool {
        match &self.0 {
            Storage::Flat(flat) => flat.keys.names.contains(key),
            Storage::Persistent(persistent) => persistent.places.contains_key(key),
        }
    }

    /// The entry at a position, in insertion order.
    pub fn get_index(&self, i: usize) -> Option<(Key, &Value)> {
        match &self.0 {
            Storage::Flat(flat) => flat.entry(i),
            Storage::Persistent(persistent) if persistent.gaps() == 0 => {
                let key = persistent.keys.get(i).copied().flatten();
                key.zip(persistent.values.get(i).map(Item::value))
            }
            Storage::Persistent(_) => self.iter().nth(i),
        }
    }

    /// The entries in insertion order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (Key, &Value)> + Clone {
        match &self.0 {
            Storage::Flat(flat) => Either::Left(flat.keys.iter().zip(&flat.values)),
            Storage::Persistent(persistent) => Either::Right(persistent.iter()),
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
            Storage::Flat(flat) => Either::Left(flat.values.iter()),
            Storage::Persistent(persistent) => Either::Right(persistent.iter().map(|(_, value)| value)),
        }
    }

    /// Sets the value of a key: an existing key keeps its position and syntax, a new one goes to the end. Returns the
    /// previous value.
    pub fn insert(&mut self, key: impl Into<Key>, value: Value) -> Option<Value> {
        let key = key.into();
        match &mut self.0 {
            Storage::Flat(flat) if flat.values.len() < MAX_FLAT || flat.keys.names.contains(&key.name) => {
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

    /// A dictionary of the same keys with other values, in insertion order; the table of the keys is shared.
    /// Keys beyond the last value keep theirs.
    pub(crate) fn with_values(&self, values: impl Iterator<Item = Value>) -> Dict {
        match &self.0 {
            Storage::Flat(flat) => {
                let mut others = Vec::with_capacity(flat.values.len());
                others.extend(values.take(flat.values.len()));
                others.extend_from_slice(&flat.values[others.len()..]);
                Dict(Storage::Flat(Flat { keys: Rc::clone(&flat.keys), values: others }))
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
                if persistent.places.len() <= MAX_FLAT || persistent.gaps() > persistent.places.len() {
                    *self = self.iter().map(|(key, value)| (key, value.clone())).collect();
                }
            }
        }
    }
}

impl Flat {
    fn entry(&self, i: usize) -> Option<(Key, &Value)> {
        Some((self.keys.get(i)?, self.values.get(i)?))
    }

    fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        if let Some(i) = self.keys.names.get_index_of(&key.name) {
            return Some(std::mem::replace(&mut self.values[i], value));
        }
        Rc::make_mut(&mut self.keys).push(key);
        self.values.push(value);
        None
    }

    fn remove(&mut self, key: Ustr) {
        if let Some(i) = self.keys.names.get_index_of(&key) {
            Rc::make_mut(&mut self.keys).remove(i);
            self.values.remove(i);
        }
    }
}

impl Keys {
    fn get(&self, i: usize) -> Option<Key> {
        self.names.get_index(i).map(|name| self.key(i, *name))
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = Key> + ExactSizeIterator + Clone {
        self.names.iter().enumerate().map(|(i, name)| self.key(i, *name))
    }

    /// The key of that name at a position.
    fn key(&self, i: usize, name: Ustr) -> Key {
        Key { name, quoted: self.quoted >> i & 1 == 1 }
    }

    /// Appends a new key.
    fn push(&mut self, key: Key) {
        let (i, _) = self.names.insert_full(key.name);
        self.quoted |= u64::from(key.quoted) << i;
    }

    fn remove(&mut self, i: usize) {
        self.names.shift_remove_index(i);
        let before = (1 << i) - 1;
        self.quoted = (self.quoted & before) | (self.quoted >> 1 & !before);
    }
}

impl Persistent {
    fn gaps(&self) -> usize {
        self.keys.len() - self.places.len()
    }

    fn iter(&self) -> impl DoubleEndedIterator<Item = (Key, &Value)> + Clone {
        let entries = self.keys.iter().zip(self.values.iter());
        entries.filter_map(|(key, value)| key.map(|key| (key, value.value())))
    }

    /// The value at an index that is no gap.
    fn at(&self, place: usize) -> &Value {
        self.values[place].value()
    }

    fn with_values(&self, mut values: impl Iterator<Item = Value>) -> Persistent {
        let entries = self.keys.iter().zip(self.values.iter());
        let others = entries.map(|(key, old)| match key.and_then(|_| values.next()) {
            Some(value) => Item::new(value),
            None => old.clone(),
        });
        Persistent {
            values: others.collect(),
            places: self.places.clone(),
            keys: self.keys.clone(),
            tally: Tally::default(),
        }
    }

    fn insert(&mut self, key: Key, value: Value) -> Option<Value> {
        self.tally.add(&value);
        if let Some(place) = self.places.get(&key.name) {
            let before = self.values[*place].replace(value);
            self.tally.remove(&before);
            return Some(before);
        }
        self.places.insert(key.name, self.keys.len());
        self.keys.push_back(Some(key));
        self.values.push_back(Item::new(value));
        None
    }

    fn remove(&mut self, key: Ustr) {
        if let Some(place) = self.places.remove(&key) {
            self.keys[place] = None;
            self.tally.remove(&self.values[place].replace(Value::Nil));
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
            Storage::Flat(flat) if flat.values.iter().any(holds_values) => release(flat.values.drain(..)),
            Storage::Flat(_) => {}
            Storage::Persistent(persistent) => releasing(|| persistent.values.clear()),
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
