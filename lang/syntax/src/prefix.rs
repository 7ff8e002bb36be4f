//! Reader prefixes: characters that wrap the next form.

use super::SpecialForm;

/// Shorthand for a list of a name and one form, or for a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prefix {
    Quote,
    Quasiquote,
    Unquote,
    UnquoteSplicing,
    /// Before a call: the function whose body it is.
    Function,
}

impl Prefix {
    /// The head of the expanded list.
    pub(super) fn name(self) -> &'static str {
        match self {
            Prefix::Quote => SpecialForm::Quote,
            Prefix::Quasiquote => SpecialForm::Quasiquote,
            Prefix::Unquote => SpecialForm::Unquote,
            Prefix::UnquoteSplicing => SpecialForm::UnquoteSplicing,
            Prefix::Function => SpecialForm::Fn,
        }
        .name()
    }

    /// The source text.
    pub(super) fn text(self) -> &'static str {
        match self {
            Prefix::Quote => "'",
            Prefix::Quasiquote => "`",
            Prefix::Unquote => "~",
            Prefix::UnquoteSplicing => "~@",
            Prefix::Function => "#",
        }
    }

    /// The prefix for lists whose head is `name`.
    pub(super) fn named(name: &str) -> Option<Prefix> {
        [Prefix::Quote, Prefix::Quasiquote, Prefix::Unquote, Prefix::UnquoteSplicing]
            .into_iter()
            .find(|p| p.name() == name)
    }
}
