//! Sets of ranks: the version sets of the solver.

use std::fmt;
use std::ops::Bound;

use pubgrub::{Ranges, VersionSet};

/// Set of integers. All bounds have the form `[from, to)`, so that equal sets have equal representations: `Ranges` alone
/// takes integers for points of a dense order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ranks(Ranges<u32>);

impl Ranks {
    /// The ranks `0..end`.
    pub(super) fn below(end: u32) -> Self {
        (0..end).collect()
    }
}

impl FromIterator<u32> for Ranks {
    fn from_iter<T: IntoIterator<Item = u32>>(ranks: T) -> Self {
        Self(ranks.into_iter().map(interval).collect())
    }
}

fn interval(rank: u32) -> (Bound<u32>, Bound<u32>) {
    (Bound::Included(rank), Bound::Excluded(rank + 1))
}

impl VersionSet for Ranks {
    type V = u32;

    fn empty() -> Self {
        Self(Ranges::empty())
    }

    fn singleton(rank: u32) -> Self {
        Self(Ranges::from_range_bounds(interval(rank)))
    }

    fn complement(&self) -> Self {
        Self(self.0.complement())
    }

    fn intersection(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0))
    }

    fn contains(&self, rank: &u32) -> bool {
        self.0.contains(rank)
    }

    fn full() -> Self {
        Self(Ranges::full())
    }

    fn union(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0))
    }

    fn is_disjoint(&self, other: &Self) -> bool {
        self.0.is_disjoint(&other.0)
    }

    fn subset_of(&self, other: &Self) -> bool {
        self.0.subset_of(&other.0)
    }
}

impl fmt::Display for Ranks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn members(set: &Ranks) -> BTreeSet<u32> {
        (0..12).filter(|rank| set.contains(rank)).collect()
    }

    proptest! {
        #[test]
        fn operations_are_those_of_sets(
            a in prop::collection::btree_set(0_u32..10, 0..8),
            b in prop::collection::btree_set(0_u32..10, 0..8),
        ) {
            let (left, right): (Ranks, Ranks) = (a.iter().copied().collect(), b.iter().copied().collect());
            prop_assert_eq!(members(&left), a.clone());
            prop_assert_eq!(left.union(&right), a.union(&b).copied().collect::<Ranks>());
            prop_assert_eq!(left.intersection(&right), a.intersection(&b).copied().collect::<Ranks>());
            prop_assert_eq!(right.complement().intersection(&left), a.difference(&b).copied().collect::<Ranks>());
            prop_assert_eq!(left.complement().complement(), left.clone());
            prop_assert_eq!(left.subset_of(&right), a.is_subset(&b));
            prop_assert_eq!(left.is_disjoint(&right), a.is_disjoint(&b));
            let one_by_one = a.iter().fold(Ranks::empty(), |set, rank| set.union(&Ranks::singleton(*rank)));
            prop_assert_eq!(one_by_one, left);
        }
    }
}
