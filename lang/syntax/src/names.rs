//! Interned names of one source.

use std::hash::Hasher;

use rustc_hash::FxHasher;
use ustr::Ustr;

const SLOTS: usize = 256;

/// A cache in front of the global string interner: programs use few names many times, and a look-up in a small table
/// without a lock takes a third of the time. A colliding name evicts the other from its slot, so no source can make
/// this slow.
pub(super) struct Names<'t> {
    slots: [(&'t str, Ustr); SLOTS],
}

impl<'t> Names<'t> {
    pub(super) fn new() -> Self {
        Names { slots: [("", Ustr::from("")); SLOTS] }
    }

    #[inline]
    pub(super) fn intern(&mut self, text: &'t str) -> Ustr {
        let mut hasher = FxHasher::default();
        hasher.write(text.as_bytes());
        let slot = &mut self.slots[hasher.finish() as usize % SLOTS];
        if slot.0 != text {
            *slot = (text, Ustr::from(text));
        }
        slot.1
    }
}
