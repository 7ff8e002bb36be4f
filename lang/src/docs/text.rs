//! Rendering of entries: for a terminal, and as the reference page of the book.

use std::fmt::{self, Display, Formatter};

use super::Entry;

/// Line width of a list of names.
const WIDTH: usize = 100;

/// Introduction of the reference page.
const PREFACE: &str = "\
# Reference

Every special form, builtin and function of the standard library: all are there without `use`. `sheaf doc NAME` shows the same on the terminal, `:doc
NAME` in the REPL. The comment after an example is its value; the tests run them all.

This page is written by `cargo run -p sheaf -- doc --markdown > docs/reference.md`.
";

impl Display for Entry {
    /// The signature, the module, the help, and the examples.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.signature)?;
        if let Some(module) = &self.module {
            writeln!(f, "  of the standard library, module {module}")?;
        }
        if !self.help.is_empty() {
            writeln!(f)?;
            self.help.lines().try_for_each(|line| writeln!(f, "  {line}"))?;
        }
        if !self.examples.is_empty() {
            writeln!(f)?;
            self.examples.iter().try_for_each(|e| writeln!(f, "  {} ;=> {}", e.code, e.result))?;
        }
        Ok(())
    }
}

/// The entries grouped by section, sections in order of first occurrence.
pub fn sections(entries: &[Entry]) -> Vec<(&str, Vec<&Entry>)> {
    let mut sections: Vec<(&str, Vec<&Entry>)> = Vec::new();
    for entry in entries {
        match sections.iter_mut().find(|(name, _)| *name == entry.section) {
            Some((_, found)) => found.push(entry),
            None => sections.push((&entry.section, vec![entry])),
        }
    }
    sections
}

/// The names of all entries, by section.
pub fn overview(entries: &[Entry]) -> String {
    let mut out = String::new();
    for (section, entries) in sections(entries) {
        out += &title(section, &entries);
        out += "\n";
        let mut line = String::from(" ");
        for entry in entries {
            if line.len() + 1 + entry.name.len() > WIDTH {
                out += &line;
                out += "\n";
                line = String::from(" ");
            }
            line += " ";
            line += &entry.name;
        }
        out += &line;
        out += "\n\n";
    }
    out
}

/// The reference page of the book.
pub fn markdown(entries: &[Entry]) -> String {
    let mut out = String::from(PREFACE);
    for (section, entries) in sections(entries) {
        out += &format!("\n## {}\n", title(section, &entries));
        for entry in entries {
            out += &format!("\n### `{}`\n\n```clojure\n{}\n```\n", entry.name, entry.signature);
            if !entry.help.is_empty() {
                out += &format!("\n{}\n", escaped(&entry.help));
            }
            if !entry.examples.is_empty() {
                let examples = entry.examples.iter().map(|e| format!("{} ;=> {}\n", e.code, e.result));
                out += &format!("\n```clojure\n{}```\n", examples.collect::<String>());
            }
        }
    }
    out
}

/// The heading of a section.
fn title(section: &str, entries: &[&Entry]) -> String {
    match entries.first().and_then(|entry| entry.module.as_deref()) {
        Some(module) => format!("Module {module}"),
        None => {
            let mut letters = section.chars();
            letters.next().map(|c| c.to_uppercase().chain(letters).collect()).unwrap_or_default()
        }
    }
}

/// Plain text escaped for Markdown.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '*' | '_' | '`' | '[' | ']' | '<' | '>' | '#' | '|') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
