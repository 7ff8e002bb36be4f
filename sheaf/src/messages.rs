//! Messages that belong to no place in a program, in the look of those that do. They go to standard error.

use std::io::IsTerminal;

use sheaf_lang::diagnostic::Diagnostic;
use sheaf_lang::render::render;
use sheaf_lang::syntax::Sources;

/// Whether messages are coloured: on a terminal, unless `NO_COLOR` is set.
pub fn colored() -> bool {
    std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
}

/// Shows a message with the excerpts of the sources it points at.
pub fn show(sources: &Sources, diagnostic: &Diagnostic) {
    eprint!("{}", render(sources, diagnostic, colored()));
}

/// Shows an error without a place.
pub fn error(message: impl std::fmt::Display, help: Option<&str>) {
    plain(Diagnostic::error(message.to_string()), help);
}

/// Shows a warning without a place.
pub fn warning(message: impl std::fmt::Display, help: Option<&str>) {
    plain(Diagnostic::warning(message.to_string()), help);
}

/// Shows a warning without a place: what happens, a fact about it, and what to do.
pub fn warning_with(message: impl std::fmt::Display, fact: impl std::fmt::Display, help: Option<&str>) {
    plain(Diagnostic::warning(message.to_string()).note(fact.to_string()), help);
}

/// What a server or a file says may stand in it, and must not do anything to a terminal.
fn plain(mut diagnostic: Diagnostic, help: Option<&str>) {
    let cleaned = |text: &str| text.replace(|c: char| c.is_control() && c != '\n' && c != '\t', " ");
    diagnostic.message = cleaned(&diagnostic.message);
    diagnostic.notes.iter_mut().for_each(|note| *note = cleaned(note));
    diagnostic.help = help.map(cleaned);
    show(&Sources::default(), &diagnostic);
}

/// A number of things whose plural ends in s.
pub fn counted(count: usize, thing: &str) -> String {
    if count == 1 { format!("1 {thing}") } else { format!("{count} {thing}s") }
}
