//! Rendering of diagnostics: the place, an excerpt with labels, notes, and the fix.

use std::borrow::Cow;
use std::ops::Range;

use codespan_reporting::diagnostic as codespan;
use codespan_reporting::files::SimpleFiles;
use codespan_reporting::term::{self, Config, termcolor::Ansi};

use crate::diagnostic::{Diagnostic, Severity};
use crate::visible::{moved, visible};
use crate::{SourceId, Sources, Span};

/// The message for a terminal, ending in an empty line; `color` adds ANSI colours.
///
/// Equal diagnostics give equal text. Spans outside the sources are moved to the nearest span inside, or dropped if
/// their source is unknown: an invalid span must not hide the message. Control characters in quoted text are escaped
/// ([`visible`]).
pub fn render(sources: &Sources, diagnostic: &Diagnostic, color: bool) -> String {
    let (files, places) = excerpts(sources, diagnostic);
    let labels = places
        .into_iter()
        .enumerate()
        .map(|(i, (file, range, text))| {
            let style = if i == 0 { codespan::LabelStyle::Primary } else { codespan::LabelStyle::Secondary };
            codespan::Label::new(style, file, range).with_message(visible(&text))
        })
        .collect();
    let severity = match diagnostic.severity {
        Severity::Error => codespan::Severity::Error,
        Severity::Warning => codespan::Severity::Warning,
    };
    let notes = diagnostic.notes.iter().map(|note| visible(note).into_owned());
    let help = diagnostic.help.iter().map(|help| format!("help: {}", visible(help)));
    let message = codespan::Diagnostic::new(severity)
        .with_message(visible(&diagnostic.message))
        .with_labels(labels)
        .with_notes(notes.chain(help).collect());
    if has_long_line(sources, diagnostic) {
        return plain(sources, diagnostic);
    }
    emit(&files, &message, color).unwrap_or_else(|_| plain(sources, diagnostic))
}

/// Lines with more bytes are data; an excerpt would fill the screen.
const LONG_LINE: usize = 2_000;

fn has_long_line(sources: &Sources, diagnostic: &Diagnostic) -> bool {
    diagnostic.labels.iter().any(|label| {
        sources.get(label.span.source).is_some_and(|(_, text)| {
            let range = label.span.within(text);
            let start = text[..range.start].rfind('\n').map_or(0, |n| n + 1);
            let end = text[range.start..].find('\n').map_or(text.len(), |n| range.start + n);
            end - start > LONG_LINE
        })
    })
}

type Files<'a> = SimpleFiles<Cow<'a, str>, Cow<'a, str>>;
type Place<'a> = (usize, Range<usize>, Cow<'a, str>);

/// The sources of the diagnostic, and its labels as ranges in them; after a label in the code of a macro, the macro's
/// use.
fn excerpts<'a>(sources: &'a Sources, diagnostic: &'a Diagnostic) -> (Files<'a>, Vec<Place<'a>>) {
    let mut files = SimpleFiles::new();
    let mut ids: Vec<(SourceId, usize)> = Vec::new();
    let mut places: Vec<Place> = Vec::new();
    for (span, label) in spelled_out(sources, diagnostic) {
        let Some((name, text)) = sources.get(span.source) else { continue };
        let source = sources.file(span.source);
        let known = ids.iter().find(|(id, _)| *id == source).map(|(_, file)| *file);
        let file = known.unwrap_or_else(|| files.add(visible(name), visible(text)));
        ids.push((source, file));
        let range = span.within(text);
        let place = (file, moved(text, range.start)..moved(text, range.end), label);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    (files, places)
}

/// The labels, with one more for each macro use that a span comes from.
fn spelled_out<'a>(sources: &Sources, diagnostic: &'a Diagnostic) -> Vec<(Span, Cow<'a, str>)> {
    let mut labels = Vec::new();
    let said = |span: Span| diagnostic.labels.iter().any(|l| l.span == span);
    for label in &diagnostic.labels {
        labels.push((label.span, Cow::Borrowed(label.text.as_str())));
        let mut span = label.span;
        while let Some(expansion) = sources.expansion(span.source) {
            span = expansion.used;
            if !said(span) {
                labels.push((span, Cow::Owned(format!("in this use of the macro {}", expansion.name))));
            }
        }
    }
    labels
}

fn emit(
    files: &Files<'_>,
    message: &codespan::Diagnostic<usize>,
    color: bool,
) -> Result<String, codespan_reporting::files::Error> {
    let config = Config::default();
    if !color {
        let text = term::emit_into_string(&config, files, message)?;
        return Ok(text.lines().fold(String::new(), |out, line| out + line.trim_end() + "\n"));
    }
    let mut out = Ansi::new(Vec::new());
    term::emit_to_write_style(&mut out, &config, files, message)?;
    Ok(String::from_utf8_lossy(&out.into_inner()).into_owned())
}

/// The message without excerpts.
fn plain(sources: &Sources, diagnostic: &Diagnostic) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let places = spelled_out(sources, diagnostic).into_iter().filter_map(|(span, label)| {
        let (name, _) = sources.get(span.source)?;
        let (line, column) = sources.position(span);
        Some(format!("  {}:{line}:{column}: {}\n", visible(name), visible(&label)))
    });
    let notes = diagnostic.notes.iter().map(|note| format!("  = {}\n", visible(note)));
    let help = diagnostic.help.iter().map(|help| format!("  = help: {}\n", visible(help)));
    let details: String = places.chain(notes).chain(help).collect();
    format!("{severity}: {}\n{details}\n", visible(&diagnostic.message))
}
