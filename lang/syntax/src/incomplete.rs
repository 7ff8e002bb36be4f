//! Detection of incomplete input, for the REPL.

use super::lexer::{Lexer, Token};

/// An unclosed bracket, or a prefix without its form.
#[derive(PartialEq)]
enum Open {
    Bracket(u8),
    Prefix,
    Discard,
}

/// True if more input could complete the text: a bracket or a string is open at its end, or a prefix lacks its form. A
/// text with mismatched brackets is not incomplete but wrong.
pub fn is_incomplete(text: &str) -> bool {
    let mut open = Vec::new();
    for lexeme in Lexer::new(text) {
        match lexeme.token {
            Token::Open(byte) => open.push(Open::Bracket(byte)),
            Token::Prefix(_) => open.push(Open::Prefix),
            Token::Discard => open.push(Open::Discard),
            Token::Str { closed: false, .. } => return true,
            Token::Close(byte) => {
                let opener = match byte {
                    b')' => b'(',
                    b']' => b'[',
                    _ => b'{',
                };
                if open.pop() != Some(Open::Bracket(opener)) {
                    return false;
                }
                given(&mut open);
            }
            Token::Str { .. } | Token::Atom => given(&mut open),
        }
    }
    !open.is_empty()
}

/// Closes the prefixes that awaited a form.
fn given(open: &mut Vec<Open>) {
    while let Some(Open::Prefix | Open::Discard) = open.last() {
        if open.pop() == Some(Open::Discard) {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_incomplete;

    #[test]
    fn what_is_open_goes_on() {
        for text in [
            "(", "(f [1", "{:a (g) ", "\"text", "\"a\\\"", "'", "#_", "#(f %", "'#_a", "#_ #_ a", "(f ; )",
            "~@",
        ] {
            assert!(is_incomplete(text), "{text}");
        }
    }

    #[test]
    fn what_is_closed_or_wrong_does_not() {
        for text in [
            "",
            "x",
            "(f [1])",
            "(f]",
            "(f))",
            ")",
            "(')",
            "'x",
            "#_ a",
            "#_ #_ a b",
            "\"a\"",
            "; (",
            "(f 1a)",
        ] {
            assert!(!is_incomplete(text), "{text}");
        }
    }
}
