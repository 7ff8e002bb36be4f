//! A text with all that it contains: forms as they are written, comments, dropped forms, and where lines end.
//!
//! The reader's tokens make it; what lies between two tokens is white space and comments.

use unicode_width::UnicodeWidthStr as _;

use crate::syntax::{Lexeme, Lexer, Token};

/// A comment between two tokens.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Comment<'t> {
    /// From `;` on, without blanks at its end.
    pub text: &'t str,
    /// Line ends between it and what comes before it; without any it follows on the same line.
    pub lines: usize,
    /// Blanks before it.
    pub blanks: usize,
}

/// What lies between two tokens.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Gap<'t> {
    pub comments: Vec<Comment<'t>>,
    /// Line ends after the last comment, or in all if there is none.
    pub lines: usize,
}

/// A form as it is written.
#[derive(Debug)]
pub(super) struct Node<'t> {
    /// What lies before it.
    pub gap: Gap<'t>,
    pub kind: Kind<'t>,
    /// The width up to its first line end, or its whole width.
    pub width: usize,
    /// Whether it has a line end inside, as the author wrote it.
    pub broken: bool,
}

#[derive(Debug)]
pub(super) enum Kind<'t> {
    /// An atom or a string.
    Text(&'t str),
    /// An opening bracket, what follows, and what lies before the closing bracket.
    Bracket { open: u8, items: Vec<Node<'t>>, end: Gap<'t> },
    /// A quote character or `#_` and what it stands before: perhaps dropped forms, then a form.
    Prefix { text: &'t str, items: Vec<Node<'t>> },
}

/// All forms of a text, and what lies after the last.
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

    /// Whether the line must end here.
    pub fn breaks(&self) -> bool {
        self.lines > 0 || !self.comments.is_empty()
    }
}

impl<'t> Node<'t> {
    /// Whether the reader drops it.
    pub fn dropped(&self) -> bool {
        matches!(self.kind, Kind::Prefix { text: "#_", .. })
    }

    /// Its text, if it is an atom or a string.
    pub fn text(&self) -> Option<&'t str> {
        if let Kind::Text(text) = self.kind { Some(text) } else { None }
    }

    /// Whether it is a keyword.
    pub fn is_keyword(&self) -> bool {
        self.text().is_some_and(|text| text.starts_with(':'))
    }

    /// Whether it is a list in this kind of bracket.
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

/// The width of `items` in a row after `start` columns up to the first line end, and whether there is one.
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

/// Something that waits for forms.
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
    /// The tree of a text that the reader reads without an error.
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

/// Gives a finished node to what waits for it, and finishes what waited for just that.
fn finish<'t>(mut node: Node<'t>, frames: &mut Vec<Frame<'t>>, top: &mut Vec<Node<'t>>) {
    loop {
        let dropped = node.dropped();
        match frames.last_mut() {
            None => return top.push(node),
            Some(frame) => frame.items.push(node),
        }
        if dropped {
            // What waits for a form still does.
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
