//! Text and forms: sources, spans, the reader, the formatter; messages with places, and their rendering.

mod atom;
pub mod diagnostic;
mod dtype;
pub mod fmt;
mod form;
mod incomplete;
mod lexer;
mod names;
mod prefix;
mod print;
mod reader;
mod reader_error;
pub mod render;
mod shorthand;
mod source;
mod special;
mod text;
pub mod visible;

pub use dtype::{DType, Kind};
pub use form::{Bracket, Form, FormKind};
pub use incomplete::is_incomplete;
pub use lexer::{Lexeme, Lexer, Token};
pub use reader::{NESTING_LIMIT, read};
pub use source::{Expansion, SourceId, Sources, Span};
pub use special::{Description, SpecialForm};
pub use text::source_text;
