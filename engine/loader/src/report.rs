//! Progress and warnings: nothing is shown here.

use std::any::Any;
use std::fmt::Display;

use sheaf_lang::host::{Bar, Metric};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;

/// Receiver of progress and warnings, from any thread. All methods do nothing by default.
pub trait Reporter: Send + Sync {
    /// A fault after which the work goes on; its labels are places in `sources`.
    fn warning(&self, sources: &Sources, warning: &Diagnostic) {
        let _ = (sources, warning);
    }

    /// A file or folder that is passed over because of its owner; the same line may come again.
    fn passed_over(&self, line: &str) {
        let _ = line;
    }

    /// A line about the work that is going on.
    fn note(&self, line: &str) {
        let _ = line;
    }

    /// Begin of work that may take long, as `compiling step`. It ends when the result is dropped.
    fn begin(&self, work: &str) -> Box<dyn Any> {
        let _ = work;
        Box::new(())
    }

    /// True if [`Reporter::metric`] does something.
    fn wants_metrics(&self) -> bool {
        false
    }

    /// A metric of the program, `(log-metric name value)`.
    fn metric(&self, metric: &Metric) {
        let _ = metric;
    }

    /// Begin of a loop of `total` steps of the program, `(progress label seq)`. It ends when the result is dropped.
    fn progress(&self, label: &str, total: u64) -> Box<dyn Bar> {
        let _ = (label, total);
        Box::new(())
    }

    /// Calls `print`, which writes output of the program to the terminal.
    fn printing(&self, print: &mut dyn FnMut()) {
        print();
    }
}

/// Ignores everything.
impl Reporter for () {}

impl dyn Reporter + '_ {
    /// A warning without a place: the fault, a fact about it, and the remedy.
    pub fn warn(&self, message: impl Display, fact: Option<&dyn Display>, remedy: Option<&str>) {
        let mut warning = Diagnostic::warning(message.to_string());
        warning.notes.extend(fact.map(ToString::to_string));
        warning.help = remedy.map(str::to_owned);
        self.warning(&Sources::default(), &warning);
    }
}

/// A count with a noun whose plural ends in s.
pub fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{count} {noun}s") }
}
