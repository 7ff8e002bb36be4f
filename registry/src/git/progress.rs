//! Progress of a fetch.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use gix::progress::{Id, MessageLevel, Step, StepShared, UNKNOWN, Unit};
use gix::{Count, NestedProgress};

/// Identifier of the count of received bytes, from gix-pack's `bundle::write::ProgressId::ReadPackBytes`.
const RECEIVED: Id = *b"BWRB";

/// Progress of a fetch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Another process fetches the same repository; waiting for it.
    Waiting,
    /// The number of bytes received so far.
    Received(u64),
}

/// Signs of life of a transfer, counted by its thread and read by the waiting one.
#[derive(Debug, Clone, Default)]
pub(super) struct Signs {
    received: Arc<AtomicUsize>,
    others: Arc<AtomicU64>,
}

impl Signs {
    /// Number of received bytes.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Ordering::Relaxed) as u64
    }

    /// A number that changes while there is progress.
    pub(super) fn pulse(&self) -> u64 {
        self.received().wrapping_add(self.others.load(Ordering::Relaxed))
    }

    /// Progress for gix that counts here.
    pub(super) fn counter(&self) -> Counter {
        Counter { signs: self.clone(), own: StepShared::default(), id: UNKNOWN }
    }

    fn beat(&self) {
        self.others.fetch_add(1, Ordering::Relaxed);
    }
}

/// Progress for gix: bytes and signs of life only.
pub(super) struct Counter {
    signs: Signs,
    own: StepShared,
    id: Id,
}

impl Count for Counter {
    fn set(&self, step: Step) {
        self.signs.beat();
        self.own.store(step, Ordering::Relaxed);
    }

    fn step(&self) -> Step {
        self.own.load(Ordering::Relaxed)
    }

    fn inc_by(&self, step: Step) {
        self.signs.beat();
        self.own.fetch_add(step, Ordering::Relaxed);
    }

    fn counter(&self) -> StepShared {
        self.own.clone()
    }
}

impl gix::Progress for Counter {
    fn init(&mut self, _: Option<Step>, _: Option<Unit>) {
        self.signs.beat();
    }

    fn set_name(&mut self, _: String) {
        self.signs.beat();
    }

    fn name(&self) -> Option<String> {
        None
    }

    fn id(&self) -> Id {
        self.id
    }

    fn message(&self, _: MessageLevel, _: String) {
        self.signs.beat();
    }
}

impl NestedProgress for Counter {
    type SubProgress = Self;

    fn add_child(&mut self, name: impl Into<String>) -> Self {
        self.add_child_with_id(name, UNKNOWN)
    }

    fn add_child_with_id(&mut self, _: impl Into<String>, id: Id) -> Self {
        self.signs.beat();
        let own = if id == RECEIVED { self.signs.received.clone() } else { StepShared::default() };
        Self { signs: self.signs.clone(), own, id }
    }
}
