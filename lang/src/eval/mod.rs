//! The evaluator: one for two worlds. On concrete tensors it computes, on traced tensors it records.

mod arity;
mod blame;
mod call;
mod expand;
mod expr;
mod grad;
mod index;
mod interp;
mod interrupt;
mod load;
mod loops;
mod module;
mod pattern;
mod purity;
mod resolve;
mod scope;
mod signal;
mod specialise;
mod tensor;
mod tree;
mod value;

pub use call::Args;
pub use expr::Code;
pub use interp::{Interp, Jit, MAX_DEPTH, Options, STACK_BYTES};
pub use interrupt::Interrupt;
pub(crate) use load::as_diagnostic;
pub use load::{CORE, Loaded, STANDARD};
pub use module::Module;
pub(crate) use resolve::{dtype_keyword, takes_dtype_option};
pub use signal::{Eval, Signal, fail};
pub(crate) use specialise::NO_COMPILER;
pub use specialise::{Probe, Report};
pub use tensor::{Concrete, Tensor, bind, bind_all, check_room};
pub use tree::{Tree, flatten, map_trees, unflatten};
pub use value::{Closure, Dict, Function, GradOptions, List, Value};
