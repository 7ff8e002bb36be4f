//! Test cases: top-level forms with a comment that gives their result.

use sheaf_syntax::diagnostic::Diagnostic;
use sheaf_syntax::{Form, SourceId, Span};

/// Start of the comment of a case.
pub(super) const MARK: &str = ";=>";

/// A top-level form and its expected result.
pub(super) struct Item {
    pub form: Form,
    pub expected: Option<Expected>,
}

/// An expected result.
pub(super) struct Expected {
    pub kind: Kind,
    /// A value as code, or a part of the error message.
    pub text: String,
    /// The comment.
    pub span: Span,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Value,
    Error,
}

/// The forms of a text with their comments: `;=> value` or `;=> error: part of the message`, on the form's last line or
/// the next. Other such comments are errors.
pub(super) fn items(text: &str, id: SourceId, forms: Vec<Form>) -> Result<Vec<Item>, Vec<Diagnostic>> {
    let mut stray = comments(text, id, 0, forms.first().map_or(text.len(), |f| f.span.start as usize));
    let starts: Vec<usize> = forms.iter().skip(1).map(|f| f.span.start as usize).collect();
    let mut items = Vec::with_capacity(forms.len());
    for (i, form) in forms.into_iter().enumerate() {
        let from = form.span.end as usize;
        let to = starts.get(i).copied().unwrap_or(text.len());
        let mut found = comments(text, id, from, to.max(from)).into_iter();
        let near = |span: &Span| text[from..span.start as usize].matches('\n').count() <= 1;
        let expected = found.next().and_then(|(expected, span)| {
            if near(&span) && expected.is_some() {
                return expected;
            }
            stray.push((expected, span));
            None
        });
        stray.extend(found);
        items.push(Item { form, expected });
    }
    if stray.is_empty() {
        return Ok(items);
    }
    let message = |(expected, span): (Option<Expected>, Span)| {
        let d = match expected {
            Some(_) => Diagnostic::error("this comment belongs to no expression"),
            None => Diagnostic::error("nothing is expected here"),
        };
        d.at(span, "").help("an expression comes first, then ;=> and its value, on the same line or the next")
    };
    Err(stray.into_iter().map(message).collect())
}

/// The `;=>` comments between two offsets; `None` for those without text.
fn comments(text: &str, id: SourceId, from: usize, to: usize) -> Vec<(Option<Expected>, Span)> {
    let mut found = Vec::new();
    let mut start = from;
    for line in text[from..to].split_inclusive('\n') {
        if let Some(at) = line.find(';')
            && let Some(rest) = line[at..].strip_prefix(MARK)
        {
            let end = start + line.trim_end().len();
            let span = Span { source: id, start: (start + at) as u32, end: end as u32 };
            let rest = rest.trim();
            let (kind, text) = match rest.strip_prefix("error:") {
                Some(message) => (Kind::Error, message.trim()),
                None => (Kind::Value, rest),
            };
            let expected = Expected { kind, text: text.into(), span };
            found.push(((!text.is_empty()).then_some(expected), span));
        }
        start += line.len();
    }
    found
}
