//! The reader: tokens to forms.
//!
//! One loop over tokens with an explicit stack, so no text can overflow the native stack. Finished forms that are not
//! yet in a list are kept in one vector; a closing bracket moves its part into a list of exactly that size.

use std::collections::HashMap;

use arcstr::ArcStr;
use ustr::Ustr;

use super::atom::{Atom, parse_atom, unescape};
use super::lexer::{Lexeme, Lexer, Token};
use super::names::Names;
use super::prefix::Prefix;
use super::reader_error as error;
use super::shorthand;
use super::{Bracket, Form, FormKind, SourceId, Sources, Span};
use crate::DType;
use crate::diagnostic::Diagnostic;

/// Maximum nesting of brackets and quotes. Recursive walks over forms rely on it.
pub const NESTING_LIMIT: usize = 1_000;

/// Maximum errors before reading stops.
const ERROR_LIMIT: usize = 20;

/// Reads all forms of a source.
///
/// Fails with every independent error, in source order.
pub fn read(sources: &Sources, id: SourceId) -> Result<Vec<Form>, Vec<Diagnostic>> {
    let text = sources.text(id);
    if u32::try_from(text.len()).is_err() {
        return Err(vec![error::too_large(sources.name(id))]);
    }
    let mut reader = Reader {
        text,
        source: id,
        items: Vec::new(),
        frames: Vec::new(),
        errors: Vec::new(),
        unbalanced: false,
        margin: None,
        names: Names::new(),
        prefixes: PREFIXES.map(|p| Ustr::from(p.name())),
        atom_end: 0,
        long_string: None,
        misquoted: None,
    };
    reader.run();
    if reader.errors.is_empty() { Ok(reader.items) } else { Err(reader.errors) }
}

const PREFIXES: [Prefix; 4] = [Prefix::Quote, Prefix::Quasiquote, Prefix::Unquote, Prefix::UnquoteSplicing];

/// A pending form: a bracket or prefix that awaits items.
#[derive(Clone, Copy, Debug)]
struct Frame {
    kind: FrameKind,
    /// Offset of its first byte.
    start: usize,
    /// Number of finished forms at that time.
    base: usize,
}

#[derive(Clone, Copy, Debug)]
enum FrameKind {
    /// An opening bracket, itself.
    Bracket(u8),
    /// Awaits the form to wrap.
    Prefix(Prefix),
    /// `#_` awaits the form to drop.
    Discard,
}

struct Reader<'t> {
    text: &'t str,
    source: SourceId,
    items: Vec<Form>,
    frames: Vec<Frame>,
    errors: Vec<Diagnostic>,
    /// True after mismatched brackets: until a form starts in the first column, further mismatches may be consequences
    /// and are not reported.
    unbalanced: bool,
    /// The first `(` in the first column since the current top-level form began, within it: a sign that this form was
    /// left open before.
    margin: Option<usize>,
    names: Names<'t>,
    prefixes: [Ustr; 4],
    /// The end of the last atom or bracket, and the start of the last multi-line string.
    atom_end: usize,
    long_string: Option<usize>,
    /// The multi-line string whose closing quote is missing: its end is the start of a string right behind an atom.
    misquoted: Option<usize>,
}

/// Aborts reading.
struct Stop;

impl<'t> Reader<'t> {
    fn run(&mut self) {
        for lexeme in Lexer::new(self.text) {
            if self.lexeme(lexeme).is_err() || self.errors.len() >= ERROR_LIMIT {
                return;
            }
        }
        self.close_prefixes(self.text.len());
        if !self.frames.is_empty() && !self.unbalanced {
            let open: Vec<_> = self.frames.iter().filter_map(Frame::bracket).collect();
            self.errors.push(error::never_closed(self.source, &open, self.margin));
        }
    }

    fn span(&self, start: usize, end: usize) -> Span {
        Span { source: self.source, start: start as u32, end: end as u32 }
    }

    fn lexeme(&mut self, Lexeme { token, start, end }: Lexeme) -> Result<(), Stop> {
        match token {
            Token::Atom => {
                self.atom_end = end;
                let text: &'t str = &self.text[start..end];
                match parse_atom(text) {
                    Ok(Atom::Symbol) => self.push_name(FormKind::Symbol, text, start, end),
                    Ok(Atom::Keyword(name)) => self.push_name(FormKind::Keyword, name, start, end),
                    Ok(Atom::Value(kind)) => self.push(kind, start, end),
                    Err(e) => {
                        self.errors.push(error::atom(e, text, self.span(start, end)));
                        self.push(FormKind::Nil, start, end);
                    }
                }
            }
            Token::Open(byte) => {
                let at_margin = start == 0 || self.text.as_bytes()[start - 1] == b'\n';
                if self.frames.is_empty() {
                    self.margin = None;
                    self.unbalanced &= !at_margin;
                } else if at_margin && byte == b'(' {
                    self.margin = self.margin.or(Some(start));
                }
                return self.open(FrameKind::Bracket(byte), start);
            }
            Token::Close(byte) => {
                self.atom_end = end;
                self.close(byte, start);
            }
            Token::Prefix(prefix) => {
                if prefix == Prefix::Function
                    && self.frames.iter().any(|f| matches!(f.kind, FrameKind::Prefix(Prefix::Function)))
                {
                    self.errors.push(error::nested_function(self.span(start, end)));
                }
                return self.open(FrameKind::Prefix(prefix), start);
            }
            Token::Discard => return self.open(FrameKind::Discard, start),
            Token::Str { closed: false, .. } => {
                self.note_string(start, start);
                let quote = self.misquoted.unwrap_or(start);
                self.errors.push(error::string_never_closed(self.span(quote, quote + 1)));
                return Err(Stop);
            }
            Token::Str { escaped, closed: true } => {
                self.note_string(start, end);
                let inner = &self.text[start + 1..end - 1];
                let text: ArcStr = if escaped { unescape(inner).into() } else { inner.into() };
                self.push(FormKind::Str(text), start, end);
            }
        }
        Ok(())
    }

