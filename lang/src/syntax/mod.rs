//! Text and forms: sources, spans, the reader.

mod form;

mod source;

pub use form::{Bracket, Form, FormKind};

pub use source::{SourceId, Sources, Span};
