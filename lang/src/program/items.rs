//! Items of lists.

use std::iter::Map;
use std::ops::{Index, Range};
use std::slice;

use either::Either;
use imbl::GenericVector;
use imbl::shared_ptr::RcK;

use super::contents::Tally;
use super::release::{Item, holds_values, release, releasing};
use super::value::Value;

/// Maximum entries of a list or dictionary with flat storage, which is copied on change.
pub(crate) const MAX_FLAT: usize = 64;

/// A persistent tree: a changed copy shares unchanged parts.
#[derive(Clone, Debug, Default)]
struct Persistent {
    tree: GenericVector<Item, RcK>,
    tally: Tally,
}

/// The items of a list: contiguous if few, else in a persistent tree.
#[derive(Clone, Debug)]
pub struct Items(Storage);

#[derive(Clone, Debug)]
enum Storage {
    /// At most [`MAX_FLAT`].
    Flat(Vec<Value>),
    /// More items than that.
    Persistent(Box<Persistent>),
}

/// The items in order.
pub type Iter<'a> =
    Either<slice::Iter<'a, Value>, Map<imbl::vector::Iter<'a, Item, RcK>, fn(&'a Item) -> &'a Value>>;

impl Items {
    /// Number of items.
    pub fn len(&self) -> usize {
        match &self.0 {
            Storage::Flat(flat) => flat.len(),
            Storage::Persistent(persistent) => persistent.tree.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at a position.
    pub fn get(&self, i: usize) -> Option<&Value> {
        match &self.0 {
            Storage::Flat(flat) => flat.get(i),
            Storage::Persistent(persistent) => persistent.tree.get(i).map(Item::value),
        }
    }

    /// The first item.
    pub fn first(&self) -> Option<&Value> {
        self.get(0)
    }

    /// The items in order.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0 {
            Storage::Flat(flat) => Either::Left(flat.iter()),
            Storage::Persistent(persistent) => Either::Right(persistent.tree.iter().map(Item::value)),
        }
    }

    /// A copy of the items.
    pub fn to_vec(&self) -> Vec<Value> {
        match &self.0 {
            Storage::Flat(flat) => flat.clone(),
            Storage::Persistent(_) => self.iter().cloned().collect(),
        }
    }

    /// These items followed by others.
    #[must_use]
    pub fn and(&self, others: &[Value]) -> Items {
        match &self.0 {
            Storage::Flat(flat) => Items::from([flat.as_slice(), others].concat()),
            Storage::Persistent(persistent) => {
                let mut persistent = persistent.clone();
                others.iter().for_each(|item| persistent.push(item.clone()));
                Items(Storage::Persistent(persistent))
            }
        }
    }

    /// An item followed by these.
    #[must_use]
    pub fn after(&self, first: Value) -> Items {
        match &self.0 {
            Storage::Flat(flat) => std::iter::once(first).chain(flat.iter().cloned()).collect(),
            Storage::Persistent(persistent) => {
                let mut persistent = persistent.clone();
                persistent.tally.add(&first);
                persistent.tree.push_front(Item::new(first));
                Items(Storage::Persistent(persistent))
            }
        }
    }

    /// Replaces an item.
    pub fn set(&mut self, i: usize, item: Value) {
        match &mut self.0 {
            Storage::Flat(flat) => flat[i] = item,
            Storage::Persistent(persistent) => {
                persistent.tally.remove(persistent.tree[i].value());
                persistent.tally.add(&item);
                persistent.tree.set(i, Item::new(item));
            }
        }
    }

    /// The items at these positions, in time proportional to the dropped items if those are few; else to the kept ones.
    #[must_use]
    pub fn part(&self, positions: Range<usize>) -> Items {
        let (before, after) = (positions.start, self.len() - positions.end);
        match &self.0 {
            Storage::Flat(flat) => Items(Storage::Flat(flat[positions].to_vec())),
            Storage::Persistent(persistent)
                if positions.len() > MAX_FLAT && before + after < positions.len() =>
            {
                let Persistent { mut tree, mut tally } = (**persistent).clone();
                let first = (0..before).filter_map(|_| tree.pop_front()).collect::<Vec<_>>();
                let last = (0..after).filter_map(|_| tree.pop_back());
                first.into_iter().chain(last).for_each(|item| tally.remove(item.value()));
                Items(Storage::Persistent(Box::new(Persistent { tree, tally })))
            }
            Storage::Persistent(_) => positions.map(|i| self[i].clone()).collect(),
        }
    }
}

impl From<Vec<Value>> for Items {
    #[inline]
    fn from(items: Vec<Value>) -> Items {
        if items.len() <= MAX_FLAT { Items(Storage::Flat(items)) } else { Items::persistent(items) }
    }
}

impl Items {
    #[inline(never)]
    fn persistent(items: Vec<Value>) -> Items {
        let tree = items.into_iter().map(Item::new).collect();
        Items(Storage::Persistent(Box::new(Persistent { tree, tally: Tally::default() })))
    }

    /// Cached contents of persistent storage; `None` for flat storage.
    pub(crate) fn tally(&self) -> Option<&Tally> {
        if let Storage::Persistent(persistent) = &self.0 { Some(&persistent.tally) } else { None }
    }
}

impl Persistent {
    fn push(&mut self, item: Value) {
        self.tally.add(&item);
        self.tree.push_back(Item::new(item));
    }
}

impl FromIterator<Value> for Items {
    fn from_iter<I: IntoIterator<Item = Value>>(items: I) -> Items {
        Items::from(Vec::from_iter(items))
    }
}

impl<'a> IntoIterator for &'a Items {
    type Item = &'a Value;
    type IntoIter = Iter<'a>;

    fn into_iter(self) -> Iter<'a> {
        self.iter()
    }
}

impl Index<usize> for Items {
    type Output = Value;

    fn index(&self, i: usize) -> &Value {
        match &self.0 {
            Storage::Flat(flat) => &flat[i],
            Storage::Persistent(persistent) => persistent.tree[i].value(),
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        match &mut self.0 {
            Storage::Flat(flat) if flat.iter().any(holds_values) => release(std::mem::take(flat)),
            Storage::Flat(_) => {}
            Storage::Persistent(persistent) => releasing(|| persistent.tree.clear()),
        }
    }
}