    fn note_string(&mut self, start: usize, end: usize) {
        if start > 0 && start == self.atom_end {
            self.misquoted = self.misquoted.or(self.long_string);
        }
        if self.text[start..end].contains('\n') {
            self.long_string = Some(start);
        }
    }

    fn open(&mut self, kind: FrameKind, start: usize) -> Result<(), Stop> {
        if self.frames.len() == NESTING_LIMIT {
            self.errors.push(error::too_deep(self.span(start, start + 1)));
            return Err(Stop);
        }
        self.frames.push(Frame { kind, start, base: self.items.len() });
        Ok(())
    }

    // Like `push_list` a function of its own, so that the kind is constant where the form is written: a form built
    // generically and moved stalls on its own parts on their way to memory.
    #[inline(never)]
    fn push_name(&mut self, kind: impl Fn(Ustr) -> FormKind, name: &'t str, start: usize, end: usize) {
        let name = self.names.intern(name);
        self.push(kind(name), start, end);
    }

    /// Adds a finished form, and finishes prefixes that awaited only it.
    #[inline]
    fn push(&mut self, kind: FormKind, start: usize, end: usize) {
        match self.frames.last() {
            None | Some(Frame { kind: FrameKind::Bracket(_), .. }) => {
                self.items.push(Form { kind, span: self.span(start, end) });
            }
            Some(_) => self.push_wrapped(kind, start, end),
        }
    }

    #[cold]
    fn push_wrapped(&mut self, mut kind: FormKind, mut start: usize, end: usize) {
        while let Some(frame) = self.frames.last() {
            match frame.kind {
                FrameKind::Bracket(_) => break,
                FrameKind::Discard => {
                    self.frames.pop();
                    return;
                }
                FrameKind::Prefix(Prefix::Function) => {
                    let mark = self.span(frame.start, frame.start + 1);
                    let span = self.span(frame.start, end);
                    start = frame.start;
                    kind = shorthand::function(kind, mark, span).unwrap_or_else(|beyond| {
                        self.errors.push(error::argument_number(beyond));
                        FormKind::Nil
                    });
                    self.frames.pop();
                }
                FrameKind::Prefix(prefix) => {
                    let name = self.prefixes[prefix as usize];
                    let head = Form {
                        kind: FormKind::Symbol(name),
                        span: self.span(frame.start, frame.start + prefix.text().len()),
                    };
                    let item = Form { kind, span: self.span(start, end) };
                    start = frame.start;
                    kind = FormKind::List(Bracket::Round, vec![head, item]);
                    self.frames.pop();
                }
            }
        }
        self.items.push(Form { kind, span: self.span(start, end) });
    }

    /// Drops prefixes that await a form where none can follow.
    fn close_prefixes(&mut self, end: usize) {
        while let Some(&Frame { kind, start, .. }) = self.frames.last() {
            let text = match kind {
                FrameKind::Bracket(_) => return,
                FrameKind::Prefix(prefix) => prefix.text(),
                FrameKind::Discard => "#_",
            };
            self.errors.push(error::nothing_follows(text, self.span(start, start + text.len())));
            self.frames.pop();
            if let FrameKind::Prefix(_) = kind {
                // A placeholder, so that a dictionary still has its pairs.
                self.push(FormKind::Nil, start, end);
                return self.close_prefixes(end);
            }
        }
    }

    fn close(&mut self, byte: u8, at: usize) {
        self.close_prefixes(at);
        let opener = opening(byte);
        let Some((innermost, innermost_at)) = self.frames.last().and_then(Frame::bracket) else {
            if !self.unbalanced {
                self.errors.push(error::closes_nothing(byte, self.span(at, at + 1)));
            }
            self.unbalanced = true;
            return;
        };
        if innermost != opener {
            let outer = self.frames.iter().rposition(|f| f.bracket().is_some_and(|(b, _)| b == opener));
            if !self.unbalanced {
                let outer = outer.map(|i| self.frames[i].start);
                let diagnostic = error::mismatch(
                    (innermost, self.span(innermost_at, innermost_at + 1)),
                    (byte, self.span(at, at + 1)),
                    outer.map(|start| self.span(start, start + 1)),
                );
                self.errors.push(diagnostic);
            }
            self.unbalanced = true;
            if let Some(outer) = outer {
                // All frames within the bracket that this one closes are finished.
                let base = self.frames[outer].base;
                self.frames.truncate(outer + 1);
                self.items.truncate(base);
            }
        }
        self.finish(at + 1);
    }

