//! `--trace`: the call tree with arguments, results and times.

use sheaf_lang::builtins::SECTIONS;
use sheaf_lang::observe::{Entered, Inside, Kind, Left, Row, Shown, describe, duration};
use sheaf_lang::program::Value;

use crate::Output;

/// Writes a line for the begin and one for the end of each call.
pub struct Tracer {
    /// The functions to show; `None` for all.
    wanted: Option<Vec<String>>,
    output: Output,
    /// For each open call, true if it is shown.
    open: Vec<bool>,
    /// For each open call, the time of compilations, caches and loading before it.
    apart: Vec<u64>,
}

impl Tracer {
    /// A tracer of all functions, or of those named.
    pub fn new(wanted: Option<Vec<String>>, output: Output) -> Tracer {
        Tracer { wanted, output, open: Vec::new(), apart: Vec::new() }
    }

    /// Number of open calls that are shown.
    fn depth(&self) -> usize {
        self.open.iter().filter(|shown| **shown).count()
    }

    /// A call begins; `apart` is the time of compilations, caches and loading so far.
    pub(crate) fn enter(&mut self, call: &Entered<'_>, apart: u64) {
        self.apart.push(apart);
        let shown = match &self.wanted {
            Some(wanted) => wanted.iter().any(|name| name == call.name),
            None => call.kind == Kind::Own || !is_quiet(call.name, Uses::of(call.args)),
        };
        if shown {
            let args: Vec<String> = call.args.iter().map(describe).collect();
            self.line(&format!("├─ [{}] {}", call.name, args.join(", ")));
        }
        self.open.push(shown);
    }

    pub(crate) fn leave(&mut self, call: &Left<'_>, apart: u64) {
        let apart = apart - self.apart.pop().unwrap_or(apart);
        if self.open.pop() != Some(true) {
            return;
        }
        let compiled = if call.compiled { ", compiled" } else { "" };
        let time = duration((call.ended - call.began).saturating_sub(apart));
        let result = call.result.map_or_else(|| "error".into(), describe);
        self.line(&format!("└─ ← {result} ({time}{compiled})"));
    }

    pub(crate) fn inside(&mut self, inside: &Inside) {
        let around = self.open.len();
        for row in &inside.rows {
            self.open.truncate(around + row.depth + usize::from(!row.begins));
            let shown = if row.begins { self.shows(row) } else { self.open.pop() == Some(true) };
            if shown {
                self.line(&row.text(true));
            }
            if row.begins {
                self.open.push(shown);
            }
        }
        self.open.truncate(around);
    }

    fn shows(&self, row: &Row) -> bool {
        let name = row.name.trim_start_matches('∂');
        match &self.wanted {
            Some(wanted) => wanted.iter().any(|wanted| wanted == name),
            None => row.kind == Kind::Own || !is_quiet(name, Uses::of_row(row)),
        }
    }

    fn line(&mut self, text: &str) {
        let line = format!("{}{}\n", "│ ".repeat(self.depth()), text.trim_end());
        (self.output)(&line);
    }
}

/// Kinds of arguments of a call.
#[derive(Clone, Copy)]
pub struct Uses {
    /// True if one is a tensor.
    pub tensor: bool,
    /// True if one is a function.
    pub function: bool,
}

impl Uses {
    /// Those of arguments.
    pub fn of(args: &[Value]) -> Uses {
        Uses {
            tensor: args.iter().any(|arg| matches!(arg, Value::Tensor(_))),
            function: args.iter().any(|arg| matches!(arg, Value::Function(_))),
        }
    }

    fn of_row(row: &Row) -> Uses {
        let function = |value: &Shown| matches!(value, Shown::Text(text) if text.starts_with("<fn:"));
        Uses {
            tensor: row.values.iter().any(|value| matches!(value, Shown::Tensor(..))),
            function: row.values.iter().any(function),
        }
    }
}

/// True if a call of a function of the language is left out of traces: operators, questions about shapes and values,
/// transformations, which compute nothing before their result is called, and work on lists, dictionaries and strings,
/// unless it calls a function.
pub fn is_quiet(name: &str, uses: Uses) -> bool {
    const QUIET: [&str; 5] = ["comparison", "lists", "dictionaries", "strings", "errors"];
    const QUESTIONS: [&str; 8] = ["shape", "ndim", "size", "dtype", "len", "count", "print", "println"];
    let section = SECTIONS.iter().find(|(_, builtins)| builtins.iter().any(|b| b.name == name));
    if uses.function {
        return section.is_some_and(|(section, _)| *section == "transforms");
    }
    !name.starts_with(char::is_alphabetic)
        || QUESTIONS.contains(&name)
        || section.is_some_and(|(section, _)| QUIET.contains(section) && !(name == "get" && uses.tensor))
}
