//! Source locations in text files.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

/// A location in a text file, with its line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file.
    pub path: PathBuf,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// The text of the line.
    pub excerpt: String,
    /// Number of marked characters, at least 1.
    pub width: usize,
}

impl SourceLocation {
    /// The location of the bytes `span` in `text`, the contents of `path`.
    pub(crate) fn new(path: &Path, text: &str, span: Range<usize>) -> Self {
        let start = floor(text, span.start);
        let line_start = text[..start].rfind('\n').map_or(0, |end| end + 1);
        let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
        let end = floor(text, span.end).clamp(start, line_end);
        Self {
            path: path.into(),
            line: text[..start].matches('\n').count() + 1,
            column: text[line_start..start].chars().count() + 1,
            excerpt: text[line_start..line_end].trim_end_matches('\r').into(),
            width: text[start..end].trim_end().chars().count().max(1),
        }
    }

    /// The line, with marks under the location.
    pub fn marked_line(&self) -> impl fmt::Display + '_ {
        MarkedLine(self)
    }
}

/// The last character boundary at or before `index`.
fn floor(text: &str, index: usize) -> usize {
    (0..=index.min(text.len())).rev().find(|&index| text.is_char_boundary(index)).unwrap_or(0)
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.path.display(), self.line, self.column)
    }
}

struct MarkedLine<'a>(&'a SourceLocation);

impl fmt::Display for MarkedLine<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SourceLocation { line, column, excerpt, width, .. } = self.0;
        let number = line.to_string();
        // Tabs are kept, so that the marks are aligned.
        let indent: String =
            excerpt.chars().take(column - 1).map(|c| if c == '\t' { '\t' } else { ' ' }).collect();
        let gutter = " ".repeat(number.len());
        write!(f, " {number} | {excerpt}\n {gutter} | {indent}{}", "^".repeat(*width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, span: Range<usize>) -> String {
        let location = SourceLocation::new(Path::new("f.toml"), text, span);
        format!("{location}\n{}", location.marked_line())
    }

    #[test]
    fn lines_and_columns_count_from_one_in_characters() {
        insta::assert_snapshot!(shown("a = 1\nété = [2]\n", 14..17), @"
        f.toml:2:7
         2 | été = [2]
           |       ^^^
        ");
        insta::assert_snapshot!(shown("\tb = 2", 1..2), @"
        f.toml:1:2
         1 | 	b = 2
           | 	^
        ");
    }

    #[test]
    fn spans_over_several_lines_and_at_the_end_are_marked_on_one() {
        insta::assert_snapshot!(shown("a = [\n1,\n2]", 4..11), @"
        f.toml:1:5
         1 | a = [
           |     ^
        ");
        insta::assert_snapshot!(shown("a = ", 4..4), @"
        f.toml:1:5
         1 | a = 
           |     ^
        ");
        insta::assert_snapshot!(shown("a\n", 90..99), @"
        f.toml:2:1
         2 | 
           | ^
        ");
        insta::assert_snapshot!(shown("é", 1..2), @"
        f.toml:1:1
         1 | é
           | ^
        ");
    }
}
