//! The Sheaf language: reader, expander, evaluator, tracing, differentiation and `StableHLO` emission.
//!
//! Reading order: `syntax` (text to forms), `eval` (forms to values), `tensor`, `primitives`, `graph`, `transform`,
//! `simplify`, `stablehlo`. The crate touches no file, network, environment or clock: a program reaches those through
//! the traits of `host`.

pub mod builtins;
mod decimal;
pub mod diagnostic;
pub mod docs;
pub mod eval;
pub mod fmt;
pub mod format;
pub mod graph;
pub mod host;
pub mod primitives;
pub mod render;
pub mod simplify;
pub mod stablehlo;
mod stack;
pub mod syntax;
pub mod tensor;
pub mod testing;
pub mod transform;
pub mod visible;
