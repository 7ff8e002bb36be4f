//! Lossless syntax tree: forms as written, comments, dropped forms, and line breaks.
//!
//! Built from the reader's tokens; between two tokens are white space and comments.

use unicode_width::UnicodeWidthStr as _;

use crate::{Lexeme, Lexer, Token};

/// A comment between two tokens.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comment<'t> {
    /// The text from `;` on, without trailing blanks.
    pub text: &'t str,
    /// Line breaks before it; 0 if it follows code on the same line.
    pub lines: usize,
    /// Blanks before it.
    pub blanks: usize,
}

/// White space and comments between two tokens.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gap<'t> {
    pub comments: Vec<Comment<'t>>,
    /// Line breaks after the last comment, or in all if there is none.
    pub lines: usize,
}

/// A form as it is written.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// The gap before it.
    pub gap: Gap<'t>,
    pub kind: Kind<'t>,
    /// The width up to its first line break, or its whole width.
    pub width: usize,
    /// True if the author wrote a line break inside.
    pub broken: bool,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    /// An atom or a string.
    Text(&'t str),
    /// An opening bracket, its items, and the gap before the closing bracket.
    Bracket { open: u8, items: Vec<Node<'t>>, end: Gap<'t> },
    /// A quote character or `#_` and its operand: perhaps dropped forms, then a form.
    Prefix { text: &'t str, items: Vec<Node<'t>> },
}

/// All forms of a text, and the gap after the last.
#[derive(Debug)]
pub(super) struct Tree<'t> {
    pub items: Vec<Node<'t>>,
    pub end: Gap<'t>,
}

impl Gap<'_> {
    /// `text` is white space and comments.
    fn parse(text: &str) -> Gap<'_> {
        let mut gap = Gap::default();
        let mut rest = text;
        loop {
            let (space, comment) = rest.split_at(rest.find(';').unwrap_or(rest.len()));
            let lines = space.bytes().filter(|b| *b == b'\n').count();
            if comment.is_empty() {
                gap.lines = lines;
                return gap;
            }
            let (text, after) = comment.split_at(comment.find('\n').unwrap_or(comment.len()));
            gap.comments.push(Comment { text: text.trim_end(), lines, blanks: space.len() });
            rest = after;
        }
    }

    /// True if the line must end here.
    pub fn breaks(&self) -> bool {
        self.lines > 0 || !self.comments.is_empty()
    }
}

impl<'t> Node<'t> {
    /// True if the reader drops it.
    pub fn dropped(&self) -> bool {
        matches!(self.kind, Kind::Prefix { text: "#_", .. })
    }

    /// Its text, if it is an atom or a string.
    pub fn text(&self) -> Option<&'t str> {
        if let Kind::Text(text) = self.kind { Some(text) } else { None }
    }

    /// True if it is a keyword.
    pub fn is_keyword(&self) -> bool {
        self.text().is_some_and(|text| text.starts_with(':'))
    }

    /// True if it is a list in this kind of bracket.
    pub fn opens_with(&self, bracket: u8) -> bool {
        matches!(self.kind, Kind::Bracket { open, .. } if open == bracket)
    }

    fn new(gap: Gap<'t>, kind: Kind<'t>) -> Node<'t> {
        let (width, broken) = match &kind {
            Kind::Text(text) => (text.split('\n').next().unwrap_or_default().width(), text.contains('\n')),
            Kind::Bracket { items, end, .. } => {
                let (width, broken) =
                    row(1, items, |i, gap| if i == 0 { !gap.comments.is_empty() } else { gap.breaks() });
                let broken = broken || !end.comments.is_empty();
                (width + usize::from(!broken), broken)
            }
            Kind::Prefix { text, items } => row(text.len(), items, |_, gap| !gap.comments.is_empty()),
        };
        Node { gap, kind, width, broken }
    }
}

/// The width of `items` in a row after `start` columns up to the first line break, and true if there is one.
fn row(start: usize, items: &[Node<'_>], breaks: impl Fn(usize, &Gap<'_>) -> bool) -> (usize, bool) {
    let mut width = start;
    for (i, item) in items.iter().enumerate() {
        if breaks(i, &item.gap) {
            return (width, true);
        }
        width += usize::from(i > 0) + item.width;
        if item.broken {
            return (width, true);
        }
    }
    (width, false)
}

/// A pending form: a bracket or prefix that awaits items.
struct Frame<'t> {
    gap: Gap<'t>,
    opener: Opener<'t>,
    items: Vec<Node<'t>>,
}

enum Opener<'t> {
    Bracket(u8),
    Prefix(&'t str),
}

impl<'t> Tree<'t> {
    /// The tree of a text that parses without an error.
    pub fn parse(text: &'t str) -> Tree<'t> {
        let mut frames: Vec<Frame<'t>> = Vec::new();
        let mut top = Vec::new();
        let mut place = 0;
        for Lexeme { token, start, end } in Lexer::new(text) {
            let gap = Gap::parse(&text[place..start]);
            place = end;
            match token {
                Token::Open(open) => {
                    frames.push(Frame { gap, opener: Opener::Bracket(open), items: Vec::new() });
                }
                Token::Prefix(_) | Token::Discard => {
                    frames.push(Frame { gap, opener: Opener::Prefix(&text[start..end]), items: Vec::new() });
                }
                Token::Close(_) => {
                    if let Some(Frame { gap: before, opener: Opener::Bracket(open), items }) = frames.pop() {
                        let node = Node::new(before, Kind::Bracket { open, items, end: gap });
                        finish(node, &mut frames, &mut top);
                    }
                }
                Token::Str { .. } | Token::Atom => {
                    finish(Node::new(gap, Kind::Text(&text[start..end])), &mut frames, &mut top);
                }
            }
        }
        Tree { items: top, end: Gap::parse(&text[place..]) }
    }
}

/// Adds a finished node to the innermost frame, and finishes prefixes that awaited only it.
fn finish<'t>(mut node: Node<'t>, frames: &mut Vec<Frame<'t>>, top: &mut Vec<Node<'t>>) {
    loop {
        let dropped = node.dropped();
        match frames.last_mut() {
            None => return top.push(node),
            Some(frame) => frame.items.push(node),
        }
        if dropped {
            // The frame awaits more forms.
            return;
        }
        match frames.pop() {
            Some(Frame { gap, opener: Opener::Prefix(text), items }) => {
                node = Node::new(gap, Kind::Prefix { text, items });
            }
            other => return frames.extend(other),
        }
    }
}
