//! Watches on the host: each reports its value to the listener of the thread.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use super::{Site, Stage, Statistics};
use crate::primitives::Watch;
use crate::tensor::{HostTensor, TensorType};

thread_local! {
    /// The listener: primitives evaluate without a context, also deep inside of loops.
    static LISTENER: RefCell<Option<Listener>> = const { RefCell::new(None) };
}

/// True if the statistics of a value break a condition on it.
type Judge = Box<dyn Fn(&Site, Stage, &Statistics) -> bool>;

/// A listener: the reports so far, one for each watch, folded over the iterations of loops.
pub struct Listener {
    reports: Vec<Reported>,
    known: HashMap<(usize, Stage), usize>,
    judge: Judge,
    /// Number of values reported.
    time: u64,
}

/// The values of a watch so far.
#[derive(Clone, Debug)]
pub struct Reported {
    /// The site.
    pub site: Arc<Site>,
    /// The values.
    pub stage: Stage,
    /// The type of one.
    pub ty: TensorType,
    /// Statistics of all.
    pub statistics: Statistics,
    /// Number of values.
    pub times: u64,
    /// The first that broke a condition; `None` if none did.
    pub broken: Option<Broken>,
}

/// A value that broke a condition.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Broken {
    /// Position among all reported values.
    pub time: u64,
    /// Number of values of the same watch before it: in a loop, the iteration.
    pub iteration: u64,
    /// Its statistics.
    pub statistics: Statistics,
}

impl Listener {
    /// A listener that marks values by a condition.
    pub fn new(judge: impl Fn(&Site, Stage, &Statistics) -> bool + 'static) -> Listener {
        Listener { reports: Vec::new(), known: HashMap::new(), judge: Box::new(judge), time: 0 }
    }

    /// The reports, in the order of the first of each watch.
    pub fn reports(&self) -> &[Reported] {
        &self.reports
    }

    /// The report whose value was the first to break a condition.
    pub fn first_broken(&self) -> Option<&Reported> {
        let broken = self.reports.iter().filter(|report| report.broken.is_some());
        broken.min_by_key(|report| report.broken.map(|broken| broken.time))
    }

    fn add(&mut self, watch: &Watch, value: &HostTensor) {
        let statistics = Statistics::of(value);
        let key = (Arc::as_ptr(&watch.site) as usize, watch.stage);
        let position = *self.known.entry(key).or_insert_with(|| {
            self.reports.push(Reported {
                site: Arc::clone(&watch.site),
                stage: watch.stage,
                ty: value.ty(),
                statistics: Statistics::NONE,
                times: 0,
                broken: None,
            });
            self.reports.len() - 1
        });
        let report = &mut self.reports[position];
        report.statistics = report.statistics.and(statistics);
        if report.broken.is_none() && (self.judge)(&watch.site, watch.stage, &statistics) {
            report.broken = Some(Broken { time: self.time, iteration: report.times, statistics });
        }
        report.times += 1;
        self.time += 1;
    }
}

/// Evaluates `f` while `listener` hears the watches of this thread; its result, and the listener. An outer listener hears
/// nothing meanwhile.
pub fn listen<T>(listener: Listener, f: impl FnOnce() -> T) -> (T, Listener) {
    let outer = LISTENER.replace(Some(listener));
    let result = f();
    let listener = LISTENER.replace(outer).expect("it was put there");
    (result, listener)
}

/// Result of `look` at the listener of this thread; `None` without one.
pub fn heard<T>(look: impl FnOnce(&Listener) -> T) -> Option<T> {
    LISTENER.with_borrow(|listener| listener.as_ref().map(look))
}

/// Reports the value of a watch on the host. Entries that do not count are left out if none does.
pub(crate) fn report(watch: &Watch, args: &[&HostTensor]) {
    if watch.stage == Stage::Latent {
        return;
    }
    LISTENER.with_borrow_mut(|listener| {
        let Some(listener) = listener else { return };
        let counts = |mask: &&HostTensor| (0..mask.count()).map(|i| mask.element_i64(i) != 0).collect();
        let counting: Vec<bool> = args.get(1).map_or(Vec::new(), counts);
        match counting.iter().filter(|counts| **counts).count() {
            _ if counting.is_empty() => listener.add(watch, args[0]),
            0 => {}
            n if n == counting.len() => listener.add(watch, args[0]),
            // Some of the batch: one by one.
            _ => {
                for (entry, _) in counting.iter().enumerate().filter(|(_, counts)| **counts) {
                    listener.add(watch, &entry_of(args[0], entry, counting.len()));
                }
            }
        }
    });
}

/// Entry `i` of a batch of `size`.
fn entry_of(batch: &HostTensor, i: usize, size: usize) -> HostTensor {
    let count = batch.count() / size;
    let elements = crate::map_elements!(batch.data(), v => v[i * count..(i + 1) * count].to_vec());
    HostTensor::new([count].as_slice(), elements)
}
