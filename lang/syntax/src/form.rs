//! Forms: the output of the reader, the input and output of macros.

use arcstr::ArcStr;
use ustr::Ustr;

use super::Span;

/// Round or square brackets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bracket {
    /// `(...)`
    Round,
    /// `[...]`
    Square,
}

/// A syntax tree node with its span.
#[derive(Clone, Debug)]
pub struct Form {
    /// The node.
    pub kind: FormKind,
    /// The source span, or the macro use that made it.
    pub span: Span,
}

/// The kinds of form.
#[derive(Clone, Debug)]
pub enum FormKind {
    /// `nil`
    Nil,
    /// `true` and `false`
    Bool(bool),
    /// A number without point or exponent.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// `"text"`
    Str(ArcStr),
    /// `:name`, without the colon.
    Keyword(Ustr),
    /// A name.
    Symbol(Ustr),
    /// `a:b`, a half-open range.
    Range(i64, i64),
    /// `(...)` and `[...]`
    List(Bracket, Vec<Form>),
    /// `{k v ...}`
    Dict(Vec<(Form, Form)>),
}

impl Form {
    /// The name, if this is a symbol.
    pub fn symbol(&self) -> Option<Ustr> {
        if let FormKind::Symbol(name) = self.kind { Some(name) } else { None }
    }

    /// The items, if this is a list in brackets of that kind.
    pub fn items(&self, bracket: Bracket) -> Option<&[Form]> {
        match &self.kind {
            FormKind::List(b, items) if *b == bracket => Some(items),
            _ => None,
        }
    }

    /// True if this is the symbol `name`.
    pub fn is_symbol(&self, name: &str) -> bool {
        self.symbol().is_some_and(|s| s == name)
    }
}
