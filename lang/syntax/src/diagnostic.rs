//! Diagnostics: errors and warnings with labelled spans.

use crate::Span;

/// A message to the user: the expected, the found, the place and the fix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The fault, one sentence.
    pub message: String,
    /// Labelled spans, the main one first.
    pub labels: Vec<Label>,
    /// Facts without a span.
    pub notes: Vec<String>,
    /// The suggested fix.
    pub help: Option<String>,
    /// Error or warning.
    pub severity: Severity,
    /// Kind of the error, for code that handles errors by kind.
    pub kind: Kind,
    /// Next origin to search for the nil that the message mentions.
    pub suspect: Option<Suspect>,
}

/// Kind of an error that changes its handling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Raised by the program, with `error` or `assert`.
    Raised,
    /// A broken guard, as reported to the user.
    Guard,
    /// A guard of the program, `(guard ...)`, broken in a call that is being left.
    GuardRaised,
    /// An undefined name.
    UnknownName,
    /// Any other.
    Other,
}

impl Kind {
    /// True for errors raised by the program; each call that they leave is added to them.
    pub fn is_raised(self) -> bool {
        matches!(self, Kind::Raised | Kind::GuardRaised)
    }

    /// True for broken guards.
    pub fn is_guard(self) -> bool {
        matches!(self, Kind::Guard | Kind::GuardRaised)
    }
}

/// Possible origin of a nil, in terms of the function being left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspect {
    /// The argument at that position of the call being left.
    Argument(usize),
    /// The callee of that call.
    Head,
    /// The local variable in that slot.
    Local(u32),
}

/// A span and its text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// The span.
    pub span: Span,
    /// A few words under the excerpt; may be empty.
    pub text: String,
}

/// Severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The run stops.
    Error,
    /// The run continues, perhaps not as the user expects.
    Warning,
}

impl Diagnostic {
    /// An error without labels.
    pub fn error(message: impl Into<String>) -> Self {
        Diagnostic {
            message: message.into(),
            labels: Vec::new(),
            notes: Vec::new(),
            help: None,
            severity: Severity::Error,
            kind: Kind::Other,
            suspect: None,
        }
    }

    /// A warning without labels.
    pub fn warning(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Adds a label.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a label if there is none: called while an error propagates.
    #[must_use]
    pub fn or_at(self, span: Span) -> Self {
        if self.labels.is_empty() { self.at(span, "") } else { self }
    }

    /// Sets the kind.
    #[must_use]
    pub fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a note.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Sets the fix.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
