//! Live suballocations of shared allocations.
//!
//! IREE packs the results of a call into one allocation. Reference counts alone do not show if a result's memory is
//! shared: its neighbours refer to the same allocation, and so may a result that lies within an argument, or a constant
//! of a program.

use rustc_hash::{FxHashMap, FxHashSet};
use slab::Slab;

/// The live suballocations of each allocation, by its address.
#[derive(Default)]
pub(crate) struct Suballocations(FxHashMap<usize, Allocation>);

/// A part of an allocation: its start and end, and the IREE object for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Suballocation {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) object: usize,
}

/// A recorded suballocation: the address of its allocation, and its key among those of the allocation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recorded {
    allocation: usize,
    key: usize,
}

/// Parts of one allocation.
#[derive(Default)]
struct Allocation {
    parts: Slab<Suballocation>,
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
    pub(crate) fn add(&mut self, allocation: usize, suballocation: Suballocation) -> Recorded {
        let of = self.0.entry(allocation).or_default();
        of.overview = None;
        Recorded { allocation, key: of.parts.insert(suballocation) }
    }

    pub(crate) fn remove(&mut self, Recorded { allocation, key }: Recorded) {
        let Some(of) = self.0.get_mut(&allocation) else { return };
        of.overview = None;
        of.parts.try_remove(key);
        if of.parts.is_empty() {
            self.0.remove(&allocation);
        }
    }

    /// True if all of the `references` to an allocation are recorded suballocations, of which no other overlaps this
    /// one.
    pub(crate) fn is_exclusive(&mut self, Recorded { allocation, key }: Recorded, references: usize) -> bool {
        let Some(of) = self.0.get_mut(&allocation) else { return false };
        let Some(part) = of.parts.get(key).copied() else { return false };
        let overview = of.overview.get_or_insert_with(|| Overview::of(&of.parts));
        overview.objects == references && overview.is_apart(part)
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
        let mut suballocations = Suballocations::default();
        let part = |object, start, end| Suballocation { start, end, object };
        let first = suballocations.add(7, part(1, 0, 8));
        let second = suballocations.add(7, part(2, 8, 16));
        assert!(suballocations.is_exclusive(first, 2));
        assert!(!suballocations.is_exclusive(first, 3), "a constant of a program, perhaps");
        let within = suballocations.add(7, part(3, 4, 8));
        assert!(!suballocations.is_exclusive(first, 3));
        assert!(suballocations.is_exclusive(second, 3));
        suballocations.remove(within);
        suballocations.remove(second);
        assert!(suballocations.is_exclusive(first, 1));
        let same_object = suballocations.add(7, part(1, 0, 8));
        assert!(!suballocations.is_exclusive(first, 1));
        suballocations.remove(same_object);
        assert!(suballocations.is_exclusive(first, 1));
        let empty = suballocations.add(7, part(4, 4, 4));
        assert!(suballocations.is_exclusive(first, 2), "nothing overlaps what is empty");
        assert!(!suballocations.is_exclusive(empty, 2));
        suballocations.remove(empty);
        suballocations.remove(first);
        assert!(!suballocations.is_exclusive(first, 1));
    }

    #[test]
    fn a_suballocation_within_an_earlier_longer_one_is_not_exclusive() {
        let mut suballocations = Suballocations::default();
        let part = |object, start, end| Suballocation { start, end, object };
        let long = suballocations.add(7, part(1, 0, 100));
        let [a, b] = [10, 20].map(|start| suballocations.add(7, part(start, start, start + 5)));
        let beyond = suballocations.add(7, part(2, 100, 108));
        for inner in [long, a, b] {
            assert!(!suballocations.is_exclusive(inner, 4));
        }
        assert!(suballocations.is_exclusive(beyond, 4));
    }
}
