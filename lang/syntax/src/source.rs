//! Source files and spans.

use std::num::NonZeroU32;
use std::ops::Range;

use ustr::Ustr;

/// A file of [`Sources`], or an expansion: the code that one macro use made of a part of a file.
///
/// Its number plus one, so that an optional span is as large as a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(NonZeroU32);

impl SourceId {
    /// Flag in the number of a library source.
    const LIBRARY: u32 = 1 << 31;

    /// Flag in the number of an expansion.
    const EXPANSION: u32 = 1 << 30;

    /// The source of that number, in the order of addition.
    pub const fn new(number: u32) -> SourceId {
        SourceId(NonZeroU32::MIN.saturating_add(number))
    }

    fn with(self, flags: u32) -> SourceId {
        SourceId(self.0 | flags)
    }

    fn has(self, flag: u32) -> bool {
        self.0.get() & flag != 0
    }

    /// True for library sources: messages prefer the user's spans.
    pub fn is_library(self) -> bool {
        self.has(Self::LIBRARY)
    }

    fn index(self) -> usize {
        (self.0.get() & !(Self::LIBRARY | Self::EXPANSION)) as usize - 1
    }
}

/// A range of bytes of one source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// The file.
    pub source: SourceId,
    /// First byte.
    pub start: u32,
    /// One past the last byte.
    pub end: u32,
}

impl Span {
    /// From the start of `self` to the end of `other`; `self` if their sources differ, as in code that a macro combined
    /// from its template and its use.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        if self.source == other.source { Span { end: other.end, ..self } } else { self }
    }

    /// The byte range in `text`, extended to whole characters and cut at the end of the text: always a valid slice of
    /// `text`.
    pub fn within(self, text: &str) -> Range<usize> {
        let boundary = |place: &usize| text.is_char_boundary(*place);
        let start = (0..=text.len().min(self.start as usize)).rev().find(boundary).unwrap_or(0);
        let end = (text.len().min(self.end as usize)..text.len()).find(boundary).unwrap_or(text.len());
        start..end.max(start)
    }
}

/// All texts read, by number: messages quote them.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(String, String)>,
    expansions: Vec<Expansion>,
}

/// One use of a macro: spans in the code it made are spans in the macro's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The macro.
    pub name: Ustr,
    /// The file, or the expansion, that has this code of the macro.
    pub template: SourceId,
    /// Span of the use.
    pub used: Span,
}

impl Sources {
    /// Adds a text under the name shown in messages.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.files.push((name.into(), text.into()));
        SourceId::new(self.files.len() as u32 - 1)
    }

    /// Adds a library text.
    pub fn add_library(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.add(name, text).with(SourceId::LIBRARY)
    }

    /// Adds the code that a macro use makes of a text.
    pub fn expand(&mut self, expansion: Expansion) -> SourceId {
        if self.expansions.last() != Some(&expansion) {
            self.expansions.push(expansion);
        }
        let library = if expansion.template.is_library() { SourceId::LIBRARY } else { 0 };
        SourceId::new(self.expansions.len() as u32 - 1).with(SourceId::EXPANSION | library)
    }

    /// The expansion of that number, if it is one.
    pub fn expansion(&self, id: SourceId) -> Option<&Expansion> {
        if !id.has(SourceId::EXPANSION) {
            return None;
        }
        self.expansions.get(id.index())
    }

    /// The file of a source.
    pub fn file(&self, mut id: SourceId) -> SourceId {
        while let Some(expansion) = self.expansion(id) {
            id = expansion.template;
        }
        id
    }

    /// The span in the program: the span itself, or the macro use behind it.
    pub fn used(&self, mut span: Span) -> Span {
        while let Some(expansion) = self.expansion(span.source) {
            span = expansion.used;
        }
        span
    }

    /// The name of a source.
    pub fn name(&self, id: SourceId) -> &str {
        &self.files[self.file(id).index()].0
    }

    /// The text of a source.
    pub fn text(&self, id: SourceId) -> &str {
        &self.files[self.file(id).index()].1
    }

    /// The name and text of a source, if there is one of that number.
    pub fn get(&self, id: SourceId) -> Option<(&str, &str)> {
        let id = self.file(id);
        if id.has(SourceId::EXPANSION) {
            return None;
        }
        self.files.get(id.index()).map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// All sources, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(name, text)| (name.as_str(), text.as_str()))
    }

    /// The line and column of a span's start, both counted from 1; columns count characters.
    pub fn position(&self, span: Span) -> (usize, usize) {
        let text = self.text(span.source);
        let before = &text[..span.within(text).start];
        let line = before.bytes().filter(|b| *b == b'\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
        (line, column)
    }
}
