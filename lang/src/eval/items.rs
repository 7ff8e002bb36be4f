//! The items of lists.

use std::iter::Map;
use std::ops::{Index, Range};
use std::slice;

use either::Either;
use imbl::GenericVector;
use imbl::shared_ptr::RcK;

use super::contents::Tally;
use super::release::{Item, holds_values, release, releasing};
use super::value::Value;

/// Most entries of a list or dictionary that is copied as a whole when a part of it changes.
pub(super) const MOST_COPIED: usize = 64;

/// Items of which a changed copy shares what did not change.
#[derive(Clone, Debug, Default)]
struct Many {
    tree: GenericVector<Item, RcK>,
    tally: Tally,
}

/// The items of a list: side by side where they are few, else in a tree, of which a changed copy shares what did not
/// change.
#[derive(Clone, Debug)]
pub struct Items(Kept);

#[derive(Clone, Debug)]
enum Kept {
    /// At most [`MOST_COPIED`].
    Few(Vec<Value>),
    /// More than that.
    Many(Box<Many>),
}

/// The items in order.
pub type Iter<'a> =
    Either<slice::Iter<'a, Value>, Map<imbl::vector::Iter<'a, Item, RcK>, fn(&'a Item) -> &'a Value>>;

impl Items {
    /// Number of items.
    pub fn len(&self) -> usize {
        match &self.0 {
            Kept::Few(few) => few.len(),
            Kept::Many(many) => many.tree.len(),
        }
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The item at a position.
    pub fn get(&self, i: usize) -> Option<&Value> {
        match &self.0 {
            Kept::Few(few) => few.get(i),
            Kept::Many(many) => many.tree.get(i).map(Item::value),
        }
    }

    /// The first item.
    pub fn first(&self) -> Option<&Value> {
        self.get(0)
    }

    /// The items in order.
    pub fn iter(&self) -> Iter<'_> {
        match &self.0 {
            Kept::Few(few) => Either::Left(few.iter()),
            Kept::Many(many) => Either::Right(many.tree.iter().map(Item::value)),
        }
    }

    /// The items in memory of their own.
    pub fn to_vec(&self) -> Vec<Value> {
        match &self.0 {
            Kept::Few(few) => few.clone(),
            Kept::Many(_) => self.iter().cloned().collect(),
        }
    }

    /// These items and then others.
    #[must_use]
    pub fn and(&self, others: &[Value]) -> Items {
        match &self.0 {
            Kept::Few(few) => Items::from([few.as_slice(), others].concat()),
            Kept::Many(many) => {
                let mut many = many.clone();
                others.iter().for_each(|item| many.push(item.clone()));
                Items(Kept::Many(many))
            }
        }
    }

    /// An item and then these.
    #[must_use]
    pub fn after(&self, first: Value) -> Items {
        match &self.0 {
            Kept::Few(few) => std::iter::once(first).chain(few.iter().cloned()).collect(),
            Kept::Many(many) => {
                let mut many = many.clone();
                many.tally.add(&first);
                many.tree.push_front(Item::new(first));
                Items(Kept::Many(many))
            }
        }
    }

    /// Puts an item in the place of another.
    pub fn set(&mut self, i: usize, item: Value) {
        match &mut self.0 {
            Kept::Few(few) => few[i] = item,
            Kept::Many(many) => {
                many.tally.remove(many.tree[i].value());
                many.tally.add(&item);
                many.tree.set(i, Item::new(item));
            }
        }
    }

    /// The items at these positions. Where few are left out, the work is in proportion to those; else to those kept.
    #[must_use]
    pub fn part(&self, positions: Range<usize>) -> Items {
        let (before, after) = (positions.start, self.len() - positions.end);
        match &self.0 {
            Kept::Few(few) => Items(Kept::Few(few[positions].to_vec())),
            Kept::Many(many) if positions.len() > MOST_COPIED && before + after < positions.len() => {
                let Many { mut tree, mut tally } = (**many).clone();
                let first = (0..before).filter_map(|_| tree.pop_front()).collect::<Vec<_>>();
                let last = (0..after).filter_map(|_| tree.pop_back());
                first.into_iter().chain(last).for_each(|item| tally.remove(item.value()));
                Items(Kept::Many(Box::new(Many { tree, tally })))
            }
            Kept::Many(_) => positions.map(|i| self[i].clone()).collect(),
        }
    }
}

impl From<Vec<Value>> for Items {
    #[inline]
    fn from(items: Vec<Value>) -> Items {
        if items.len() <= MOST_COPIED { Items(Kept::Few(items)) } else { Items::many(items) }
    }
}

impl Items {
    #[inline(never)]
    fn many(items: Vec<Value>) -> Items {
        let tree = items.into_iter().map(Item::new).collect();
        Items(Kept::Many(Box::new(Many { tree, tally: Tally::default() })))
    }

    /// Counts of many items; few are not counted.
    pub(super) fn tally(&self) -> Option<&Tally> {
        if let Kept::Many(many) = &self.0 { Some(&many.tally) } else { None }
    }
}

impl Many {
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
            Kept::Few(few) => &few[i],
            Kept::Many(many) => many.tree[i].value(),
        }
    }
}

impl Drop for Items {
    fn drop(&mut self) {
        match &mut self.0 {
            Kept::Few(few) if few.iter().any(holds_values) => release(std::mem::take(few)),
            Kept::Few(_) => {}
            Kept::Many(many) => releasing(|| many.tree.clear()),
        }
    }
}
