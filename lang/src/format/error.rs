//! Errors of format strings and their arguments.

/// Names the placeholder, what was found, and the fix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FormatError {
    /// `{` without `}`.
    #[error("the placeholder that begins `{found}` is never closed: add `}}`, or write `{{{{` for a brace")]
    Unclosed {
        /// The text from the brace on.
        found: String,
    },
    /// `}` without `{`.
    #[error("the `}}` at the end of `{before}` closes nothing: write `}}}}` for a brace")]
    ClosesNothing {
        /// The text up to the brace.
        before: String,
    },
    /// `{name}`.
    #[error(
        "the placeholder `{placeholder}` has the name `{name}`, but arguments are numbered: write `{{}}` or `{{0}}`, or `{{{{` for a brace"
    )]
    Name {
        /// As written.
        placeholder: String,
        /// The text in place of the number.
        name: String,
    },
    /// `{!r}`.
    #[error(
        "the placeholder `{placeholder}` has a conversion, of which there are none: leave out `!` and what follows"
    )]
    Conversion {
        /// As written.
        placeholder: String,
    },
    /// `{:{}}`.
    #[error(
        "the placeholder `{placeholder}` has another one in it: write the width as a number, or `{{{{` for a brace"
    )]
    Nested {
        /// As written.
        placeholder: String,
    },
    /// `{} {0}`.
    #[error(
        "the placeholder `{placeholder}` comes after others {others} a number: number all of them or none"
    )]
    Mixed {
        /// As written.
        placeholder: String,
        /// `with` or `without`.
        others: &'static str,
    },
    /// `{:.4q}`.
    #[error("the placeholder `{placeholder}` cannot be understood: {fault}")]
    Spec {
        /// As written.
        placeholder: String,
        /// The fault after the colon, and the fix.
        fault: String,
    },
    /// More placeholders than arguments.
    #[error("the placeholder `{placeholder}` shows argument {wanted}, but {given} {} given: add the argument or remove the placeholder",
        if *given == 1 { "is" } else { "are" })]
    TooFew {
        /// As written.
        placeholder: String,
        /// The number of the argument, counted from 1.
        wanted: usize,
        /// The number of arguments given.
        given: usize,
    },
    /// `{:d}` with a text.
    #[error("the placeholder `{placeholder}` cannot show {found}: {reason}")]
    Unfit {
        /// As written.
        placeholder: String,
        /// The argument.
        found: String,
        /// The mismatch, and the fix.
        reason: String,
    },
}
