//! Times and memory for an observer (`sheaf_lang::observe::Timeline`). Buffers and programs know no engine, so the receiver
//! is one of the thread, on which all of them live.

use std::cell::RefCell;
use std::rc::Rc;

use sheaf_lang::observe::{Activity, Held, MemoryUse, Timeline};
use sheaf_runtime::{begin_peak, count_memory, memory_peak};

/// The device of compiled functions, as `--device` has it.
const DEVICE: &str = "cpu";

thread_local! {
    static TIMELINE: RefCell<Option<Rc<dyn Timeline>>> = const { RefCell::new(None) };
    /// The buffers there are, if memory is wanted.
    static LEDGER: RefCell<Option<Vec<Held>>> = const { RefCell::new(None) };
}

/// Sets the receiver.
pub fn observe(timeline: Option<Rc<dyn Timeline>>) {
    let counts = timeline.as_ref().is_some_and(|timeline| timeline.wants_memory());
    if counts {
        count_memory();
    }
    LEDGER.with_borrow_mut(|ledger| *ledger = counts.then(|| ledger.take().unwrap_or_default()));
    TIMELINE.set(timeline);
}

/// True if memory is counted: then programs run on the calling thread, where each buffer is an allocation of its own. The
/// pools of other devices keep theirs.
pub fn counts_memory() -> bool {
    LEDGER.with_borrow(Option::is_some)
}

/// Does `work`, and reports its time. `bytes` says what it moved.
pub fn timed<T>(
    activity: Activity,
    subject: &str,
    bytes: impl FnOnce(&T) -> Option<u64>,
    work: impl FnOnce() -> T,
) -> T {
    let Some(timeline) = TIMELINE.with_borrow(Clone::clone) else { return work() };
    let began = timeline.now();
    let result = work();
    timeline.done(activity, subject, began, bytes(&result));
    result
}

/// Calls a program of that function, and reports the memory of the call.
pub fn call<T>(function: &str, call: impl FnOnce() -> T) -> T {
    let held = LEDGER.with_borrow(Clone::clone);
    let (Some(timeline), Some(mut held)) = (TIMELINE.with_borrow(Clone::clone), held) else { return call() };
    held.retain(|held| held.count > 0);
    begin_peak();
    let result = call();
    timeline.memory(&MemoryUse { function, device: DEVICE, peak: memory_peak(), held: &held });
    result
}

/// The entry of a buffer in the ledger, until it is dropped.
pub struct Entry {
    origin: usize,
    bytes: u64,
}

impl Entry {
    /// An entry of `bytes` of that origin; `None` unless memory is wanted.
    pub fn new(origin: impl FnOnce() -> String, bytes: usize) -> Option<Entry> {
        LEDGER.with_borrow_mut(|ledger| {
            let ledger = ledger.as_mut()?;
            let (name, bytes) = (origin(), bytes as u64);
            let position = ledger.iter().position(|held| held.origin == name).unwrap_or_else(|| {
                ledger.push(Held { origin: name, count: 0, bytes: 0 });
                ledger.len() - 1
            });
            ledger[position].count += 1;
            ledger[position].bytes += bytes;
            Some(Entry { origin: position, bytes })
        })
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        // The thread may be ending.
        let _ = LEDGER.try_with(|ledger| {
            if let Ok(mut ledger) = ledger.try_borrow_mut()
                && let Some(held) = ledger.as_mut().and_then(|ledger| ledger.get_mut(self.origin))
            {
                held.count = held.count.saturating_sub(1);
                held.bytes = held.bytes.saturating_sub(self.bytes);
            }
        });
    }
}
