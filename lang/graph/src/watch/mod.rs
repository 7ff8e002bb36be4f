//! Observation of values inside of programs.
//!
//! Tracing for an observer records the identity [`Watch`](crate::primitives::Watch) on the arguments and results of the
//! program's calls. Transformations keep it: reverse mode adds one on each cotangent. A finished graph is then turned
//! into one of three: [`unwatched`], the program itself; [`guarded`], with a check of each value; [`measured`], with
//! statistics of each value as one more result. On the host a watch reports its value to [`listen`].

mod guard;
mod listen;
mod measure;
mod statistics;
#[cfg(test)]
mod tests;
mod walk;

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::tensor::TensorType;
use sheaf_syntax::Span;

pub use guard::{Condition, Guarded, guarded};
pub(crate) use listen::report;
pub use listen::{Broken, Listener, Reported, heard, listen};
pub use measure::{Measured, measured, statistics_of};
pub use statistics::Statistics;
pub use walk::{trail, unwatched};

/// A call of the program while it is traced, outside of the library.
#[derive(Debug)]
pub struct Call {
    /// Position among the calls of the trace, in the order in which they began.
    pub number: u32,
    /// The call around it.
    pub parent: Option<Arc<Call>>,
    /// The name of the function.
    pub name: String,
    /// True for a function of the program rather than of the language.
    pub own: bool,
    /// The span of the call.
    pub span: Option<Span>,
    /// The arguments.
    pub arguments: Vec<Described>,
    /// The result; set at the end of the call.
    pub result: OnceLock<Described>,
}

/// An argument or a result of a call that is traced.
#[derive(Clone, Debug)]
pub enum Described {
    /// A tensor of this type, which only a run computes.
    Tensor(TensorType),
    /// Another value, as text.
    Text(String),
}

/// The role of a value in a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// The argument at a position.
    Argument(usize),
    /// The result, or the part of it at this path; empty for the whole.
    Result(String),
    /// The value bound to a name.
    Binding(String),
}

/// A watched value: its call and its role there.
#[derive(Debug)]
pub struct Site {
    /// The call; for a binding, the one around it.
    pub call: Arc<Call>,
    /// The role.
    pub role: Role,
    /// The expression: the call, or the bound one.
    pub span: Option<Span>,
}

/// The values of a site that a watch looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stage {
    /// The values themselves.
    Forward,
    /// None: they are computed again for a derivative, or were looked at before.
    Latent,
    /// The cotangents.
    Backward,
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Forward => "forward",
            Stage::Latent => "latent",
            Stage::Backward => "backward",
        })
    }
}

/// `argument 0 of sqrt`, `result of sqrt`, `binding h`.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.call.name;
        match &self.role {
            Role::Argument(i) => write!(f, "argument {i} of {name}"),
            Role::Result(path) if path.is_empty() => write!(f, "result of {name}"),
            Role::Result(path) => write!(f, "result {path} of {name}"),
            Role::Binding(bound) => write!(f, "binding {bound}"),
        }
    }
}
