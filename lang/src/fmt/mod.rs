//! The layout of programs: what `sheaf fmt` writes.
//!
//! As most formatters for Lisps it keeps the lines as the author divided them, and settles the rest: indentation, one
//! blank between forms, closing brackets at the end of the last line, at most one blank line in a row. A list gets line
//! ends of its own only where it would leave the line. Tokens are copied, never written anew, so numbers, strings and
//! comments stay as they are, and the reader reads the same forms.

mod printer;
mod style;
#[cfg(test)]
mod tests;
mod tree;

use crate::diagnostic::Diagnostic;
use crate::syntax::{SourceId, Sources, read};

/// Columns of a line, unless a project wants another number.
pub const DEFAULT_WIDTH: usize = 100;

/// The text of a source, formatted for lines of `width` columns.
///
/// Fails with the reader's messages where the text does not read.
pub fn format(sources: &Sources, id: SourceId, width: usize) -> Result<String, Vec<Diagnostic>> {
    read(sources, id)?;
    let tree = tree::Tree::parse(sources.text(id));
    Ok(printer::Printer::print(&tree, width))
}
