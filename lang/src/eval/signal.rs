//! Reasons to stop an evaluation.

use crate::host::HostError;
use crate::program::Value;
use sheaf_graph::graph::Var;
use sheaf_graph::primitives::TypeFault;
use sheaf_graph::tensor::TensorType;
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;
use ustr::Ustr;

/// The result of an evaluation.
pub type Eval<T> = Result<T, Signal>;

/// A stopped evaluation. One word, so that [`Eval`] fits into two.
pub type Signal = Box<Stop>;

/// The reason an evaluation stopped.
#[derive(Clone, Debug)]
pub enum Stop {
    /// An error.
    Error(Diagnostic),
    /// The trace cannot go on, though the program may be right.
    Trace(TraceStop),
}

/// The wanted value of `(static x)` in messages.
pub(super) const STATIC: &str = "(static x)";

/// The reason a trace stopped, and the span.
#[derive(Clone, Debug)]
pub struct TraceStop {
    /// The reason.
    pub reason: Reason,
    /// The innermost call.
    pub span: Option<Span>,
    /// The difference that kept a conditional or a loop from being one operation, which would have needed no value.
    pub differing: Option<Box<Differing>>,
}

/// Two values whose types must be equal but differ.
#[derive(Clone, Debug)]
pub struct Differing {
    /// A clause that names both.
    pub clause: String,
    /// Spans of their origins, with labels.
    pub places: Vec<(Span, String)>,
    /// The fix.
    pub remedy: &'static str,
}

/// The reason a trace stopped.
#[derive(Clone, Debug)]
pub enum Reason {
    /// The body asked for the value of a traced scalar: `var` of the trace of that level.
    Value {
        /// Level of the trace that the scalar belongs to.
        level: u32,
        /// The scalar.
        var: Var,
        /// The use of the value, for the message.
        wanted: String,
    },
    /// The body asked for the elements of a traced tensor.
    Elements {
        /// Level of the trace that the tensor belongs to.
        level: u32,
        /// The use of the elements, for the message.
        wanted: String,
        /// The tensor's type.
        ty: TensorType,
    },
    /// The body has an effect.
    Effect(String),
    /// The body needs the value of this definition, which only a run gives.
    Unevaluated(Ustr),
    /// The body has a loop too long to unroll; functions called in it are compiled.
    Loop,
    /// The body reads items of a handle in turn; functions called with them are compiled.
    Reads,
    /// The body differentiates an operation that has no derivative while its values are unknown, for this reason.
    NoVjp(&'static str),
}

impl Stop {
    /// A trace that cannot go on.
    pub(super) fn trace(reason: Reason, span: Option<Span>) -> Signal {
        Box::new(Stop::Trace(TraceStop { reason, span, differing: None }))
    }

    /// Adds the difference that caused the stop, unless there is one.
    #[must_use]
    pub(super) fn differing(mut self: Box<Self>, differing: Option<Box<Differing>>) -> Signal {
        if let Stop::Trace(stop) = &mut *self
            && stop.differing.is_none()
        {
            stop.differing = differing;
        }
        self
    }

    /// Adds the span, unless there is one.
    #[must_use]
    pub fn at(mut self: Box<Self>, span: Span) -> Signal {
        match &mut *self {
            Stop::Error(d) if d.labels.is_empty() => {
                d.labels.push(sheaf_syntax::diagnostic::Label { span, text: String::new() });
            }
            Stop::Trace(stop) if stop.span.is_none() => stop.span = Some(span),
            _ => {}
        }
        self
    }

    /// True for an error raised by the program, with `error`, `assert` or `guard`.
    pub(super) fn is_raised(&self) -> bool {
        matches!(self, Stop::Error(d) if d.kind.is_raised())
    }

    /// Adds a note to an error.
    #[must_use]
    pub fn note(mut self: Box<Self>, note: impl Into<String>) -> Signal {
        if let Stop::Error(d) = &mut *self {
            d.notes.push(note.into());
        }
        self
    }
}

impl TraceStop {
    /// The error, if `(static x)` requires the value to be known.
    pub(super) fn not_static(&self) -> Option<Signal> {
        let found = match &self.reason {
            Reason::Value { wanted, .. } if wanted == STATIC => "a number computed from the arguments".into(),
            Reason::Elements { wanted, ty, .. } if wanted == STATIC => format!("a tensor {ty}"),
            _ => return None,
        };
        let d = Diagnostic::error(format!("{STATIC} wants a value that is known while tracing, not {found}"))
            .help("a size, a shape, a keyword or a number given as an argument is known");
        Some(match self.span {
            Some(span) => d.at(span, "").into(),
            None => d.into(),
        })
    }
}

impl From<Diagnostic> for Signal {
    fn from(d: Diagnostic) -> Signal {
        Box::new(Stop::Error(d))
    }
}

impl From<Box<Diagnostic>> for Signal {
    fn from(d: Box<Diagnostic>) -> Signal {
        Signal::from(*d)
    }
}

impl From<TypeFault> for Signal {
    fn from(fault: TypeFault) -> Signal {
        let d = Diagnostic::error(fault.message);
        Signal::from(match fault.help {
            Some(help) => d.help(help),
            None => d,
        })
    }
}

impl From<HostError> for Signal {
    fn from(error: HostError) -> Signal {
        let d = Diagnostic::error(error.message);
        Signal::from(match error.help {
            Some(help) => d.help(help),
            None => d,
        })
    }
}

/// An error with this message.
pub fn fail<T>(message: impl Into<String>) -> Eval<T> {
    Err(Diagnostic::error(message).into())
}

/// A value, and the result of an evaluation, fit into two registers.
const _: () = assert!(size_of::<Value>() == 16 && size_of::<Eval<Value>>() == 16);
