//! Progress bars and spinners: on a terminal they move, elsewhere there is one line for each piece of work.

use std::any::Any;
use std::cell::RefCell;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use sheaf_engine::{EngineReporter, Reporter};
use sheaf_lang::host::{Bar, Metric};
use sheaf_observe::{Metrics, Unwritten};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::visible::visible;
use sheaf_toolchain::{Progress, Stage};

use crate::bars;
use crate::messages;

/// Interval between moves of a spinner.
const TICK: Duration = Duration::from_millis(100);

/// Minimum time of long work: if nothing moves, lines from then on give the time it has taken, each after twice the
/// time of the one before.
const LONG: Duration = Duration::from_secs(10);

/// A spinner that turns, and shows the time since its start, until it is dropped.
pub enum Spinner {
    /// On a terminal.
    Turning(ProgressBar),
    /// Elsewhere: the work, its beginning, and the end of the lines about it.
    Written(String, Instant, Sender<()>),
}

impl Spinner {
    /// Starts a spinner for `what`.
    pub fn start(what: &str) -> Spinner {
        // Names in it are those of a program.
        let what = visible(what).into_owned();
        if std::io::stderr().is_terminal() {
            let bar = bars::below(ProgressBar::new_spinner()).with_message(what);
            if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {elapsed}") {
                bar.set_style(style);
            }
            bar.enable_steady_tick(TICK);
            return Spinner::Turning(bar);
        }
        say(&what);
        let (end, ended) = mpsc::channel();
        let (begun, text) = (Instant::now(), what.clone());
        let tell = move || {
            let mut next = LONG;
            while ended.recv_timeout(next.saturating_sub(begun.elapsed())) == Err(RecvTimeoutError::Timeout) {
                say(&format!("{text}: {} s so far", next.as_secs()));
                next *= 2;
            }
        };
        // Without the thread there are no such lines.
        let _ = thread::Builder::new().name("progress".to_owned()).spawn(tell);
        Spinner::Written(what, begun, end)
    }
}

impl Drop for Spinner {
    fn drop(&mut self) {
        match self {
            Spinner::Turning(bar) => bar.finish_and_clear(),
            Spinner::Written(what, begun, end) => {
                let taken = begun.elapsed();
                let _ = end.send(());
                if taken >= LONG {
                    say(&format!("{what}: took {:.1} s", taken.as_secs_f64()));
                }
            }
        }
    }
}

/// Shows progress and warnings of the engine on standard error.
pub struct TerminalReporter;

/// A [`TerminalReporter`] of a run of a program: shows its progress and writes its metrics.
#[derive(Default)]
pub struct RunReporter(Mutex<Metrics>);

impl RunReporter {
    /// The reporter that writes metrics to these files.
    pub fn new(metrics: Metrics) -> RunReporter {
        RunReporter(Mutex::new(metrics))
    }

    fn metrics(&self) -> MutexGuard<'_, Metrics> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Reporter for RunReporter {
    fn warning(&self, sources: &Sources, warning: &Diagnostic) {
        TerminalReporter.warning(sources, warning);
    }

    fn passed_over(&self, line: &str) {
        TerminalReporter.passed_over(line);
    }

    fn note(&self, line: &str) {
        TerminalReporter.note(line);
    }

    fn begin(&self, work: &str) -> Box<dyn Any> {
        TerminalReporter.begin(work)
    }

    fn wants_metrics(&self) -> bool {
        bars::show_metrics() || !self.metrics().is_empty()
    }

    fn metric(&self, metric: &Metric) {
        bars::metric(metric.name, metric.value);
        let failed = self.metrics().write(metric.name, metric.step, metric.value);
        for Unwritten { path, error } in failed {
            let help = "check the disk; the run goes on without that file";
            messages::warning(format!("{} cannot be written: {error}", path.display()), Some(help));
        }
    }

    fn progress(&self, label: &str, total: u64) -> Box<dyn Bar> {
        bars::begin(label, total)
    }

    fn printing(&self, print: &mut dyn FnMut()) {
        bars::hidden(print);
    }
}

impl EngineReporter for RunReporter {
    fn installation(&self) -> Box<dyn Progress> {
        TerminalReporter.installation()
    }
}

impl Reporter for TerminalReporter {
    fn warning(&self, sources: &Sources, warning: &Diagnostic) {
        let has_place = !warning.labels.is_empty();
        if has_place || messages::is_first(&warning.message) {
            messages::show(sources, warning);
        }
    }

    fn passed_over(&self, line: &str) {
        messages::passed_over(line);
    }

    fn note(&self, line: &str) {
        eprintln!("{line}");
    }

    fn begin(&self, work: &str) -> Box<dyn Any> {
        Box::new(Spinner::start(work))
    }
}

impl EngineReporter for TerminalReporter {
    fn installation(&self) -> Box<dyn Progress> {
        Box::new(InstallProgress::default())
    }
}

/// Writes a line to standard error, whose reader may be gone.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Draws the installation of the compiler.
#[derive(Default)]
pub struct InstallProgress(RefCell<Option<ProgressBar>>);

impl InstallProgress {
    fn replace(&self, bar: Option<ProgressBar>) {
        if let Some(old) = self.0.replace(bar) {
            old.finish_and_clear();
        }
    }
}

impl Progress for InstallProgress {
    fn waiting(&self, lock: &Path) {
        eprintln!("another process is installing the compiler; waiting for {}", lock.display());
    }

    fn begin(&self, stage: Stage, from: &str, total: u64) {
        let what = match stage {
            Stage::Download => format!("fetching the compiler from {}", visible(from)),
            Stage::Unpack => "unpacking the compiler".to_string(),
            Stage::Commit => "installing the compiler".to_string(),
            Stage::Verify => "verifying the compiler".to_string(),
            Stage::Bundle => "packing the compiler".to_string(),
        };
        if !std::io::stderr().is_terminal() {
            eprintln!("{what}");
            return;
        }
        let bar = if total == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(total) };
        if total != 0
            && let Ok(style) =
                ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}")
        {
            bar.set_style(style);
        }
        bar.set_message(what);
        bar.enable_steady_tick(TICK);
        self.replace(Some(bar));
    }

    fn warning(&self, message: &str) {
        match &*self.0.borrow() {
            Some(bar) => bar.suspend(|| messages::warning(message, None)),
            None => messages::warning(message, None),
        }
    }

    fn advance(&self, bytes: u64) {
        if let Some(bar) = &*self.0.borrow() {
            bar.inc(bytes);
        }
    }

    fn retrying(&self, cause: &str) {
        eprintln!("the download broke off ({}); trying again", visible(cause));
    }

    fn finished(&self, _: Stage) {
        self.replace(None);
    }
}
