//! Bars of `(progress label seq)`: on a terminal they move, elsewhere there is a line each minute.

use std::io::IsTerminal;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{MultiProgress, ProgressBar, ProgressState, ProgressStyle};
use sheaf_lang::host::Bar;
use sheaf_syntax::visible::visible;

/// Interval between moves of a bar whose steps take longer.
const TICK: Duration = Duration::from_millis(200);

/// Interval between lines, where there is no terminal.
const MINUTE: Duration = Duration::from_secs(60);

/// Maximum characters of a label.
const MAX_LABEL: usize = 30;

/// The bars on the terminal.
static DRAWN: LazyLock<MultiProgress> = LazyLock::new(MultiProgress::new);

/// The open bars, innermost last.
static OPEN: Mutex<Vec<Open>> = Mutex::new(Vec::new());

/// An open bar.
struct Open {
    id: u64,
    /// `None` where there is no terminal.
    bar: Option<ProgressBar>,
    /// The latest metrics, in the order of their first values.
    metrics: Vec<(String, f64)>,
}

impl Open {
    fn metrics(&self) -> String {
        let shown = self.metrics.iter().map(|(name, value)| format!("{} {}", visible(name), number(*value)));
        shown.collect::<Vec<_>>().join("  ")
    }
}

fn open() -> MutexGuard<'static, Vec<Open>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes something to the terminal, without the bars meanwhile.
pub fn hidden<T>(write: impl FnOnce() -> T) -> T {
    if open().iter().any(|open| open.bar.is_some()) { DRAWN.suspend(write) } else { write() }
}

/// True if a bar shows metrics.
pub fn show_metrics() -> bool {
    !open().is_empty()
}

/// Shows a metric beside the innermost bar.
pub fn metric(name: &str, value: f64) {
    let mut all = open();
    let Some(open) = all.last_mut() else { return };
    match open.metrics.iter_mut().find(|(known, _)| known == name) {
        Some((_, latest)) => *latest = value,
        None => open.metrics.push((name.to_owned(), value)),
    }
    let shown = open.bar.clone().map(|bar| (bar, open.metrics()));
    drop(all);
    if let Some((bar, metrics)) = shown {
        bar.set_message(metrics);
    }
}

/// The spinner in the place of the bars, below them.
pub fn below(spinner: ProgressBar) -> ProgressBar {
    if open().iter().any(|open| open.bar.is_some()) { DRAWN.add(spinner) } else { spinner }
}

/// Begins a bar of `total` steps.
pub fn begin(label: &str, total: u64) -> Box<dyn Bar> {
    let mut label = visible(label).into_owned();
    if label.chars().count() > MAX_LABEL {
        label = label.chars().take(MAX_LABEL - 3).chain("...".chars()).collect();
    }
    let mut all = open();
    let id = all.last().map_or(0, |open| open.id + 1);
    let drawn = std::io::stderr().is_terminal();
    all.push(Open { id, bar: None, metrics: Vec::new() });
    drop(all);
    if !drawn {
        return Box::new(Lines::new(id, label, total, MINUTE, Box::new(|line| eprintln!("{line}"))));
    }
    let bar = DRAWN.add(ProgressBar::new(total));
    let across = usize::from(Term::stderr().size().1);
    let blocks = bar_width(across, label.chars().count());
    let template = format!("{{prefix}} {{bar:{blocks}}} {{pos}}/{{len}} {{rate}} {{left}} {{wide_msg}}");
    if let Ok(style) = ProgressStyle::with_template(&template) {
        let rate = |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let _ = w.write_str(&rate(state.per_sec()));
        };
        let left = |state: &ProgressState, w: &mut dyn std::fmt::Write| {
            let text = if state.is_finished() {
                format!("in {}", time(state.elapsed()))
            } else if state.pos() == 0 {
                String::new()
            } else {
                format!("ETA {}", time(state.eta()))
            };
            let _ = w.write_str(&text);
        };
        bar.set_style(style.progress_chars("█▉▊▋▌▍▎▏ ").with_key("rate", rate).with_key("left", left));
    }
    bar.set_prefix(label);
    bar.enable_steady_tick(TICK);
    if let Some(open) = open().iter_mut().find(|open| open.id == id) {
        open.bar = Some(bar.clone());
    }
    Box::new(Drawn { id, bar, total })
}

/// A bar on a terminal.
struct Drawn {
    id: u64,
    bar: ProgressBar,
    total: u64,
}

impl Bar for Drawn {
    fn advance(&mut self) {
        self.bar.inc(1);
    }
}

impl Drop for Drawn {
    fn drop(&mut self) {
        close(self.id);
        if show_metrics() {
            // A bar within another is done many times.
            self.bar.finish_and_clear();
            DRAWN.remove(&self.bar);
        } else if self.bar.position() >= self.total {
            self.bar.finish();
        } else {
            self.bar.abandon();
        }
    }
}

fn close(id: u64) {
    open().retain(|open| open.id != id);
}

