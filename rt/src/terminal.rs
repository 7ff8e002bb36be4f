//! Output to the terminal.

use std::io::{self, IsTerminal as _, Write as _};

use sheaf_lang::host::Metric;
use sheaf_loader::Reporter;
use sheaf_observe::{Metrics, Unwritten};
use sheaf_syntax::Sources;
use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::render::render;
use std::sync::{Mutex, PoisonError};

/// True if messages are coloured: on a terminal, unless `NO_COLOR` is set.
pub fn colored() -> bool {
    io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Prints to standard error, whose reader may be gone.
pub fn note(text: &str) {
    let _ = io::stderr().write_all(text.as_bytes());
}

/// Shows a message with excerpts of the sources.
pub fn show(sources: &Sources, message: &Diagnostic) {
    note(&render(sources, message, colored()));
}

/// Shows an error without a place.
pub fn error(message: &str, help: Option<&str>) {
    let mut error = Diagnostic::error(message.to_owned());
    error.help = help.map(str::to_owned);
    show(&Sources::default(), &error);
}

/// Shows warnings, and writes metrics to their files.
pub struct TerminalReporter(pub Mutex<Metrics>);

impl Reporter for TerminalReporter {
    fn warning(&self, sources: &Sources, warning: &Diagnostic) {
        show(sources, warning);
    }

    fn passed_over(&self, line: &str) {
        show(&Sources::default(), &Diagnostic::warning(line.to_owned()));
    }

    fn note(&self, line: &str) {
        note(&format!("{line}\n"));
    }

    fn wants_metrics(&self) -> bool {
        !self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn metric(&self, metric: &Metric) {
        let mut metrics = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for Unwritten { path, error } in metrics.write(metric.name, metric.step, metric.value) {
            let message =
                format!("{} cannot be written: {error}; the run goes on without that file", path.display());
            show(&Sources::default(), &Diagnostic::warning(message));
        }
    }
}
