//! Source files and places in them.

use std::ops::Range;

/// A file of [`Sources`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SourceId(pub u32);

impl SourceId {
    /// Set in the numbers of sources that come with the language.
    const LIBRARY: u32 = 1 << 31;

    /// Whether the source comes with the language: messages prefer the user's places.
    pub fn is_library(self) -> bool {
        self.0 & Self::LIBRARY != 0
    }

    fn index(self) -> usize {
        (self.0 & !Self::LIBRARY) as usize
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
    /// From the start of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { end: other.end, ..self }
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
}

impl Sources {
    /// Adds a text under the name that messages show.
    pub fn add(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        self.files.push((name.into(), text.into()));
        SourceId(self.files.len() as u32 - 1)
    }

    /// Adds a text that comes with the language.
    pub fn add_library(&mut self, name: impl Into<String>, text: impl Into<String>) -> SourceId {
        SourceId(self.add(name, text).0 | SourceId::LIBRARY)
    }

    /// The name of a source.
    pub fn name(&self, id: SourceId) -> &str {
        &self.files[id.index()].0
    }

    /// The text of a source.
    pub fn text(&self, id: SourceId) -> &str {
        &self.files[id.index()].1
    }

    /// The name and text of a source, if there is one of that number.
    pub fn get(&self, id: SourceId) -> Option<(&str, &str)> {
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
