//! Live suballocations of shared allocations.
//!
//! IREE packs the results of a call into one allocation. Reference counts alone do not show if a result's memory is
//! shared: its neighbours refer to the same allocation, and so may a result that lies within an argument, or a constant
//! of a program.

use std::collections::HashMap;

/// The live suballocations of each allocation, by its address.
#[derive(Default)]
pub(crate) struct Regions(HashMap<usize, Vec<Region>>);

/// A part of an allocation: the IREE object for it, and its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    pub(crate) object: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Regions {
    pub(crate) fn add(&mut self, allocation: usize, region: Region) {
        self.0.entry(allocation).or_default().push(region);
    }

    pub(crate) fn remove(&mut self, allocation: usize, region: Region) {
        let Some(regions) = self.0.get_mut(&allocation) else { return };
        if let Some(i) = regions.iter().position(|r| *r == region) {
            regions.swap_remove(i);
        }
        if regions.is_empty() {
            self.0.remove(&allocation);
        }
    }

    /// True if all of the `references` to an allocation are recorded suballocations, of which none but `region`
    /// overlaps it.
    pub(crate) fn is_apart(&self, allocation: usize, region: Region, references: usize) -> bool {
        let Some(regions) = self.0.get(&allocation) else { return false };
        let overlapping = regions.iter().filter(|r| r.start < region.end && region.start < r.end);
        let mut objects: Vec<usize> = regions.iter().map(|r| r.object).collect();
        objects.sort_unstable();
        objects.dedup();
        overlapping.count() == 1 && objects.len() == references
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_apart_while_no_other_overlaps_it_and_nothing_else_refers_to_the_allocation() {
        let mut regions = Regions::default();
        let (first, second) =
            (Region { object: 1, start: 0, end: 8 }, Region { object: 2, start: 8, end: 16 });
        regions.add(7, first);
        regions.add(7, second);
        assert!(regions.is_apart(7, first, 2));
        assert!(!regions.is_apart(7, first, 3), "a constant of a program, perhaps");
        let within = Region { object: 3, start: 4, end: 8 };
        regions.add(7, within);
        assert!(!regions.is_apart(7, first, 3));
        assert!(regions.is_apart(7, second, 3));
        regions.remove(7, within);
        regions.remove(7, second);
        assert!(regions.is_apart(7, first, 1));
        // The same object twice.
        regions.add(7, first);
        assert!(!regions.is_apart(7, first, 1));
        regions.remove(7, first);
        assert!(regions.is_apart(7, first, 1));
        regions.remove(7, first);
        assert!(!regions.is_apart(7, first, 1));
    }
}
