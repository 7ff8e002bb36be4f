//! What is wrong with a program, with places: one type for every message, one renderer.

use crate::syntax::Span;

/// A message to the user: what was expected, what was found, where, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// One sentence: what is wrong.
    pub message: String,
    /// The places, the main one first.
    pub labels: Vec<Label>,
    /// Facts that belong to no place.
    pub notes: Vec<String>,
    /// What to do.
    pub help: Option<String>,
    /// Error or warning.
    pub severity: Severity,
    /// Kind of an error that something else than its text depends on.
    pub(crate) kind: Kind,
    /// Where the evaluator looks next for the origin of the nil that the message speaks of.
    pub(crate) suspect: Option<Suspect>,
}

/// Kind of an error, as far as it matters to what happens next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The program itself stopped, with `error` or `assert`.
    Raised,
    /// A name that is defined nowhere.
    UnknownName,
    /// Any other.
    Other,
}

/// A place that a nil came from, as the function that is being left sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suspect {
    /// The argument at that position of the call that is being left.
    Argument(usize),
    /// What that call calls.
    Head,
    /// The local variable in that slot.
    Local(u32),
}

/// A place and what is to be said there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// Where.
    pub span: Span,
    /// A few words under the excerpt; may be empty.
    pub text: String,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The run cannot go on.
    Error,
    /// The run goes on, otherwise than the user may expect.
    Warning,
}

impl Diagnostic {
    /// An error without a place yet.
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

    /// A warning without a place yet.
    pub fn warning(message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Diagnostic::error(message) }
    }

    /// Adds a place.
    #[must_use]
    pub fn at(mut self, span: Span, text: impl Into<String>) -> Self {
        self.labels.push(Label { span, text: text.into() });
        self
    }

    /// Adds a place if none is known yet: called while an error travels outwards.
    #[must_use]
    pub fn or_at(self, span: Span) -> Self {
        if self.labels.is_empty() { self.at(span, "") } else { self }
    }

    /// Sets the kind.
    #[must_use]
    pub(crate) fn of_kind(mut self, kind: Kind) -> Self {
        self.kind = kind;
        self
    }

    /// Adds a fact.
    #[must_use]
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.notes.push(note.into());
        self
    }

    /// Says what to do.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
