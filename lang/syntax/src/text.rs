//! The text of a source, from its bytes.

use crate::diagnostic::Diagnostic;

/// The text of the source called `name`. Fails if the bytes are not UTF-8, with the line and column of the first that are not.
pub fn source_text(name: impl std::fmt::Display, bytes: Vec<u8>) -> Result<String, Diagnostic> {
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let valid = String::from_utf8_lossy(valid);
        let line = 1 + valid.matches('\n').count();
        let column = 1 + valid.rsplit('\n').next().unwrap_or_default().chars().count();
        Diagnostic::error(format!("{name} is not UTF-8 text from line {line}, column {column} on"))
            .help("a program is plain text: save the file in that encoding")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_text_have_a_line_and_a_column() {
        assert_eq!(source_text("a.shf", b"(def x 1)\n".to_vec()).ok().as_deref(), Some("(def x 1)\n"));
        let place = |bytes: &[u8]| source_text("a.shf", bytes.to_vec()).expect_err("no text").message;
        assert_eq!(place(b"\xff"), "a.shf is not UTF-8 text from line 1, column 1 on");
        assert_eq!(
            place("; ü\n\"é".as_bytes().split_last().expect("bytes").1),
            "a.shf is not UTF-8 text from line 2, column 2 on"
        );
    }
}
