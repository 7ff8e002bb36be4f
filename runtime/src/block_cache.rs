//! Freed memory of large buffers, kept for those to come.
//!
//! `malloc` gives large allocations back to the system at once, and each page costs a fault at its next use. A training step of
//! GPT-2's size, whose results and gradients are 2 GB, had 500,000 of them, more than a second of processor time. A step allocates
//! what the one before it has freed, so blocks of these sizes are kept, as PyTorch's caching allocator does it.
//!
//! Blocks in use and kept ones together are at most an eighth more than blocks in use have been at one time; those that nobody has
//! taken for some time are given back.

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Minimum bytes of a block that is kept: smaller ones stay with `malloc`.
pub(crate) const LEAST: usize = 256 << 10;

/// Time for which a block is kept.
const KEPT: Duration = Duration::from_secs(10);

/// An allocation of `malloc`, of at least as many bytes as it is listed under.
pub(crate) struct Block(pub(crate) NonNull<c_void>);

// SAFETY: a block has no other owner, and `malloc` does not mind which thread frees.
unsafe impl Send for Block {}

struct Kept {
    block: Block,
    since: Instant,
}

/// Blocks by their sizes.
#[derive(Default)]
struct Blocks {
    kept: BTreeMap<usize, Vec<Kept>>,
    kept_bytes: usize,
    used_bytes: usize,
    /// Most bytes in use at one time.
    peak: usize,
}

static BLOCKS: Mutex<Blocks> =
    Mutex::new(Blocks { kept: BTreeMap::new(), kept_bytes: 0, used_bytes: 0, peak: 0 });

/// A kept block for `length` bytes, with at most an eighth more; then the blocks that are to be freed.
pub(crate) fn take(length: usize) -> (Option<Block>, Vec<Block>) {
    BLOCKS.lock().map_or((None, Vec::new()), |mut blocks| blocks.take(length, Instant::now()))
}

/// Notes that a block of `size` bytes, which was not a kept one, is in use.
pub(crate) fn note(size: usize) {
    if let Ok(mut blocks) = BLOCKS.lock() {
        blocks.used(size);
    }
}

/// Keeps a block of `size` bytes that is no longer in use; the blocks that are to be freed.
pub(crate) fn give(block: Block, size: usize) -> Vec<Block> {
    match BLOCKS.lock() {
        Ok(mut blocks) => blocks.give(block, size, Instant::now()),
        Err(_) => vec![block],
    }
}

impl Blocks {
    fn take(&mut self, length: usize, now: Instant) -> (Option<Block>, Vec<Block>) {
        let size = self.kept.range(length..=length.saturating_add(length / 8)).next().map(|(size, _)| *size);
        let Some(size) = size else { return (None, self.room_for(length)) };
        let block = self.remove(size, Vec::pop);
        self.used(size);
        (block, self.outdated(now))
    }

    fn used(&mut self, size: usize) {
        self.used_bytes += size;
        self.peak = self.peak.max(self.used_bytes);
    }

    fn give(&mut self, block: Block, size: usize, now: Instant) -> Vec<Block> {
        self.used_bytes = self.used_bytes.saturating_sub(size);
        self.kept_bytes += size;
        self.kept.entry(size).or_default().push(Kept { block, since: now });
        self.outdated(now)
    }

    /// Blocks, the largest first, that are too many beside another one of `length` bytes.
    fn room_for(&mut self, length: usize) -> Vec<Block> {
        let used = self.used_bytes + length;
        let mut freed = Vec::new();
        let most = self.peak.max(used);
        while used + self.kept_bytes > most + most / 8 {
            let Some(size) = self.kept.keys().next_back().copied() else { break };
            freed.extend(self.remove(size, Vec::pop));
        }
        freed
    }

    /// Blocks that have been kept for too long.
    fn outdated(&mut self, now: Instant) -> Vec<Block> {
        let old = |kept: &Kept| now.saturating_duration_since(kept.since) > KEPT;
        let sizes: Vec<usize> = self
            .kept
            .iter()
            .filter(|(_, kept)| kept.first().is_some_and(old))
            .map(|(size, _)| *size)
            .collect();
        let mut freed = Vec::new();
        for size in sizes {
            while self.kept.get(&size).and_then(|kept| kept.first()).is_some_and(old) {
                freed.extend(self.remove(size, |kept| Some(kept.remove(0))));
            }
        }
        freed
    }

    fn remove(&mut self, size: usize, which: impl FnOnce(&mut Vec<Kept>) -> Option<Kept>) -> Option<Block> {
        let kept = self.kept.get_mut(&size)?;
        let one = which(kept)?;
        if kept.is_empty() {
            self.kept.remove(&size);
        }
        self.kept_bytes -= size;
        Some(one.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: usize = 1 << 20;

    fn block(address: usize) -> Block {
        Block(NonNull::new(std::ptr::without_provenance_mut(address)).expect("an address"))
    }

    fn address(block: Option<Block>) -> Option<usize> {
        block.map(|block| block.0.as_ptr().addr())
    }

    #[test]
    fn a_freed_block_is_the_next_of_its_size() {
        let (mut blocks, now) = (Blocks::default(), Instant::now());
        blocks.used(8 * MIB);
        assert!(blocks.give(block(1), 8 * MIB, now).is_empty());
        assert_eq!(address(blocks.take(7 * MIB, now).0), None, "a seventh of it would be unused");
        blocks.used(8 * MIB);
        blocks.give(block(2), 8 * MIB, now);
        assert_eq!(address(blocks.take(8 * MIB - 100, now).0), Some(2));
        assert_eq!(address(blocks.take(8 * MIB, now).0), None);
    }

    #[test]
    fn kept_blocks_are_freed_for_one_that_would_be_too_much_beside_them() {
        let (mut blocks, now) = (Blocks::default(), Instant::now());
        for i in 1..=4 {
            blocks.used(i * MIB);
        }
        for i in 1..=4 {
            assert!(blocks.give(block(i), i * MIB, now).is_empty());
        }
        let (none, freed) = blocks.take(5 * MIB, now);
        assert!(none.is_none());
        assert_eq!(freed.into_iter().map(|b| address(Some(b))).collect::<Vec<_>>(), [Some(4)]);
        blocks.used(5 * MIB);
        assert_eq!(blocks.kept_bytes + blocks.used_bytes, 11 * MIB);
        assert_eq!(blocks.peak, 10 * MIB);
    }

    #[test]
    fn blocks_that_nobody_takes_are_given_back() {
        let (mut blocks, now) = (Blocks::default(), Instant::now());
        blocks.used(2 * MIB);
        blocks.give(block(1), MIB, now);
        let freed = blocks.give(block(2), MIB, now + KEPT + Duration::from_secs(1));
        assert_eq!(freed.into_iter().map(|b| address(Some(b))).collect::<Vec<_>>(), [Some(1)]);
        assert_eq!(blocks.kept_bytes, MIB);
    }
}
