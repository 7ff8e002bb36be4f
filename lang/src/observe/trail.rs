//! The last calls before a guard was broken.

use std::collections::VecDeque;

use super::describe::{duration, plain, with_statistics};
use super::{Kind, Row};
use crate::program::Value;

/// Number of calls that are kept.
const KEPT: usize = 26;

/// Maximum bytes of tensors that are kept for their statistics.
const KEPT_BYTES: usize = 32 << 20;

/// The begin or the end of a call.
#[derive(Clone)]
pub(crate) struct Event {
    pub depth: usize,
    pub name: String,
    pub kind: Kind,
    pub what: What,
}

#[derive(Clone)]
pub(crate) enum What {
    /// With the arguments.
    Begin(Vec<Noted>),
    /// With the result and the time in nanoseconds.
    End(Option<Noted>, u64),
}

/// A value of a call. Structures are only text: they would keep all that they hold.
#[derive(Clone)]
pub(crate) enum Noted {
    Tensor(Value),
    Text(String),
}

impl Noted {
    pub fn of(value: &Value) -> Noted {
        match value {
            Value::Tensor(_) => Noted::Tensor(value.clone()),
            other => Noted::Text(plain(other)),
        }
    }

    fn text(&self, statistics: bool) -> String {
        match self {
            Noted::Tensor(value) if statistics => with_statistics(value),
            Noted::Tensor(value) => plain(value),
            Noted::Text(text) => text.clone(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Noted::Tensor(Value::Tensor(t)) => t.ty().count() * t.ty().dtype.byte_width(),
            _ => 0,
        }
    }
}

impl Event {
    fn values(&mut self) -> &mut [Noted] {
        match &mut self.what {
            What::Begin(values) => values,
            What::End(value, _) => value.as_mut_slice(),
        }
    }
}

/// The last calls, oldest first.
#[derive(Default)]
pub(crate) struct Trail {
    events: VecDeque<Event>,
    begun: usize,
    /// Bytes of the tensors that are kept.
    bytes: usize,
}

impl Trail {
    pub fn begin(&mut self, depth: usize, name: &str, kind: Kind, args: &[Value]) {
        self.begun += 1;
        let what = What::Begin(args.iter().map(Noted::of).collect());
        self.push(Event { depth, name: name.into(), kind, what });
        while self.begun > KEPT {
            self.drop_first();
        }
    }

    pub fn end(&mut self, depth: usize, name: &str, kind: Kind, result: Option<&Value>, time: u64) {
        self.push(Event { depth, name: name.into(), kind, what: What::End(result.map(Noted::of), time) });
    }

    fn push(&mut self, mut event: Event) {
        self.bytes += event.values().iter().map(Noted::bytes).sum::<usize>();
        self.events.push_back(event);
        let mut oldest = 0;
        while self.bytes > KEPT_BYTES
            && let Some(event) = self.events.get_mut(oldest)
        {
            for value in event.values() {
                self.bytes -= value.bytes();
                *value = Noted::Text(value.text(false));
            }
            oldest += 1;
        }
    }

    fn drop_first(&mut self) {
        if let Some(mut event) = self.events.pop_front() {
            self.begun -= usize::from(matches!(event.what, What::Begin(_)));
            self.bytes -= event.values().iter().map(Noted::bytes).sum::<usize>();
        }
    }

    /// The lines up to now, and the number of calls in them. `open` are the calls that have not ended; `inside` are rows of
    /// the last of them. `note` is added to the last line.
    pub fn lines(&self, open: &[Event], inside: &[Row], note: &str) -> (Vec<String>, usize) {
        let end = inside.iter().position(|row| row.broken).map_or(inside.len(), |i| i + 1);
        let within = last_calls(&inside[..end], KEPT, |row| row.begins);
        let begins = |event: &&Event| matches!(event.what, What::Begin(_));
        let left = KEPT - within.iter().filter(|row| row.begins).count();
        let events: Vec<&Event> = self.events.iter().collect();
        let events = last_calls(&events, left, |event| begins(event));
        let is_kept =
            |call: &Event| events.iter().any(|e| e.depth == call.depth && e.name == call.name && begins(e));
        let around = open.iter().filter(|call| !is_kept(call));
        let mut lines: Vec<String> = around.chain(events.iter().copied()).map(Event::line).collect();
        lines.extend(within.iter().map(|row| "│ ".repeat(open.len() + row.depth) + &row.text(false)));
        let calls = lines.iter().filter(|line| line.contains("├─")).count();
        if let Some(last) = lines.last_mut() {
            last.push_str(note);
        }
        (lines, calls)
    }
}

/// The end of a list, from the begin of one of its last `count` calls on.
fn last_calls<T>(all: &[T], count: usize, begins: impl Fn(&T) -> bool) -> &[T] {
    let mut starts = (0..all.len()).rev().filter(|i| begins(&all[*i]));
    match starts.by_ref().take(count).last() {
        Some(start) => &all[start..],
        None => &[],
    }
}

impl Event {
    fn line(&self) -> String {
        let bar = "│ ".repeat(self.depth);
        match &self.what {
            What::Begin(args) => {
                let args: Vec<String> = args.iter().map(|arg| arg.text(self.kind != Kind::Own)).collect();
                format!("{bar}├─ [{}] {}", self.name, args.join(", ")).trim_end().to_owned()
            }
            What::End(Some(result), time) => {
                format!("{bar}└─ ← {} ({})", result.text(true), duration(*time))
            }
            What::End(None, time) => format!("{bar}└─ ({})", duration(*time)),
        }
    }
}
