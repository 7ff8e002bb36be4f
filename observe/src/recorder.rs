//! `--trace-out`: calls and the backend's work in Chrome's trace format, which Perfetto reads.
//!
//! The file is an array of events, one a line. Readers accept an array without its end, so a killed run leaves a file that
//! can be opened.

use std::io::{self, Write};

use serde_json::json;
use sheaf_lang::observe::{Activity, Entered, Kind, Left};

use crate::tracer::{Uses, is_quiet};

/// Maximum bytes of events; a last one says that later ones are missing.
pub const CAP: u64 = 64 << 20;

/// Room for the last events.
const RESERVE: u64 = 1 << 10;

/// Writes events as they end.
pub struct Recorder {
    out: Box<dyn Write>,
    written: u64,
    cap: u64,
    is_full: bool,
    error: Option<io::Error>,
    /// For each open call, true if it is written.
    open: Vec<bool>,
}

impl Recorder {
    /// A recorder that begins its file.
    pub fn new(out: Box<dyn Write>) -> Recorder {
        Recorder::with_cap(out, CAP)
    }

    fn with_cap(out: Box<dyn Write>, cap: u64) -> Recorder {
        let mut recorder = Recorder { out, written: 0, cap, is_full: false, error: None, open: Vec::new() };
        recorder.write("[\n");
        let names = [("process_name", "sheaf"), ("thread_name", "program")];
        let named = |(kind, name): (&str, &str)| {
            json!({ "name": kind, "ph": "M", "pid": 1, "tid": 1, "args": { "name": name } }).to_string()
        };
        recorder.write(&names.map(named).join(",\n"));
        recorder
    }

    pub(crate) fn enter(&mut self, call: &Entered<'_>) {
        self.open.push(call.kind == Kind::Own || !is_quiet(call.name, Uses::of(call.args)));
    }

    pub(crate) fn leave(&mut self, call: &Left<'_>) {
        if self.open.pop() != Some(true) {
            return;
        }
        let category = if call.compiled { "call,compiled" } else { "call" };
        let ran = if call.compiled { "compiled" } else { "interpreted" };
        self.event(call.name, category, call.began, call.ended, &json!({ "ran": ran }));
    }

    pub(crate) fn done(
        &mut self,
        activity: Activity,
        subject: &str,
        began: u64,
        ended: u64,
        bytes: Option<u64>,
    ) {
        let (verb, category) = match activity {
            Activity::Compile => ("compile", "compile"),
            Activity::Cache => ("cache", "cache"),
            Activity::Load => ("load", "cache"),
            Activity::Upload => ("to the device", "transfer"),
            Activity::Download => ("from the device", "transfer"),
        };
        let name = if subject.is_empty() { verb.to_owned() } else { format!("{verb} {subject}") };
        let args = match bytes {
            Some(bytes) => json!({ "bytes": bytes }),
            None if activity == Activity::Cache => json!({ "found": false }),
            None => json!({}),
        };
        self.event(&name, category, began, ended, &args);
    }

    /// A complete event; times are microseconds in the file.
    fn event(&mut self, name: &str, category: &str, began: u64, ended: u64, args: &serde_json::Value) {
        if self.is_full {
            return;
        }
        let time = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        let event = json!({
            "name": name, "cat": category, "ph": "X", "pid": 1, "tid": 1,
            "ts": time(began), "dur": time(ended.saturating_sub(began)), "args": args,
        })
        .to_string();
        if self.written + event.len() as u64 + RESERVE > self.cap {
            self.is_full = true;
            let remark = format!("the file is full at {} MiB: later events are left out", self.cap >> 20);
            let event = json!({ "name": remark, "cat": "remark", "ph": "i", "s": "g", "pid": 1, "tid": 1, "ts": time(ended) });
            self.write(&format!(",\n{event}"));
            return;
        }
        self.write(&format!(",\n{event}"));
    }

    fn write(&mut self, text: &str) {
        self.written += text.len() as u64;
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
    }

    /// Ends the file.
    ///
    /// # Errors
    ///
    /// It could not be written, now or before.
    pub fn finish(&mut self) -> io::Result<()> {
        self.write("\n]\n");
        match self.error.take() {
            Some(error) => Err(error),
            None => self.out.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[derive(Clone, Default)]
    struct Shared(Rc<RefCell<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().extend(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn call(recorder: &mut Recorder, name: &str, began: u64) {
        recorder.open.push(true);
        let left = Left {
            name,
            kind: Kind::Own,
            depth: 0,
            result: None,
            compiled: true,
            began,
            ended: began + 1500,
        };
        recorder.leave(&left);
    }

    #[test]
    fn a_full_file_ends_validly_with_a_remark() {
        let file = Shared::default();
        let mut recorder = Recorder::with_cap(Box::new(file.clone()), 4000);
        for i in 0..100 {
            call(&mut recorder, "a \"name\"\n", i * 2000);
        }
        recorder.finish().expect("written");
        let text = String::from_utf8(file.0.borrow().clone()).expect("text");
        assert!(text.len() <= 4000, "{}", text.len());
        let events: Vec<serde_json::Value> = serde_json::from_str(&text).expect("JSON");
        assert_eq!(events[2]["name"], "a \"name\"\n");
        assert_eq!((events[2]["ts"].as_f64(), events[2]["dur"].as_f64()), (Some(0.0), Some(1.5)));
        let last = events.last().expect("events");
        assert!(last["name"].as_str().expect("a name").starts_with("the file is full"), "{last}");
    }

    /// Each line but the last is an event, so that a cut file can be read up to there.
    #[test]
    fn the_work_of_the_backend_is_told_apart() {
        let file = Shared::default();
        let mut recorder = Recorder::new(Box::new(file.clone()));
        recorder.done(Activity::Compile, "step", 0, 5_000_000, None);
        recorder.done(Activity::Cache, "step", 5_000_000, 5_100_000, None);
        recorder.done(Activity::Upload, "", 6_000_000, 6_000_500, Some(12));
        recorder.finish().expect("written");
        insta::assert_snapshot!(String::from_utf8(file.0.borrow().clone()).expect("text"));
    }
}
