//! Examples in docstrings: `code ;=> value`, one per line.

use sheaf_syntax::{Bracket, Form, FormKind, SpecialForm};

/// The text of a file, blanked except for the examples in docstrings, so that these keep their offsets; `None` if there
/// are no examples.
pub(super) fn examples(text: &str, forms: &[Form]) -> Option<String> {
    let mut kept: Vec<u8> = text.bytes().map(|b| if b == b'\n' { b } else { b' ' }).collect();
    let mut found = false;
    for doc in forms.iter().filter_map(documentation) {
        // Without the quotes.
        let (start, end) = (doc.span.start as usize + 1, doc.span.end as usize - 1);
        let mut from = start;
        for line in text[start..end].split_inclusive('\n') {
            if line.contains(super::case::MARK) {
                found = true;
                copy(line.as_bytes(), &mut kept[from..from + line.len()]);
            }
            from += line.len();
        }
    }
    // Lines were copied whole, and each other byte is a blank.
    found.then(|| String::from_utf8_lossy(&kept).into_owned())
}

/// A line of a string as code. The place of a backslash before a quote is a blank, outside of the string that the quote begins
/// or ends.
fn copy(line: &[u8], kept: &mut [u8]) {
    let mut code = Vec::with_capacity(line.len());
    let (mut in_string, mut escaped, mut owed) = (false, false, 0);
    let mut bytes = line.iter().copied();
    while let Some(byte) = bytes.next() {
        let next = if byte == b'\\' { bytes.next() } else { None };
        match next {
            Some(b'"') if !in_string => {
                code.extend(b" \"");
                in_string = true;
            }
            Some(b'"') if !escaped => {
                code.push(b'"');
                code.resize(code.len() + 1 + owed, b' ');
                (in_string, owed) = (false, 0);
            }
            Some(byte) if in_string => {
                code.push(byte);
                owed += 1;
            }
            Some(byte) => code.extend([b' ', byte]),
            None => code.push(byte),
        }
        // A backslash of the code itself keeps the next quote in its string.
        escaped = next == Some(b'\\') && !escaped;
    }
    code.resize(line.len(), b' ');
    kept.copy_from_slice(&code);
}

fn documentation(form: &Form) -> Option<&Form> {
    let items = form.items(Bracket::Round)?;
    let [head, rest @ ..] = items else { return None };
    if !matches!(head.special(), Some(SpecialForm::Defn | SpecialForm::Defmacro)) {
        return None;
    }
    rest.iter().take(3).find(|item| matches!(item.kind, FormKind::Str(_)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_in_examples_have_no_blanks_more() {
        let code = |line: &str| {
            let mut kept = vec![0; line.len()];
            copy(line.as_bytes(), &mut kept);
            String::from_utf8(kept).unwrap()
        };
        assert_eq!(code("(f 1) ;=> 2\n"), "(f 1) ;=> 2\n");
        assert_eq!(code(r#"(f \"ab\" '[\"c\"]) ;=> \"d\""#), r#"(f  "ab"  '[ "c" ]) ;=>  "d" "#);
        // A tab, a quote and a backslash within a string of the code.
        assert_eq!(code(r#"(f \"a\\tb\") 1"#), r#"(f  "a\tb"  ) 1"#);
        assert_eq!(code(r#"(f \"a\\\"b\") 1"#), r#"(f  "a\"b"   ) 1"#);
        assert_eq!(code(r#"(f \"a\\\\\") 1"#), r#"(f  "a\\"   ) 1"#);
        assert_eq!(code(r#"(f \"a"#), r#"(f  "a"#);
    }
}
