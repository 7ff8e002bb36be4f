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

/// A line of a string as code: a blank and a quote for an escaped quote.
fn copy(line: &[u8], kept: &mut [u8]) {
    kept.copy_from_slice(line);
    let mut i = 0;
    while i + 1 < kept.len() {
        if kept[i] == b'\\' {
            kept[i] = b' ';
            i += 1;
        }
        i += 1;
    }
}

fn documentation(form: &Form) -> Option<&Form> {
    let items = form.items(Bracket::Round)?;
    let [head, rest @ ..] = items else { return None };
    if !matches!(head.special(), Some(SpecialForm::Defn | SpecialForm::Defmacro)) {
        return None;
    }
    rest.iter().take(3).find(|item| matches!(item.kind, FormKind::Str(_)))
}
