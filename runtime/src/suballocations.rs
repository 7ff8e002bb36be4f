//! Live suballocations of shared allocations.
//!
//! IREE packs the results of a call into one allocation. Reference counts alone do not show if a result's memory is
//! shared: its neighbours refer to the same allocation, and so may a result that lies within an argument, or a constant
//! of a program.

use std::cell::RefCell;
use std::rc::{Rc, Weak};

use rustc_hash::{FxHashMap, FxHashSet};
use slab::Slab;

/// The allocations that have live suballocations.
#[derive(Default)]
pub(crate) struct Suballocations(Rc<RefCell<Allocations>>);

#[derive(Default)]
struct Allocations {
    by_address: FxHashMap<usize, Weak<Allocation>>,
    /// The allocation of the suballocation that was recorded last: the results of a call lie in one.
    last: Weak<Allocation>,
}

/// A part of an allocation: its start and end, and the IREE object for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suballocation {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) object: usize,
}

/// A live suballocation: recorded until it is dropped.
pub(crate) struct Recorded {
    allocation: Rc<Allocation>,
    /// Its key among the parts of the allocation.
    key: usize,
}

/// An allocation with live suballocations.
struct Allocation {
    address: usize,
    parts: RefCell<Parts>,
    /// The table that it is in.
    table: Rc<RefCell<Allocations>>,
}

/// Parts of one allocation.
#[derive(Default)]
struct Parts {
    all: Slab<Suballocation>,
    /// Summary of the parts; `None` after a change. A call looks at all its arguments between two changes.
    overview: Option<Overview>,
}

/// Summary of an allocation's parts, from which each is judged without a look at the others.
struct Overview {
    /// Parts that are not empty, by their starts, each with the greatest end up to it.
    sorted: Vec<(Suballocation, usize)>,
    /// Number of distinct objects.
    objects: usize,
}

impl Suballocations {
    /// Records a part of the allocation at an address.
    pub(crate) fn add(&self, address: usize, suballocation: Suballocation) -> Recorded {
        let allocation = self.allocation(address);
        let key = {
            let mut parts = allocation.parts.borrow_mut();
            parts.overview = None;
            parts.all.insert(suballocation)
        };
        Recorded { allocation, key }
    }

    fn allocation(&self, address: usize) -> Rc<Allocation> {
        let mut table = self.0.borrow_mut();
        let last = table.last.upgrade();
        if let Some(last) = last.as_ref().filter(|last| last.address == address) {
            return Rc::clone(last);
        }
        let found = table.by_address.get(&address).and_then(Weak::upgrade).unwrap_or_else(|| {
            // A loop's calls have equally many results.
            let likely = last.as_ref().map_or(0, |last| last.parts.borrow().all.len());
            let parts = RefCell::new(Parts { all: Slab::with_capacity(likely), overview: None });
            let new = Rc::new(Allocation { address, parts, table: Rc::clone(&self.0) });
            table.by_address.insert(address, Rc::downgrade(&new));
            new
        });
        table.last = Rc::downgrade(&found);
        found
    }
}

impl Recorded {
    /// True if all of the `references` to the allocation are recorded suballocations, of which no other overlaps this
    /// one.
    pub(crate) fn is_exclusive(&self, references: usize) -> bool {
        let parts = &mut *self.allocation.parts.borrow_mut();
        let Some(part) = parts.all.get(self.key) else { return false };
        let overview = parts.overview.get_or_insert_with(|| Overview::of(&parts.all));
        overview.objects == references && overview.is_apart(*part)
    }
}

impl Drop for Recorded {
    fn drop(&mut self) {
        let mut parts = self.allocation.parts.borrow_mut();
        parts.overview = None;
        parts.all.try_remove(self.key);
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.table.borrow_mut().by_address.remove(&self.address);
    }
}

impl Overview {
    fn of(parts: &Slab<Suballocation>) -> Self {
        let objects: FxHashSet<usize> = parts.iter().map(|(_, part)| part.object).collect();
        let mut full: Vec<Suballocation> =
            parts.iter().map(|(_, part)| *part).filter(|part| part.start < part.end).collect();
        full.sort_unstable();
        let greatest_ends = full.iter().scan(0, |end, part| {
            *end = part.end.max(*end);
            Some(*end)
        });
        Self { sorted: full.iter().copied().zip(greatest_ends).collect(), objects: objects.len() }
    }

    /// True if it is recorded once, is not empty and no other overlaps it.
    fn is_apart(&self, part: Suballocation) -> bool {
        let Ok(i) = self.sorted.binary_search_by(|(other, _)| other.cmp(&part)) else { return false };
        let before = i.checked_sub(1).map_or(0, |i| self.sorted[i].1);
        before <= part.start && self.sorted.get(i + 1).is_none_or(|(next, _)| part.end <= next.start)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suballocation_is_exclusive_while_no_other_overlaps_it_and_nothing_else_refers_to_the_allocation() {
        let suballocations = Suballocations::default();
        let part = |object, start, end| Suballocation { start, end, object };
        let first = suballocations.add(7, part(1, 0, 8));
        let second = suballocations.add(7, part(2, 8, 16));
        assert!(first.is_exclusive(2));
        assert!(!first.is_exclusive(3), "a constant of a program, perhaps");
        let within = suballocations.add(7, part(3, 4, 8));
        assert!(!first.is_exclusive(3));
        assert!(second.is_exclusive(3));
        drop((within, second));
        assert!(first.is_exclusive(1));
        let same_object = suballocations.add(7, part(1, 0, 8));
        assert!(!first.is_exclusive(1));
        drop(same_object);
        assert!(first.is_exclusive(1));
        let empty = suballocations.add(7, part(4, 4, 4));
        assert!(first.is_exclusive(2), "nothing overlaps what is empty");
        assert!(!empty.is_exclusive(2));
    }

    #[test]
    fn allocations_are_apart_and_forgotten_with_their_last_suballocation() {
        let suballocations = Suballocations::default();
        let part = |object, start, end| Suballocation { start, end, object };
        let first = suballocations.add(7, part(1, 0, 8));
        let other = suballocations.add(8, part(2, 0, 8));
        let second = suballocations.add(7, part(3, 4, 12));
        assert!(other.is_exclusive(1));
        assert!(!first.is_exclusive(2));
        drop(first);
        assert!(second.is_exclusive(1));
        assert_eq!(suballocations.0.borrow().by_address.len(), 2);
        drop((second, other));
        assert!(suballocations.0.borrow().by_address.is_empty());
        assert!(suballocations.add(8, part(4, 0, 8)).is_exclusive(1), "another allocation at that address");
    }

    #[test]
    fn a_suballocation_within_an_earlier_longer_one_is_not_exclusive() {
        let suballocations = Suballocations::default();
        let part = |object, start, end| Suballocation { start, end, object };
        let long = suballocations.add(7, part(1, 0, 100));
        let [a, b] = [10, 20].map(|start| suballocations.add(7, part(start, start, start + 5)));
        let beyond = suballocations.add(7, part(2, 100, 108));
        for inner in [&long, &a, &b] {
            assert!(!inner.is_exclusive(4));
        }
        assert!(beyond.is_exclusive(4));
    }
}
