//! The Sheaf language: reader, expander, evaluator, tracing, differentiation and `StableHLO` emission.
//!
//! Reading order: `syntax` (text to forms), `eval` (forms to values), `tensor`, `primitives`, `graph`, `transform`,
//! `stablehlo`. The crate touches no file, network, environment or clock; what a program needs of those comes
//! through the traits of `host`.

pub mod diagnostic;
pub mod format;
pub mod graph;
pub mod primitives;
pub mod render;
pub mod stablehlo;
pub mod syntax;
pub mod tensor;
pub mod transform;
