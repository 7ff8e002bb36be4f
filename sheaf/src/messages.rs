//! Messages that belong to no place in a program, in the look of those that do. They go to standard error.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use sheaf_project::Project;
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::{Diagnostic, Severity};
use sheaf_syntax::render::render;

/// True if messages are coloured: on a terminal, unless `NO_COLOR` is set.
pub fn colored() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Things passed over in this process, a line for each: later failures may come from them.
static PASSED_OVER: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Says once in a line that something is passed over. The errors that follow repeat it.
pub fn passed_over(line: impl Display) {
    let line = line.to_string();
    if PASSED_OVER.lock().unwrap_or_else(PoisonError::into_inner).insert(line.clone()) {
        warning(line, None);
    }
}

/// Warnings about files in this process: several parts of it look at the same file.
static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// True if this is the first time in this process that a warning is to be said.
pub fn is_first(warning: &str) -> bool {
    SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.to_owned())
}

/// Shows the keys of a project's manifest that mean nothing, each once in a process.
pub fn ineffective(project: &Project) {
    for text in project.manifest.iter().flat_map(|manifest| &manifest.warnings).map(ToString::to_string) {
        if is_first(&text) {
            warning(text, None);
        }
    }
}

/// An error with the things passed over before.
fn with_passed_over(mut error: Diagnostic) -> Diagnostic {
    let lines = PASSED_OVER.lock().unwrap_or_else(PoisonError::into_inner);
    error.notes.extend(lines.iter().cloned());
    error
}

/// Shows a message with the excerpts of the sources it points at.
pub fn show(sources: &Sources, diagnostic: &Diagnostic) {
    if diagnostic.severity == Severity::Error {
        eprint!("{}", render(sources, &with_passed_over(diagnostic.clone()), colored()));
    } else {
        eprint!("{}", render(sources, diagnostic, colored()));
    }
}

/// Shows an error without a place.
pub fn error(message: impl Display, help: Option<&str>) {
    plain(Diagnostic::error(message.to_string()), help);
}

/// Shows a warning without a place.
pub fn warning(message: impl Display, help: Option<&str>) {
    plain(Diagnostic::warning(message.to_string()), help);
}

/// Shows a warning without a place: the event, a fact about it, and a remedy.
pub fn warning_with(message: impl Display, fact: impl Display, help: Option<&str>) {
    plain(Diagnostic::warning(message.to_string()).note(fact.to_string()), help);
}

fn plain(mut diagnostic: Diagnostic, help: Option<&str>) {
    diagnostic.help = help.map(str::to_owned);
    show(&Sources::default(), &diagnostic);
}
