//! Memory of large buffers, kept when it is freed, for those to come.
//!
//! `malloc` maps large allocations anew each time and gives them back at once, and each page of them costs a fault at its first use. A
//! training step of GPT-2's size, whose results and gradients are 2 GB, had 500,000 of them, more than a second of processor time.
//! A step allocates what the one before it has freed, if in other pieces; so freed extents are kept, joined with their neighbours,
//! and parted again.
//!
//! Extents in use and kept ones together are never more than those in use have been at one time, and an extent that nobody takes is given
//! back after some time. Only addresses are dealt with here: the owner maps and unmaps them.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

/// Sizes are multiples of this, which is at least a page on any system.
pub(crate) const GRAIN: usize = 64 << 10;

/// Time for which an extent is kept.
const KEPT: Duration = Duration::from_secs(10);

/// Addresses of mapped memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    pub start: usize,
    /// Bytes, a multiple of [`GRAIN`].
    pub length: usize,
}

/// A kept extent, by its start.
struct Kept {
    length: usize,
    since: Instant,
}

/// The extents of a process.
#[derive(Default)]
pub(crate) struct Extents {
    kept: BTreeMap<usize, Kept>,
    used: HashMap<usize, usize>,
    kept_bytes: usize,
    used_bytes: usize,
    /// Most bytes in use at one time.
    peak: usize,
}

impl Extents {
    /// Bytes of the extent in use that starts at this address.
    pub fn length(&self, start: usize) -> Option<usize> {
        self.used.get(&start).copied()
    }

    /// The start of an extent for `length` bytes, which was kept: the front of the smallest that has as many.
    pub fn take(&mut self, length: usize) -> Option<usize> {
        let fitting = self.kept.iter().filter(|(_, kept)| kept.length >= length);
        let (start, _) = fitting.min_by_key(|(_, kept)| kept.length)?;
        let start = *start;
        self.cut(Extent { start, length });
        self.add(Extent { start, length });
        Some(start)
    }

    /// Extents to unmap before another one of `length` bytes is mapped, or there would be more than ever; the smallest first.
    pub fn room_for(&mut self, length: usize) -> Vec<Extent> {
        let most = self.peak.max(self.used_bytes + length);
        let mut unmapped = Vec::new();
        loop {
            let surplus = (self.used_bytes + length + self.kept_bytes).saturating_sub(most);
            let smallest = self.kept.iter().min_by_key(|(_, kept)| kept.length);
            let Some((start, kept)) = smallest.filter(|_| surplus > 0) else { return unmapped };
            let extent = Extent { start: *start, length: surplus.min(kept.length) };
            self.cut(extent);
            unmapped.push(extent);
        }
    }

    /// Notes that an extent is in use.
    pub fn add(&mut self, extent: Extent) {
        self.used.insert(extent.start, extent.length);
        self.used_bytes += extent.length;
        self.peak = self.peak.max(self.used_bytes);
    }

    /// Keeps the extent in use that starts at this address; extents to unmap, since they have been kept for long. `None` if there is
    /// no such extent.
    pub fn give(&mut self, start: usize, now: Instant) -> Option<Vec<Extent>> {
        let mut length = self.used.remove(&start)?;
        self.used_bytes -= length;
        self.kept_bytes += length;
        let mut first = start;
        if let Some(behind) = self.kept.remove(&(start + length)) {
            length += behind.length;
        }
        let before = self.kept.range(..start).next_back();
        if let Some((at, kept)) = before.filter(|(at, kept)| *at + kept.length == start) {
            (first, length) = (*at, length + kept.length);
        }
        self.kept.insert(first, Kept { length, since: now });
        let old = |kept: &Kept| now.saturating_duration_since(kept.since) > KEPT;
        let old = self.kept.iter().filter(|(_, kept)| old(kept));
        let old: Vec<Extent> =
            old.map(|(start, kept)| Extent { start: *start, length: kept.length }).collect();
        old.iter().for_each(|extent| self.cut(*extent));
        Some(old)
    }

    /// Removes the front of a kept extent.
    fn cut(&mut self, front: Extent) {
        let Some(kept) = self.kept.remove(&front.start) else { return };
        self.kept_bytes -= front.length;
        if kept.length > front.length {
            self.kept.insert(front.start + front.length, Kept { length: kept.length - front.length, ..kept });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn extent(start: usize, length: usize) -> Extent {
        Extent { start: start * MIB, length: length * MIB }
    }

    /// Extents in use at these places, in MiB.
    fn used(places: &[(usize, usize)]) -> Extents {
        let mut extents = Extents::default();
        places.iter().for_each(|(start, length)| extents.add(extent(*start, *length)));
        extents
    }

    fn give(extents: &mut Extents, start: usize) -> Option<Vec<Extent>> {
        extents.give(start * MIB, Instant::now())
    }

    #[test]
    fn a_freed_extent_is_parted_and_joined_again() {
        let mut extents = used(&[(100, 8)]);
        assert_eq!(give(&mut extents, 100), Some(vec![]));
        assert_eq!(extents.take(3 * MIB), Some(100 * MIB));
        assert_eq!(extents.take(5 * MIB), Some(103 * MIB));
        assert_eq!(extents.take(MIB), None);
        assert_eq!(extents.length(103 * MIB), Some(5 * MIB));
        give(&mut extents, 103);
        assert_eq!(extents.take(8 * MIB), None, "its front is in use");
        give(&mut extents, 100);
        assert_eq!(extents.take(8 * MIB), Some(100 * MIB));
    }

    #[test]
    fn the_smallest_that_fits_is_taken() {
        let mut extents = used(&[(100, 8), (200, 4), (300, 2)]);
        [100, 200, 300].iter().for_each(|start| assert_eq!(give(&mut extents, *start), Some(vec![])));
        assert_eq!(extents.take(3 * MIB), Some(200 * MIB));
    }

    #[test]
    fn there_is_never_more_than_was_in_use_at_one_time() {
        let mut extents = used(&[(100, 4), (200, 3), (300, 2)]);
        [100, 200, 300].iter().for_each(|start| assert_eq!(give(&mut extents, *start), Some(vec![])));
        assert_eq!(extents.take(5 * MIB), None);
        assert_eq!(extents.room_for(5 * MIB), [extent(300, 2), extent(200, 3)]);
        extents.add(extent(400, 5));
        assert_eq!(extents.kept_bytes + extents.used_bytes, 9 * MIB);
        assert_eq!(extents.room_for(2 * MIB), [extent(100, 2)], "as much as is too much");
        assert_eq!(extents.take(2 * MIB), Some(102 * MIB));
    }

    #[test]
    fn what_nobody_takes_is_given_back() {
        let mut extents = used(&[(100, 1), (200, 1)]);
        let now = Instant::now();
        assert_eq!(extents.give(100 * MIB, now), Some(vec![]));
        assert_eq!(extents.give(200 * MIB, now + KEPT + Duration::from_secs(1)), Some(vec![extent(100, 1)]));
        assert_eq!(extents.kept_bytes, MIB);
    }

    #[test]
    fn other_addresses_are_not_its_own() {
        let mut extents = used(&[(100, 1)]);
        assert_eq!(give(&mut extents, 101), None);
        assert_eq!(extents.length(101 * MIB), None);
    }
}