    /// Makes a form of the innermost bracket.
    fn finish(&mut self, end: usize) {
        let Some(Frame { kind: FrameKind::Bracket(byte), start, base }) = self.frames.pop() else { return };
        if byte == b'{' {
            let kind = self.dict(base, start, end);
            self.push(kind, start, end);
        } else {
            let bracket = if byte == b'(' { Bracket::Round } else { Bracket::Square };
            self.push_list(bracket, base, start, end);
        }
    }

    #[inline(never)]
    fn push_list(&mut self, bracket: Bracket, base: usize, start: usize, end: usize) {
        let items = self.items.split_off(base);
        self.push(FormKind::List(bracket, items), start, end);
    }

    fn dict(&mut self, base: usize, start: usize, end: usize) -> FormKind {
        if !pairs_up(&self.items[base..]) {
            let casts = with_casts(&self.items[base..]);
            if pairs_up(&casts) {
                self.items.truncate(base);
                self.items.extend(casts);
            }
        }
        if (self.items.len() - base) % 2 == 1 {
            let key = self.items.pop();
            if let (Some(key), false) = (key, self.unbalanced) {
                self.errors.push(error::odd_dict(&key, self.span(start, end)));
            }
        }
        let mut entries = Vec::with_capacity((self.items.len() - base) / 2);
        let mut items = self.items.drain(base..);
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            entries.push((key, value));
        }
        drop(items);
        self.check_keys(&entries);
        FormKind::Dict(entries)
    }

    fn check_keys(&mut self, entries: &[(Form, Form)]) {
        let mut seen: HashMap<Key<'_>, Span> = HashMap::new();
        // Most dictionaries are small; there comparing is faster than hashing.
        let small = entries.len() <= 8;
        for (i, (form, _)) in entries.iter().enumerate() {
            let Some(key) = Key::of(form) else {
                if !is_unquote(form) && self.errors.len() < ERROR_LIMIT {
                    self.errors.push(error::not_a_key(form));
                }
                continue;
            };
            let first = if small {
                entries[..i].iter().find(|(k, _)| Key::of(k) == Some(key)).map(|(k, _)| k.span)
            } else {
                seen.insert(key, form.span)
            };
            if let Some(first) = first
                && self.errors.len() < ERROR_LIMIT
            {
                self.errors.push(error::duplicate_key(form, first));
            }
        }
    }
}

impl Frame {
    /// The opening bracket and its offset, if it is one.
    fn bracket(&self) -> Option<(u8, usize)> {
        if let FrameKind::Bracket(byte) = self.kind { Some((byte, self.start)) } else { None }
    }
}

/// Identity of a dictionary key: `:k` and `"k"` are the same, the symbol `k` is not.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Key<'f> {
    Name(&'f str),
    Symbol(Ustr),
}

impl<'f> Key<'f> {
    fn of(form: &'f Form) -> Option<Self> {
        match &form.kind {
            FormKind::Keyword(name) => Some(Key::Name(name.as_str())),
            FormKind::Str(text) => Some(Key::Name(text)),
            FormKind::Symbol(name) => Some(Key::Symbol(*name)),
            _ => None,
        }
    }
}

/// True if the forms are alternating keys and values.
fn pairs_up(items: &[Form]) -> bool {
    items.len().is_multiple_of(2)
        && items.iter().step_by(2).all(|key| Key::of(key).is_some() || is_unquote(key))
}

/// The forms of a dictionary with each vector literal and the dtype after it as one value, as in a body.
fn with_casts(items: &[Form]) -> Vec<Form> {
    let mut out: Vec<Form> = Vec::with_capacity(items.len());
    for form in items {
        let dtype = matches!(&form.kind, FormKind::Keyword(name) if DType::parse(name).is_some());
        match out.last_mut() {
            Some(vector) if dtype && vector.items(Bracket::Square).is_some() => {
                let span = vector.span.to(form.span);
                let head = Form { kind: FormKind::Symbol(Ustr::from("do")), span };
                let items = vec![head, vector.clone(), form.clone()];
                *vector = Form { kind: FormKind::List(Bracket::Round, items), span };
            }
            _ => out.push(form.clone()),
        }
    }
    out
}

/// In a macro template, a key may be filled in later.
fn is_unquote(form: &Form) -> bool {
    form.items(Bracket::Round)
        .and_then(<[Form]>::first)
        .is_some_and(|head| head.is_symbol(Prefix::Unquote.name()))
}

fn opening(close: u8) -> u8 {
    match close {
        b')' => b'(',
        b']' => b'[',
        _ => b'{',
    }
}
