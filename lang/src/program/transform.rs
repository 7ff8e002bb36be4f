//! Function transformations.

use std::fmt;

use ustr::Ustr;

/// A function transformation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Transform {
    /// `value-and-grad` and `grad`.
    Grad(GradOptions),
    /// `jvp`
    Jvp,
    /// `jacobian`
    Jacobian,
    /// `vmap`
    Vmap(Axes),
    /// `checkpoint`
    Checkpoint,
}

/// Options of `grad`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct GradOptions {
    /// Positions of the arguments differentiated with respect to.
    pub wrt: Vec<usize>,
    /// True if `:wrt` was a list, so that the gradients come as a list.
    pub wrt_list: bool,
    /// True if the function returns `[loss extra]`.
    pub aux: bool,
    /// True if the loss is returned with the gradients.
    pub value: bool,
}

/// The in-axes of `vmap`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Axes {
    /// This axis of every tensor, negative from the end; `None` if the value is shared.
    Every(Option<i64>),
    /// By position: of arguments, or of list items.
    Items(Vec<Axes>),
    /// By key, sorted.
    Entries(Vec<(Ustr, Axes)>),
}

impl Transform {
    /// The name in programs.
    pub fn name(&self) -> &'static str {
        match self {
            Transform::Grad(GradOptions { value: true, .. }) => "value-and-grad",
            Transform::Grad(_) => "grad",
            Transform::Jvp => "jvp",
            Transform::Jacobian => "jacobian",
            Transform::Vmap(_) => "vmap",
            Transform::Checkpoint => "checkpoint",
        }
    }

    /// The name in compiled files.
    pub(crate) fn suffix(&self) -> &'static str {
        match self {
            Transform::Grad(GradOptions { value: true, .. }) => "vag",
            other => other.name(),
        }
    }
}

/// The syntax of programs.
impl fmt::Display for Axes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = match self {
            Axes::Every(None) => return f.write_str("nil"),
            Axes::Every(Some(axis)) => return write!(f, "{axis}"),
            Axes::Items(items) => items.iter().map(ToString::to_string).collect(),
            Axes::Entries(entries) => entries.iter().map(|(key, axes)| format!(":{key} {axes}")).collect(),
        };
        let joined = parts.join(" ");
        if let Axes::Items(_) = self { write!(f, "[{joined}]") } else { write!(f, "{{{joined}}}") }
    }
}
