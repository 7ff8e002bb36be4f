//! Programs as typed graphs: tensors and their dtypes, primitives with all their rules, differentiation and batching,
//! simplification, and emission of `StableHLO`.
//!
//! Reading order: `tensor`, `primitives`, `graph`, `transform`, `simplify`, `stablehlo`.

pub mod decimal;
pub mod graph;
pub mod primitives;
pub mod simplify;
pub mod stablehlo;
pub mod tensor;
pub mod transform;
pub mod watch;
