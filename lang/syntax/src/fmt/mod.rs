//! The source formatter behind `sheaf fmt`.
//!
//! As most formatters for Lisps it keeps the author's line breaks, and normalizes the rest: indentation, one blank
//! between forms, closing brackets at the end of the last line, at most one blank line in a row. It adds line breaks to
//! a list only if the list exceeds the line width. Tokens are copied verbatim, so numbers, strings and comments stay as
//! they are, and the reader reads the same forms.

mod printer;
mod style;
#[cfg(test)]
mod tests;
mod tree;

pub(crate) use style::Layout;

use crate::diagnostic::Diagnostic;
use crate::{SourceId, Sources, read};

/// Default line width in columns.
pub const DEFAULT_WIDTH: usize = 100;

/// The formatted text of a source, for lines of `width` columns.
///
/// Fails with the reader's errors if the text does not parse.
pub fn format(sources: &Sources, id: SourceId, width: usize) -> Result<String, Vec<Diagnostic>> {
    read(sources, id)?;
    let tree = tree::Tree::parse(sources.text(id));
    Ok(printer::Printer::print(&tree, width))
}
