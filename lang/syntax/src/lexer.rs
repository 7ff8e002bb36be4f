//! The lexer: bytes to tokens.

use super::prefix::Prefix;

/// A token; its text lies between its two offsets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Token {
    /// One of `( [ {`.
    Open(u8),
    /// One of `) ] }`.
    Close(u8),
    /// A character that wraps the next form.
    Prefix(Prefix),
    /// `#_`
    Discard,
    /// A string with its quotes.
    Str {
        /// True if it has a backslash.
        escaped: bool,
        /// True if the closing quote is there.
        closed: bool,
    },
    /// A number, keyword, constant, range or symbol.
    Atom,
}

/// A token with the offsets of its first byte and of the byte after its last.
#[derive(Clone, Copy, Debug)]
pub struct Lexeme {
    /// The token.
    pub token: Token,
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Part of an atom.
    Atom,
    /// White space, the comma included.
    Space,
    Open,
    Close,
    Quote,
    Comment,
    /// First byte of a character beyond ASCII, which may be white space.
    Wide,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Atom; 256];
    let mut byte = 0;
    while byte < 256 {
        classes[byte] = match byte as u8 {
            b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c | b',' => Class::Space,
            b'(' | b'[' | b'{' => Class::Open,
            b')' | b']' | b'}' => Class::Close,
            b'"' => Class::Quote,
            b';' => Class::Comment,
            0x80.. => Class::Wide,
            _ => Class::Atom,
        };
        byte += 1;
    }
    classes
};

fn class(byte: u8) -> Class {
    CLASSES[byte as usize]
}

/// Scans a text once.
pub struct Lexer<'t> {
    text: &'t str,
    place: usize,
}

impl<'t> Lexer<'t> {
    /// The tokens of a text.
    pub fn new(text: &'t str) -> Self {
        Lexer { text, place: 0 }
    }

    /// True if the character beyond ASCII at `place` is white space, and its length. The byte order mark and the zero
    /// width space count as such: they are invisible, so they cannot be part of a name.
    fn wide(&self, place: usize) -> (bool, usize) {
        let space = |c: char| c.is_whitespace() || matches!(c, '\u{feff}' | '\u{200b}');
        self.text[place..].chars().next().map_or((false, 1), |c| (space(c), c.len_utf8()))
    }

    fn skip_space(&mut self) {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.place) {
            match class(byte) {
                Class::Space => self.place += 1,
                Class::Comment => {
                    self.place = bytes[self.place..]
                        .iter()
                        .position(|b| *b == b'\n')
                        .map_or(bytes.len(), |n| self.place + n);
                }
                Class::Wide => match self.wide(self.place) {
                    (true, length) => self.place += length,
                    _ => return,
                },
                _ => return,
            }
        }
    }

    /// The end of the atom that starts at `place`.
    fn atom_end(&self, mut place: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(place) {
            match class(byte) {
                Class::Atom => place += 1,
                Class::Wide => match self.wide(place) {
                    (false, length) => place += length,
                    _ => break,
                },
                _ => break,
            }
        }
        place
    }

    fn string(&self, start: usize) -> (Token, usize) {
        let bytes = self.text.as_bytes();
        let mut escaped = false;
        let mut place = start + 1;
        while let Some(&byte) = bytes.get(place) {
            match byte {
                b'"' => return (Token::Str { escaped, closed: true }, place + 1),
                b'\\' => {
                    escaped = true;
                    place += 2;
                }
                _ => place += 1,
            }
        }
        (Token::Str { escaped, closed: false }, bytes.len())
    }
}

impl Iterator for Lexer<'_> {
    type Item = Lexeme;

    fn next(&mut self) -> Option<Lexeme> {
        self.skip_space();
        let bytes = self.text.as_bytes();
        let start = self.place;
        let byte = *bytes.get(start)?;
        let (token, end) = match class(byte) {
            Class::Open => (Token::Open(byte), start + 1),
            Class::Close => (Token::Close(byte), start + 1),
            Class::Quote => self.string(start),
            _ => match (byte, bytes.get(start + 1)) {
                (b'\'', _) => (Token::Prefix(Prefix::Quote), start + 1),
                (b'`', _) => (Token::Prefix(Prefix::Quasiquote), start + 1),
                (b'~', Some(b'@')) => (Token::Prefix(Prefix::UnquoteSplicing), start + 2),
                (b'~', _) => (Token::Prefix(Prefix::Unquote), start + 1),
                (b'#', Some(b'_')) => (Token::Discard, start + 2),
                (b'#', Some(b'(')) => (Token::Prefix(Prefix::Function), start + 1),
                _ => (Token::Atom, self.atom_end(start)),
            },
        };
        self.place = end;
        Some(Lexeme { token, start, end })
    }
}
