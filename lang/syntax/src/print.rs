//! Printing of forms as text that reads as the same forms.

use std::fmt::{self, Display, Formatter, Write};

use super::prefix::Prefix;
use super::{Bracket, Form, FormKind};

impl Display for Form {
    /// One line, without the original layout. Forms from the reader round-trip; a name that a macro made up (with
    /// blanks, say) or an infinite float may not.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl Display for FormKind {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            FormKind::Nil => f.write_str("nil"),
            FormKind::Bool(b) => write!(f, "{b}"),
            FormKind::Int(n) => write!(f, "{n}"),
            FormKind::Float(x) => write!(f, "{x:?}"),
            FormKind::Str(text) => write_string(f, text),
            FormKind::Keyword(name) => write!(f, ":{name}"),
            FormKind::Symbol(name) => f.write_str(name),
            FormKind::Range(start, super::atom::OPEN) => write!(f, "{start}:"),
            FormKind::Range(start, end) => write!(f, "{start}:{end}"),
            FormKind::List(bracket, items) => match prefixed(*bracket, items) {
                Some((prefix, item)) => write!(f, "{}{item}", prefix.text()),
                None => write_list(f, *bracket, items),
            },
            FormKind::Dict(entries) => {
                f.write_char('{')?;
                for (i, (key, value)) in entries.iter().enumerate() {
                    let gap = if i == 0 { "" } else { " " };
                    write!(f, "{gap}{key} {value}")?;
                }
                f.write_char('}')
            }
        }
    }
}

fn write_list(f: &mut Formatter<'_>, bracket: Bracket, items: &[Form]) -> fmt::Result {
    let (open, close) = match bracket {
        Bracket::Round => ('(', ')'),
        Bracket::Square => ('[', ']'),
    };
    f.write_char(open)?;
    for (i, item) in items.iter().enumerate() {
        let gap = if i == 0 { "" } else { " " };
        write!(f, "{gap}{item}")?;
    }
    f.write_char(close)
}

/// The prefix that abbreviates a list, and its operand.
fn prefixed(bracket: Bracket, items: &[Form]) -> Option<(Prefix, &Form)> {
    let [head, item] = items else { return None };
    let prefix = Prefix::named(&head.symbol()?)?;
    // `~` before `@x` would read as `~@` before `x`.
    let ambiguous = prefix == Prefix::Unquote && item.symbol().is_some_and(|name| name.starts_with('@'));
    (bracket == Bracket::Round && !ambiguous).then_some((prefix, item))
}

fn write_string(f: &mut Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        match c {
            '\n' => f.write_str("\\n")?,
            '\t' => f.write_str("\\t")?,
            '"' => f.write_str("\\\"")?,
            '\\' => f.write_str("\\\\")?,
            c => f.write_char(c)?,
        }
    }
    f.write_char('"')
}
