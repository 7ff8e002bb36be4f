//! Error messages of the reader.

use super::atom::AtomError;
use super::reader::NESTING_LIMIT;
use super::{Form, SourceId, Span};
use crate::diagnostic::Diagnostic;

/// Maximum open brackets in one message.
const SHOWN: usize = 4;

pub(super) fn too_large(name: &str) -> Diagnostic {
    Diagnostic::error(format!("`{name}` is larger than 4 GiB"))
        .help("split it into modules, or read data with `io` instead of writing it into the program")
}

pub(super) fn too_deep(span: Span) -> Diagnostic {
    Diagnostic::error(format!("forms are nested more than {NESTING_LIMIT} deep"))
        .at(span, "one level too many")
        .help("name parts of the expression with `let` or `defn`, or read data with `io`")
}

pub(super) fn string_never_closed(quote: Span) -> Diagnostic {
    Diagnostic::error("a string is never closed")
        .at(quote, "it begins here")
        .help("end it with `\"`; a quote inside a string is written `\\\"`")
}

pub(super) fn nothing_follows(prefix: &str, span: Span) -> Diagnostic {
    let what = match prefix {
        "#_" => "drop",
        "~@" => "splice",
        "~" => "fill in",
        _ => "quote",
    };
    Diagnostic::error(format!("`{prefix}` has nothing after it to {what}"))
        .at(span, "a form must follow")
        .help(format!("write the form, or remove `{prefix}`"))
}

pub(super) fn closes_nothing(close: u8, span: Span) -> Diagnostic {
    let close = close as char;
    Diagnostic::error(format!("`{close}` closes nothing"))
        .at(span, "no bracket is open here")
        .help(format!("remove it, or look for a `{close}` too many before it"))
}

/// The error for `found` in place of the closing bracket of `open`; `outer` is the bracket that `found` would close.
pub(super) fn mismatch(open: (u8, Span), found: (u8, Span), outer: Option<Span>) -> Diagnostic {
    let (opener, close, found_char) = (open.0 as char, closing(open.0), found.0 as char);
    let error = Diagnostic::error(format!("expected `{close}` to close `{opener}`, found `{found_char}`"))
        .at(found.1, format!("expected `{close}` before this"))
        .at(open.1, format!("`{opener}` is open since here"));
    match outer {
        Some(outer) => error
            .at(outer, format!("`{found_char}` would close this"))
            .help(format!("put `{close}` where the form that `{opener}` opens ends")),
        None => error.help(format!("replace `{found_char}` by `{close}`")),
    }
}

/// The error for unclosed brackets `open`, outermost first; `margin` is a later form that starts in the first column.
pub(super) fn never_closed(source: SourceId, open: &[(u8, usize)], margin: Option<usize>) -> Diagnostic {
    let span = |at: usize| Span { source, start: at as u32, end: at as u32 + 1 };
    // If a form in the first column looks like a new beginning, the unclosed bracket is one before it.
    let margin = margin.filter(|margin| open.first().is_some_and(|(_, at)| at < margin));
    let suspects = match margin {
        Some(margin) => &open[..open.iter().take_while(|(_, at)| *at < margin).count()],
        None => open,
    };
    let closers: String = suspects.iter().rev().map(|(b, _)| closing(*b)).collect();
    let mut error = match suspects {
        [(one, _)] => Diagnostic::error(format!("`{}` is never closed", *one as char)),
        _ => Diagnostic::error(format!("{} brackets are never closed", suspects.len())),
    };
    for (byte, at) in suspects.iter().rev().take(SHOWN) {
        error = error.at(span(*at), format!("`{}` is opened here", *byte as char));
    }
    if suspects.len() > SHOWN {
        error = error.note(format!("{} more are open around these", suspects.len() - SHOWN));
    }
    match margin {
        Some(margin) => error
            .at(span(margin), "this form starts a line, as if nothing were open")
            .help(format!("if a new form is meant to begin there, add `{closers}` before it")),
        None if suspects.len() > 2 * SHOWN => error.help("close each where its form ends"),
        None => error.help(format!("add `{closers}` where the form ends")),
    }
}

pub(super) fn odd_dict(key: &Form, dict: Span) -> Diagnostic {
    Diagnostic::error("a dictionary needs a value for each key")
        .at(key.span, "this key has no value")
        .at(dict, "in this dictionary")
        .help("write `{key value ...}`")
}

pub(super) fn not_a_key(form: &Form) -> Diagnostic {
    Diagnostic::error("a dictionary key is a keyword, a string or a symbol")
        .at(form.span, "found this")
        .help("write a keyword such as `:name`; `(dict ...)` and `assoc` take keys that are computed")
}

pub(super) fn duplicate_key(form: &Form, first: Span) -> Diagnostic {
    let error = Diagnostic::error(format!("the key `{form}` occurs twice in one dictionary"))
        .at(form.span, "here again")
        .at(first, "first here");
    error.help("remove one of them; `:k` and `\"k\"` are the same key")
}

pub(super) fn nested_function(at: Span) -> Diagnostic {
    Diagnostic::error("`#(...)` stands inside another `#(...)`")
        .at(at, "whose % would this one mean?")
        .help("write one of them as `(fn [x] ...)`")
}

pub(super) fn argument_number(at: Span) -> Diagnostic {
    Diagnostic::error(format!("`#(...)` has arguments %1 to %{}", super::shorthand::MAX_ARGUMENTS))
        .at(at, "this number is too high")
        .help("write `(fn [x y] ...)`, which gives its arguments names")
}

pub(super) fn atom(error: AtomError, text: &str, span: Span) -> Diagnostic {
    let text = shortened(text);
    match error {
        AtomError::NamelessKeyword => Diagnostic::error("`:` has no name after it")
            .at(span, "a keyword is written `:name`")
            .help("write the name right after the colon; the body of a form stands inside of its brackets, after no colon"),
        AtomError::IntegerTooLarge => Diagnostic::error(format!("{text} does not fit a 64-bit integer"))
            .at(span, format!("the limits are {} and {}", i64::MIN, i64::MAX))
            .help("write a larger number as a float, with a point or an exponent: `1e19`"),
        AtomError::FloatTooLarge => Diagnostic::error(format!("{text} does not fit a float"))
            .at(span, "the limit is about 1.8e308")
            .help("for infinity write `(/ 1.0 0.0)`"),
        AtomError::Range => Diagnostic::error(format!("`{text}` is no range"))
            .at(span, "both ends must be whole numbers, as in `100:200`")
            .help("for other bounds use `(slice data start end)`"),
        AtomError::Number => Diagnostic::error(format!("`{text}` is no number"))
            .at(span, "names do not start like a number")
            .help(match text.split_once('/') {
                Some((a, b)) if b.parse::<u64>().is_ok() => format!("a quotient is a call: `(/ {a} {b})`"),
                _ => "numbers are written `42`, `-7`, `3.5` or `1e-8`".into(),
            }),
    }
}

/// Messages stay readable whatever the text contains.
fn shortened(text: &str) -> String {
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(40).collect();
    if chars.next().is_some() { format!("{start}...") } else { start }
}

fn closing(open: u8) -> char {
    match open {
        b'(' => ')',
        b'[' => ']',
        _ => '}',
    }
}
