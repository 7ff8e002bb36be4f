//! The characters that wrap the form after them.

/// A short way to write a list of a name and one form, or a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prefix {
    Quote,
    Quasiquote,
    Unquote,
    UnquoteSplicing,
    /// Before a call: the function that makes it.
    Function,
}

impl Prefix {
    /// The head of the list that it stands for.
    pub(super) fn name(self) -> &'static str {
        match self {
            Prefix::Quote => "quote",
            Prefix::Quasiquote => "quasiquote",
            Prefix::Unquote => "unquote",
            Prefix::UnquoteSplicing => "unquote-splicing",
            Prefix::Function => "fn",
        }
    }

    /// As written.
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
