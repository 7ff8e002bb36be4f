//! Python's format strings: `"loss {:.4f} after {} steps"`.
//!
//! A template is parsed once and rendered many times. Results are those of Python's `str.format`, without names,
//! attributes, conversions (`!r`) and nested placeholders.

mod error;
mod number;
mod spec;

pub use error::FormatError;
use spec::Spec;

use sheaf_graph::tensor::{DType, format_number};

/// A value for a placeholder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FormatArg<'a> {
    /// An integer.
    Int(i64),
    /// A 64-bit float; `{}` shows its shortest round-trip digits.
    Float(f64),
    /// A 32-bit float; `{}` shows it as `print` does. With a precision it equals [`FormatArg::Float`].
    Single(f32),
    /// An element of a tensor of that dtype; `{}` shows it as `print` does.
    Element(f64, DType),
    /// Text.
    Text(&'a str),
}

/// A parsed format string.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Field(Field),
}

/// A placeholder.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Field {
    /// Index of its argument, counted from 0.
    index: usize,
    spec: Spec,
    /// The source text, with its braces.
    text: String,
}

/// Parses a format string.
pub fn parse(template: &str) -> Result<Template, FormatError> {
    let mut pieces = Vec::new();
    let mut literal = String::new();
    let mut next = 0;
    let mut numbered = None;
    let mut rest = template;
    while let Some(at) = rest.find(['{', '}']) {
        literal.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            literal.push_str(&rest[..1]);
            rest = &rest[2..];
            continue;
        }
        let (inner, after) = match placeholder(rest) {
            Some(found) => found,
            None if rest.starts_with('{') => return Err(FormatError::Unclosed { found: excerpt(rest) }),
            None => return Err(FormatError::ClosesNothing { before: excerpt_before(template, rest) }),
        };
        let text = &rest[..inner.len() + 2];
        let (name, spec) = inner.split_once(':').unwrap_or((inner, ""));
        if inner.contains('{') {
            return Err(FormatError::Nested { placeholder: text.to_owned() });
        }
        if name.contains('!') {
            return Err(FormatError::Conversion { placeholder: text.to_owned() });
        }
        let index = index(name, text)?;
        if *numbered.get_or_insert(index.is_some()) != index.is_some() {
            let others = if index.is_some() { "without" } else { "with" };
            return Err(FormatError::Mixed { placeholder: text.to_owned(), others });
        }
        let spec =
            Spec::parse(spec).map_err(|fault| FormatError::Spec { placeholder: text.to_owned(), fault })?;
        if !literal.is_empty() {
            pieces.push(Piece::Literal(std::mem::take(&mut literal)));
        }
        pieces.push(Piece::Field(Field { index: index.unwrap_or(next), spec, text: text.to_owned() }));
        next += 1;
        rest = after;
    }
    literal.push_str(rest);
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(Template { pieces })
}

/// True if a text has a placeholder, and so is a template: `{}`, `{0}`, `{:>8}`.
///
/// An invalid specification counts, so that it is reported, unless it has blanks: `{:x 1}` is a dictionary in a
/// sentence.
pub fn has_placeholder(text: &str) -> bool {
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        rest = &rest[at..];
        if rest.starts_with("{{") || rest.starts_with("}}") {
            rest = &rest[2..];
            continue;
        }
        let end = rest[1..].find(['{', '}']).map_or(rest.len(), |end| end + 1);
        if rest.starts_with('{') && rest[end..].starts_with('}') {
            let inner = &rest[1..end];
            let (name, spec) = inner.split_once(':').unwrap_or((inner, ""));
            let plausible = Spec::parse(spec).is_ok() || !spec.contains(char::is_whitespace);
            if name.bytes().all(|b| b.is_ascii_digit()) && plausible {
                return true;
            }
        }
        rest = &rest[1..];
    }
    false
}

/// The text between the brace that starts `text` and its closing brace, and the text after it.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some((&text[1..at], &text[at + 1..]));
        }
    }
    None
}

/// The explicit argument index, if there is one.
fn index(name: &str, placeholder: &str) -> Result<Option<usize>, FormatError> {
    if name.is_empty() {
        return Ok(None);
    }
    let digits = name.bytes().all(|b| b.is_ascii_digit());
    match name.parse() {
        Ok(index) if digits => Ok(Some(index)),
        _ => Err(FormatError::Name { placeholder: placeholder.to_owned(), name: name.to_owned() }),
    }
}

/// The start of a text, truncated for a message.
fn excerpt(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(20).collect();
    if chars.next().is_some() { start + "..." } else { start }
}

/// The text before `rest` in `text`, with the first character of `rest`.
fn excerpt_before(text: &str, rest: &str) -> String {
    let end = text.len() - rest.len() + 1;
    let mut last: Vec<char> = text[..end].chars().rev().take(20).collect();
    last.reverse();
    last.into_iter().collect()
}

impl Template {
    /// The number of arguments needed.
    pub fn arguments(&self) -> usize {
        let needed = |piece: &Piece| if let Piece::Field(field) = piece { field.index + 1 } else { 0 };
        self.pieces.iter().map(needed).max().unwrap_or(0)
    }

    /// Renders the placeholders. Unused arguments are ignored, as in Python.
    pub fn render(&self, args: &[FormatArg<'_>]) -> Result<String, FormatError> {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Literal(text) => out.push_str(text),
                Piece::Field(field) => {
                    let arg = args.get(field.index).ok_or_else(|| FormatError::TooFew {
                        placeholder: field.text.clone(),
                        wanted: field.index + 1,
                        given: args.len(),
                    })?;
                    let text = field.spec.format(*arg).map_err(|reason| FormatError::Unfit {
                        placeholder: field.text.clone(),
                        found: describe(*arg),
                        reason,
                    })?;
                    out.push_str(&text);
                }
            }
        }
        Ok(out)
    }
}

fn describe(arg: FormatArg<'_>) -> String {
    match arg {
        FormatArg::Int(n) => format!("the integer {n}"),
        FormatArg::Float(x) => format!("the float {}", number::repr(x)),
        FormatArg::Single(x) => format!("the float {}", format_number(x.into(), DType::F32)),
        FormatArg::Element(x, dtype) => format!("the float {}", format_number(x, dtype)),
        FormatArg::Text(text) => format!("the text `{}`", excerpt(text)),
    }
}
