//! The Sheaf language: expander, evaluator, tracing, specialisation, builtins, standard library, documentation.
//!
//! Text and forms are in `sheaf-syntax`, graphs of tensor programs in `sheaf-graph`. The crate touches no file, network,
//! environment or clock: a program reaches those through the traits of `host`.

pub mod builtins;
pub mod docs;
pub mod eval;
pub mod format;
mod formats;
pub mod host;
pub mod observe;
pub mod plot;
pub mod program;
mod stack;
pub mod testing;

/// True if tokenizers of published models are linked.
pub const HAS_TOKENIZERS: bool = cfg!(feature = "text");
