//! Text and forms: sources, spans, the reader.

mod atom;
mod form;
mod incomplete;
mod lexer;
mod names;
mod prefix;
mod print;
mod reader;
mod reader_error;
mod shorthand;
mod source;

pub use form::{Bracket, Form, FormKind};
pub use incomplete::is_incomplete;
pub(crate) use lexer::{Lexeme, Lexer, Token};
pub use reader::{NESTING_LIMIT, read};
pub use source::{Expansion, SourceId, Sources, Span};
