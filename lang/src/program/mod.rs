//! Programs as data: values, tensors, expressions, patterns, modules.
//!
//! The evaluator depends on these, and they do not depend on it, save for the pointer to a function written in Rust
//! (`builtins::Builtin`), which takes the evaluator.

mod contents;
mod dict;
mod expr;
mod handle;
mod items;
mod module;
mod release;
mod scalar;
mod tensor;
mod tokenizer;
mod transform;
mod typed;
mod value;

pub(crate) use contents::has_tensors;
pub use dict::{Dict, Key};
pub use expr::Code;
pub(crate) use expr::{Expr, ExprKind, Global, Param, Pattern, Pending, Slot, Template, VarLocation};
pub use handle::Handle;
pub(crate) use handle::{Batches, Column, Lazy, Lines, Picked, Prepared, Rows, Source};
pub use items::Items;
pub use module::{Definition, Module};
pub(crate) use module::{Import, Meaning, is_private, qualified};
pub(crate) use scalar::OnNumbers;
pub use scalar::Scalar;
pub use tensor::{Concrete, Flag, Flags, Origin, Tensor};
pub(crate) use tensor::{Regions, Trace, Traced};
pub use tokenizer::Tokenizer;
#[cfg(feature = "text")]
pub(crate) use tokenizer::Tokens;
pub use transform::{Axes, GradOptions, Transform};
pub use typed::ParamType;
pub(crate) use typed::{TOO_LARGE, fits_memory, joined};
pub use value::{Closure, Function, List, Value};
