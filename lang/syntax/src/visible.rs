//! Escaping of untrusted text for a terminal.
//!
//! Sources, names of files, packages and servers may hold escape sequences, which move the cursor, hide lines or set
//! titles, and bidirectional controls, which make a line read as a different program. Each such character becomes one
//! other character, so that columns are preserved.

use std::borrow::Cow;

/// The escaped text. Line ends, tabs and printable characters stay.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_obeyed) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(shown(text).map(|(_, c)| c).collect())
}

/// Position in [`visible`] text of the byte `offset` of the text.
pub fn moved(text: &str, offset: usize) -> usize {
    shown(text).take_while(|(at, _)| *at < offset).map(|(_, c)| c.len_utf8()).sum()
}

/// The escaped characters, each with the offset of its original.
fn shown(text: &str) -> impl Iterator<Item = (usize, char)> + '_ {
    text.char_indices().map(|(at, c)| match c {
        '\r' if text[at..].starts_with("\r\n") => (at, c),
        // Unicode's symbols for control characters.
        '\0'..=' ' if is_obeyed(c) => (at, char::from_u32(0x2400 + c as u32).unwrap_or(REPLACEMENT)),
        '\u{7f}' => (at, '\u{2421}'),
        c if is_obeyed(c) => (at, REPLACEMENT),
        c => (at, c),
    })
}

const REPLACEMENT: char = char::REPLACEMENT_CHARACTER;

/// True if a terminal may obey the character instead of showing it.
fn is_obeyed(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        // Line and paragraph separators, which editors do not break at; bidirectional marks, embeddings, overrides and
        // isolates.
        '\u{2028}'..='\u{202e}' | '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_stays() {
        for text in ["", "(+ 1 2)\n\t; été, שלום, مرحبا, 你好, 👩‍💻, n̈\n", "a\r\nb\r\n"]
        {
            assert!(visible(text) == text, "{text:?}");
        }
    }

    #[test]
    fn what_is_obeyed_is_shown() {
        assert_eq!(visible("a\u{1b}[2Jb\u{7}\u{7f}\rc\u{9b}1m"), "a␛[2Jb␇␡␍c\u{fffd}1m");
        assert_eq!(visible("user\u{202e} nimda\u{2066}x\u{2028}"), "user\u{fffd} nimda\u{fffd}x\u{fffd}");
    }

    #[test]
    fn each_character_stays_one_and_places_move_with_it() {
        let text = "é\u{1b}\u{202e}x\r\ny\rz";
        let seen = visible(text);
        assert_eq!(seen.chars().count(), text.chars().count());
        for (place, (at, _)) in text.char_indices().enumerate() {
            let there = seen.char_indices().nth(place).map(|(at, _)| at);
            assert_eq!(Some(moved(text, at)), there, "{at}");
        }
        assert_eq!(moved(text, text.len()), seen.len());
    }
}
