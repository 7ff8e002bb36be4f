//! Observers of a run: the call tree (`--trace`), as `sheaf_lang::observe::Observer`.
//!
//! Nothing here touches files or the terminal: texts go to an [`Output`], times come from a [`Clock`].

mod tracer;

use std::time::Instant;

use sheaf_lang::observe::{Entered, Inside, Left, Observer};

pub use tracer::{Tracer, Uses, is_quiet};

/// Nanoseconds since a fixed moment.
pub type Clock = Box<dyn Fn() -> u64>;

/// Receiver of lines, each with its line break.
pub type Output = Box<dyn FnMut(&str)>;

/// The clock of this machine, from now on.
pub fn clock() -> Clock {
    let start = Instant::now();
    Box::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// All observers of a run.
pub struct Observers {
    clock: Clock,
    tracer: Option<Tracer>,
}

impl Observers {
    /// No observer yet: only guards look.
    pub fn new(clock: Clock) -> Observers {
        Observers { clock, tracer: None }
    }

    /// Adds a tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Observers {
        self.tracer = Some(tracer);
        self
    }
}

impl Observer for Observers {
    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn looks_inside(&self) -> bool {
        self.tracer.is_some()
    }

    fn enter(&mut self, call: &Entered<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.enter(call);
        }
    }

    fn inside(&mut self, inside: &Inside, _: usize) {
        if let Some(tracer) = &mut self.tracer {
            tracer.inside(inside);
        }
    }

    fn leave(&mut self, call: &Left<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.leave(call);
        }
    }
}
