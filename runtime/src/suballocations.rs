//! Live suballocations of shared allocations.
//!
//! IREE packs the results of a call into one allocation. Reference counts alone do not show if a result's memory is
//! shared: its neighbours refer to the same allocation, and so may a result that lies within an argument, or a constant
//! of a program.

use std::collections::HashMap;

/// The live suballocations of each allocation, by its address.
#[derive(Default)]
pub(crate) struct Suballocations(HashMap<usize, Vec<Suballocation>>);

/// A part of an allocation: the IREE object for it, and its start and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Suballocation {
    pub(crate) object: usize,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Suballocations {
    pub(crate) fn add(&mut self, allocation: usize, suballocation: Suballocation) {
        self.0.entry(allocation).or_default().push(suballocation);
    }

    pub(crate) fn remove(&mut self, allocation: usize, suballocation: Suballocation) {
        let Some(suballocations) = self.0.get_mut(&allocation) else { return };
        if let Some(i) = suballocations.iter().position(|r| *r == suballocation) {
            suballocations.swap_remove(i);
        }
        if suballocations.is_empty() {
            self.0.remove(&allocation);
        }
    }

    /// True if all of the `references` to an allocation are recorded suballocations, of which none but `suballocation`
    /// overlaps it.
    pub(crate) fn is_exclusive(
        &self,
        allocation: usize,
        suballocation: Suballocation,
        references: usize,
    ) -> bool {
        let Some(suballocations) = self.0.get(&allocation) else { return false };
        let overlapping =
            suballocations.iter().filter(|r| r.start < suballocation.end && suballocation.start < r.end);
        let mut objects: Vec<usize> = suballocations.iter().map(|r| r.object).collect();
        objects.sort_unstable();
        objects.dedup();
        overlapping.count() == 1 && objects.len() == references
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suballocation_is_exclusive_while_no_other_overlaps_it_and_nothing_else_refers_to_the_allocation() {
        let mut suballocations = Suballocations::default();
        let (first, second) =
            (Suballocation { object: 1, start: 0, end: 8 }, Suballocation { object: 2, start: 8, end: 16 });
        suballocations.add(7, first);
        suballocations.add(7, second);
        assert!(suballocations.is_exclusive(7, first, 2));
        assert!(!suballocations.is_exclusive(7, first, 3), "a constant of a program, perhaps");
        let within = Suballocation { object: 3, start: 4, end: 8 };
        suballocations.add(7, within);
        assert!(!suballocations.is_exclusive(7, first, 3));
        assert!(suballocations.is_exclusive(7, second, 3));
        suballocations.remove(7, within);
        suballocations.remove(7, second);
        assert!(suballocations.is_exclusive(7, first, 1));
        // The same object twice.
        suballocations.add(7, first);
        assert!(!suballocations.is_exclusive(7, first, 1));
        suballocations.remove(7, first);
        assert!(suballocations.is_exclusive(7, first, 1));
        suballocations.remove(7, first);
        assert!(!suballocations.is_exclusive(7, first, 1));
    }
}