/// A bar elsewhere.
struct Lines {
    id: u64,
    label: String,
    total: u64,
    done: u64,
    begun: Instant,
    /// The time of the last line.
    last: Instant,
    interval: Duration,
    write: Box<dyn FnMut(&str)>,
}

impl Lines {
    fn new(id: u64, label: String, total: u64, interval: Duration, write: Box<dyn FnMut(&str)>) -> Lines {
        let now = Instant::now();
        Lines { id, label, total, done: 0, begun: now, last: now, interval, write }
    }

    fn line(&self, end: &str) -> String {
        let per_second = self.done as f64 / self.begun.elapsed().as_secs_f64().max(1e-9);
        let metrics = open().iter().find(|open| open.id == self.id).map_or_else(String::new, Open::metrics);
        let Lines { label, done, total, .. } = self;
        let text = format!("{label}: {done}/{total} {} {end} {metrics}", rate(per_second));
        text.trim_end().to_owned()
    }
}

impl Bar for Lines {
    fn advance(&mut self) {
        self.done += 1;
        if self.done == self.total || self.last.elapsed() < self.interval {
            return;
        }
        self.last = Instant::now();
        let left = self.begun.elapsed().as_secs_f64() / self.done as f64
            * self.total.saturating_sub(self.done) as f64;
        let line = self.line(&format!("ETA {}", time(Duration::from_secs_f64(left))));
        (self.write)(&line);
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        if self.begun.elapsed() >= self.interval {
            let line = self.line(&format!("in {}", time(self.begun.elapsed())));
            (self.write)(&line);
        }
        close(self.id);
    }
}

/// The width of a bar beside a label: what `across` leaves beside the label, the numbers and a metric.
fn bar_width(across: usize, label: usize) -> usize {
    const OTHERS: usize = 45;
    across.saturating_sub(label + OTHERS).clamp(5, 25)
}

/// Steps per second, or the time of one if they are slow.
fn rate(per_second: f64) -> String {
    match per_second {
        r if r >= 100.0 => format!("{r:.0}/s"),
        r if r >= 1.0 => format!("{r:.1}/s"),
        r if r > 1e-6 => format!("{} each", time(Duration::from_secs_f64(1.0 / r))),
        _ => String::new(),
    }
}

/// A time in its two greatest units.
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// A number in four digits.
fn number(x: f64) -> String {
    let size = x.abs();
    if x == x.trunc() && size < 1e6 {
        format!("{x}")
    } else if (1e-3..1e6).contains(&size) {
        let digits = (3 - size.log10().floor() as i32).max(0) as usize;
        format!("{x:.digits$}")
    } else {
        format!("{x:.3e}")
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use super::*;

    #[test]
    fn lines_come_after_an_interval_and_at_the_end() {
        let lines = Rc::new(RefCell::new(Vec::new()));
        let sink = Rc::clone(&lines);
        let write = Box::new(move |line: &str| sink.borrow_mut().push(line.to_owned()));
        open().push(Open { id: 7, bar: None, metrics: Vec::new() });
        metric("loss", 0.123456);
        metric("loss", 0.5);
        metric("n", 3.0);
        let mut bar = Lines::new(7, "train".into(), 3, Duration::ZERO, write);
        for _ in 0..3 {
            bar.advance();
        }
        drop(bar);
        let lines = lines.borrow();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines[0].starts_with("train: 1/3 "), "{lines:?}");
        assert!(lines[0].contains(" ETA 0.0 s loss 0.5000  n 3"), "{lines:?}");
        assert!(lines[2].starts_with("train: 3/3 ") && lines[2].contains(" in 0.0 s "), "{lines:?}");
        assert!(!show_metrics());
        let quick = Rc::new(RefCell::new(0));
        let sink = Rc::clone(&quick);
        let mut bar = Lines::new(8, "quick".into(), 2, MINUTE, Box::new(move |_| *sink.borrow_mut() += 1));
        bar.advance();
        drop(bar);
        assert_eq!(*quick.borrow(), 0);
    }

    #[test]
    fn numbers_and_times_are_short() {
        let numbers = [0.0, 3.0, 0.5, 12.3456, 0.001234, 1e-5, 123456.7, 1e9, f64::NAN, f64::INFINITY];
        let texts = ["0", "3", "0.5000", "12.35", "0.001234", "1.000e-5", "123457", "1.000e9", "NaN", "inf"];
        assert_eq!(numbers.map(number), texts);
        let times = [0.0, 9.96, 59.0, 61.0, 3720.0, 180_000.0].map(|s| time(Duration::from_secs_f64(s)));
        assert_eq!(times, ["0.0 s", "10.0 s", "59 s", "1 min 1 s", "1 h 2 min", "2 d 2 h"]);
        assert_eq!([250.0, 2.5, 0.1, 0.0].map(rate), ["250/s", "2.5/s", "10 s each", ""]);
        assert_eq!(
            [(200, 10), (80, 30), (40, 30)].map(|(across, label)| bar_width(across, label)),
            [25, 5, 5]
        );
    }
}
