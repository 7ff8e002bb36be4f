//! Source files and places in them.

use std::num::NonZeroU32;
use std::ops::Range;

use ustr::Ustr;

/// A file of [`Sources`], or the code that one use of a macro made of a part of a file.
///
/// Its number and one, so that a place that may be missing is as large as a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(NonZeroU32);

impl SourceId {
    /// Set in the numbers of sources that come with the language.
    const LIBRARY: u32 = 1 << 31;

    /// Set in the numbers of expansions.
    const EXPANSION: u32 = 1 << 30;

    /// The source of that number: sources are numbered in the order in which they are added.
    pub const fn new(number: u32) -> SourceId {
        SourceId(NonZeroU32::MIN.saturating_add(number))
    }

    fn with(self, flags: u32) -> SourceId {
        SourceId(self.0 | flags)
    }

    fn has(self, flag: u32) -> bool {
        self.0.get() & flag != 0
    }

    /// Whether the source comes with the language: messages prefer the user's places.
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
    /// From the start of `self` to the end of `other`; `self` if they are of different sources, as where a macro put
    /// code of its own and of its use together.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        if self.source == other.source { Span { end: other.end, ..self } } else { self }
    }

    /// The range of `text` that it covers, widened to whole characters and cut at the end of the text: always a range
    /// that `text` can be sliced by.
    pub fn within(self, text: &str) -> Range<usize> {
        let boundary = |place: &usize| text.is_char_boundary(*place);
        let start = (0..=text.len().min(self.start as usize)).rev().find(boundary).unwrap_or(0);
        let end = (text.len().min(self.end as usize)..text.len()).find(boundary).unwrap_or(text.len());
        start..end.max(start)
    }
}

/// Every text that has been read, by number: what messages quote.
#[derive(Clone, Debug, Default)]
pub struct Sources {
    files: Vec<(String, String)>,
    expansions: Vec<Expansion>,
}

/// What tells the code that one use of a macro made from all else: places in it are places in the macro's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expansion {
    /// The macro.
    pub name: Ustr,
    /// The file, or the expansion, in which the macro has this code.
    pub template: SourceId,
    /// Where the macro is used.
    pub used: Span,
}

impl Sources {
    /// Adds a text under the name that messages show.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.files.push((name.into(), text.into()));
        SourceId::new(self.files.len() as u32 - 1)
    }

    /// Adds a text that comes with the language.
    pub fn add_library(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.add(name, text).with(SourceId::LIBRARY)
    }

    /// Adds the code that the use of a macro makes of a text.
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

    /// The file that a source is, or is a part of.
    pub fn file(&self, mut id: SourceId) -> SourceId {
        while let Some(expansion) = self.expansion(id) {
            id = expansion.template;
        }
        id
    }

    /// The place in the program that a place is, or that led to it by the use of macros.
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
