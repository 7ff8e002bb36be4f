//! The evaluator: one for two worlds. On concrete tensors it computes, on traced tensors it records.

mod arity;
mod binding;
mod blame;
mod call;
mod check;
mod checkpoint;
mod code;
mod conditional;
mod custom;
mod define;
mod dict;
mod expand;
mod expr;
mod grad;
mod index;
mod interp;
mod interrupt;
mod jvp;
mod last_use;
mod load;
mod loops;
mod mapped;
mod module;
mod pattern;
mod purity;
mod region;
mod release;
mod resolve;
mod rewrite;
mod rolled;
mod scalar;
mod scan;
mod scope;
mod signal;
mod specialise;
mod tensor;
mod transforms;
mod tree;
mod typed;
mod uses;
mod value;
mod vmap;

pub use call::Args;
pub use check::Checked;
pub use dict::Dict;
pub use expr::Code;
pub(crate) use index::{clip, position};
pub use interp::{Interp, Jit, MAX_DEPTH, Options, STACK_BYTES};
pub use interrupt::Interrupt;
pub(crate) use load::as_diagnostic;
pub use load::{CORE, Loaded, STANDARD};
pub use module::Module;
pub(crate) use module::is_private;
pub use resolve::SPECIAL;
pub(crate) use resolve::{dtype_keyword, takes_dtype_option};
pub use scalar::Scalar;
pub use signal::{Eval, Signal, Stop, fail};
pub use specialise::{
    Abstract, Argument, Call, Cause, Declared, Difference, Fate, FunctionName, Interpreted, LeftOut,
    Location, Probe, Recording, Refused, Report, Specialisation, What, explain,
};
pub use tensor::{Concrete, Tensor, bind, bind_all, check_room, positions, repeat_beside};
pub use transforms::{Axes, GradOptions, Transform};
pub use tree::{KeyPath, Tree, flatten, map_trees, unflatten};
pub use typed::ParamType;
pub use value::{Closure, Function, List, Value};
