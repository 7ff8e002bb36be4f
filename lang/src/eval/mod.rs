//! The evaluator: computes on concrete tensors, records on traced tensors.

mod arity;
mod binding;
mod blame;
mod call;
mod check;
mod checkpoint;
mod checks;
mod code;
mod conditional;
mod custom;
mod custom_kernel;
mod define;
mod embed;
mod expand;
mod grad;
mod handle;
mod index;
mod interp;
mod interrupt;
mod jvp;
mod keyword;
mod large;
mod last_use;
mod library;
mod load;
mod loops;
mod mapped;
mod names;
mod observed;
mod pattern;
mod progress;
mod purity;
mod recur;
mod region;
mod replay;
mod resolve;
mod rewrite;
mod rolled;
mod scalar;
mod scan;
mod scope;
mod signal;
mod specialise;
mod staged_loop;
mod tensor;
mod tracing;
mod transforms;
mod tree;
mod uses;
mod vmap;

pub use call::Args;
pub use check::Checked;
pub(crate) use define::without_options;

pub(crate) use handle::ItemsOf;
pub(crate) use index::{clip, positions_within};
pub use interp::{Interp, Jit, MAX_DEPTH, Options, STACK_BYTES};
pub use interrupt::Interrupt;
pub use library::STANDARD;
pub(crate) use load::as_diagnostic;
pub use load::{CORE, Loaded};
pub(crate) use resolve::{dtype_keyword, takes_dtype_option};
pub use signal::{Eval, Signal, Stop, fail};
pub(crate) use specialise::ROOT;
pub use specialise::{
    AbstractValue, Argument, Call, Cause, Declared, Difference, FunctionName, Interpreted, LeafKind, LeftOut,
    Location, Probe, Recording, Refused, Report, Specialisation, Status, explain,
};
pub use tensor::{bind, bind_all, check_room, positions, repeat_beside};
pub use tree::{KeyPath, Tree, flatten, map_trees, unflatten};
