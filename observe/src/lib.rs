//! Observers of a run, as `sheaf_lang::observe::Observer`: the call tree (`--trace`), times (`--blame`), memory
//! (`--mem-profile`), a timeline for Perfetto (`--trace-out`); and the files of metrics (`--log`).
//!
//! Observers touch neither files nor the terminal: texts go to an [`Output`], times come from a [`Clock`].

mod memory;
mod metrics;
mod profile;
mod recorder;
mod tracer;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use sheaf_lang::observe::{Activity, Entered, Inside, Left, MemoryUse, Observer, Timeline};

pub use memory::Memory;
pub use metrics::{Metrics, Unwritten};
pub use profile::Profiler;
pub use recorder::{CAP, Recorder};
pub use tracer::{Tracer, Uses, is_quiet};

/// Nanoseconds since a fixed moment.
pub type Clock = Rc<dyn Fn() -> u64>;

/// Receiver of lines, each with its line break.
pub type Output = Box<dyn FnMut(&str)>;

/// The clock of this machine, from now on.
pub fn clock() -> Clock {
    let start = Instant::now();
    Rc::new(move || u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

/// All observers of a run.
pub struct Observers {
    tracer: Option<Tracer>,
    times: Rc<Times>,
}

/// The observers that the backend reports to as well.
pub struct Times {
    clock: Clock,
    /// Never borrowed while values are looked at: that may copy them from the device, which is reported.
    state: RefCell<State>,
}

#[derive(Default)]
struct State {
    profiler: Option<Profiler>,
    recorder: Option<Recorder>,
    memory: Option<Memory>,
    /// Time of compilations, caches and loading so far.
    apart: u64,
}

impl Observers {
    /// No observer yet: only guards look.
    pub fn new(clock: Clock) -> Observers {
        Observers { tracer: None, times: Rc::new(Times { clock, state: RefCell::default() }) }
    }

    /// Adds a tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Tracer) -> Observers {
        self.tracer = Some(tracer);
        self
    }

    /// Adds a profiler of times.
    #[must_use]
    pub fn with_profiler(self) -> Observers {
        let now = (self.times.clock)();
        self.times.state.borrow_mut().profiler = Some(Profiler::new(now));
        self
    }

    /// Adds a profiler of memory.
    #[must_use]
    pub fn with_memory(self) -> Observers {
        self.times.state.borrow_mut().memory = Some(Memory::default());
        self
    }

    /// Adds a recorder of events.
    #[must_use]
    pub fn with_recorder(self, recorder: Recorder) -> Observers {
        self.times.state.borrow_mut().recorder = Some(recorder);
        self
    }

    /// The observers that have a report at the end.
    pub fn times(&self) -> Rc<Times> {
        Rc::clone(&self.times)
    }
}

/// Observations that a command line asks for.
pub struct Wanted<'a> {
    /// Names of the functions to trace, with commas; empty for all.
    pub trace: Option<&'a str>,
    /// Times by function.
    pub blame: bool,
    /// Memory of compiled functions.
    pub memory: bool,
    /// Destination of the events of a run.
    pub events: Option<Box<dyn std::io::Write>>,
}

impl Wanted<'_> {
    /// Its observers, on the clock of this machine; lines of the trace go to `output`.
    pub fn observers(self, output: Output) -> Observers {
        let mut observers = Observers::new(clock());
        if let Some(names) = self.trace {
            let names = names.split(',').map(str::trim).filter(|name| !name.is_empty()).map(str::to_owned);
            let names = Some(names.collect::<Vec<_>>()).filter(|names| !names.is_empty());
            observers = observers.with_tracer(Tracer::new(names, output));
        }
        if self.blame {
            observers = observers.with_profiler();
        }
        if self.memory {
            observers = observers.with_memory();
        }
        match self.events {
            Some(events) => observers.with_recorder(Recorder::new(events)),
            None => observers,
        }
    }
}

impl Times {
    /// The reports of `--blame` and `--mem-profile`, those that were asked for.
    pub fn reports(&self) -> Vec<String> {
        let state = self.state.borrow();
        let blame = state.profiler.as_ref().map(|profiler| profiler.report((self.clock)()));
        let memory = state.memory.as_ref().map(Memory::report);
        blame.into_iter().chain(memory).collect()
    }

    /// Ends the file of events.
    ///
    /// # Errors
    ///
    /// It could not be written.
    pub fn finish(&self) -> std::io::Result<()> {
        self.state.borrow_mut().recorder.as_mut().map_or(Ok(()), Recorder::finish)
    }
}

impl Timeline for Times {
    fn now(&self) -> u64 {
        (self.clock)()
    }

    fn done(&self, activity: Activity, subject: &str, began: u64, bytes: Option<u64>) {
        let ended = self.now();
        let mut state = self.state.borrow_mut();
        if !matches!(activity, Activity::Upload | Activity::Download) {
            state.apart += ended - began;
        }
        if let Some(profiler) = &mut state.profiler {
            profiler.done(activity, ended - began, bytes);
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.done(activity, subject, began, ended, bytes);
        }
    }

    fn wants_memory(&self) -> bool {
        self.state.borrow().memory.is_some()
    }

    fn memory(&self, used: &MemoryUse<'_>) {
        if let Some(memory) = &mut self.state.borrow_mut().memory {
            memory.add(used);
        }
    }
}

impl Observer for Observers {
    fn now(&self) -> u64 {
        (self.times.clock)()
    }

    fn timeline(&self) -> Option<Rc<dyn Timeline>> {
        Some(Rc::clone(&self.times) as Rc<dyn Timeline>)
    }

    fn looks_inside(&self) -> bool {
        self.tracer.is_some()
    }

    fn enter(&mut self, call: &Entered<'_>) {
        if let Some(tracer) = &mut self.tracer {
            tracer.enter(call, self.times.state.borrow().apart);
        }
        let mut state = self.times.state.borrow_mut();
        if let Some(profiler) = &mut state.profiler {
            profiler.enter(call.name);
        }
        if let Some(recorder) = &mut state.recorder {
            recorder.enter(call);
        }
    }

    fn inside(&mut self, inside: &Inside, _: usize) {
        if let Some(tracer) = &mut self.tracer {
            tracer.inside(inside);
        }
    }

    fn leave(&mut self, call: &Left<'_>) {
        let apart = {
            let mut state = self.times.state.borrow_mut();
            if let Some(profiler) = &mut state.profiler {
                profiler.leave(call);
            }
            if let Some(recorder) = &mut state.recorder {
                recorder.leave(call);
            }
            state.apart
        };
        if let Some(tracer) = &mut self.tracer {
            tracer.leave(call, apart);
        }
    }
}
