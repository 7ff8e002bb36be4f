//! Parsing of atoms: numbers, ranges, keywords, constants, symbols.

use super::FormKind;

/// A parsed atom.
#[derive(Debug)]
pub(super) enum Atom<'t> {
    /// A symbol, the whole text.
    Symbol,
    /// A keyword of that name.
    Keyword(&'t str),
    /// A value without a name.
    Value(FormKind),
}

/// The reason a text is no atom.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AtomError {
    /// `:` alone.
    NamelessKeyword,
    /// An integer that does not fit 64 bits.
    IntegerTooLarge,
    /// A number beyond the largest 64-bit float.
    FloatTooLarge,
    /// Starts as a range, but its end is no integer.
    Range,
    /// Starts with a digit, but is no number.
    Number,
}

/// Parses a non-empty atom.
pub(super) fn parse_atom(text: &str) -> Result<Atom<'_>, AtomError> {
    match text.as_bytes() {
        [b':'] => Err(AtomError::NamelessKeyword),
        [b':', ..] => Ok(Atom::Keyword(&text[1..])),
        [b'0'..=b'9', ..] | [b'+' | b'-' | b'.', b'0'..=b'9', ..] | [b'+' | b'-', b'.', b'0'..=b'9', ..] => {
            parse_number(text).map(Atom::Value)
        }
        b"true" => Ok(Atom::Value(FormKind::Bool(true))),
        b"false" => Ok(Atom::Value(FormKind::Bool(false))),
        b"nil" => Ok(Atom::Value(FormKind::Nil)),
        _ => Ok(Atom::Symbol),
    }
}

fn parse_number(text: &str) -> Result<FormKind, AtomError> {
    if is_integer(text) {
        return text.parse().map(FormKind::Int).map_err(|_| AtomError::IntegerTooLarge);
    }
    if let Some((start, end)) = text.split_once(':') {
        if !is_integer(start) || !(is_integer(end) || end.is_empty()) {
            return Err(AtomError::Range);
        }
        let end = if end.is_empty() { Ok(OPEN) } else { end.parse() };
        return match (start.parse(), end) {
            (Ok(start), Ok(end)) => Ok(FormKind::Range(start, end)),
            _ => Err(AtomError::IntegerTooLarge),
        };
    }
    match text.parse::<f64>() {
        Ok(value) if value.is_finite() => Ok(FormKind::Float(value)),
        Ok(_) => Err(AtomError::FloatTooLarge),
        Err(_) => Err(AtomError::Number),
    }
}

/// End of an open range, `2:`.
pub(super) const OPEN: i64 = i64::MAX;

fn is_integer(text: &str) -> bool {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
}

/// The contents of a string between its quotes, escapes replaced.
pub(super) fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('n') => out.push('\n'),
            Some('t') => out.push('\t'),
            Some(c @ ('"' | '\\')) => out.push(c),
            // Any other pair stays, so that patterns such as `\d` need no second backslash.
            other => {
                out.push('\\');
                out.extend(other);
            }
        }
    }
    out
}
