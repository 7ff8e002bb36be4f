//! Transformed functions: `grad`, `jvp`, `jacobian`, `vmap`. All are called alike: arguments become parameters of a
//! trace, the function is called once, the recorded graph is transformed, and the result is computed or, inside another
//! trace, recorded.

use std::rc::Rc;

use super::Args;
use super::interp::{Interp, MAX_DEPTH};
use super::signal::{Eval, Signal, fail};
use super::tree::{KeyPath, Tree, flatten, unflatten};
use crate::program::{Function, Tensor, Transform, Value};
use crate::stack::maybe_grow;
use sheaf_graph::tensor::{DType, HostTensor};
use sheaf_syntax::Span;
use sheaf_syntax::diagnostic::Diagnostic;

/// Maximum equations of a trace, beyond which it is endless: a compiler would take hours for the program.
pub(super) const MAX_EQUATIONS: usize = 1_000_000;

impl Interp {
    pub(super) fn call_transformed(
        &mut self,
        transform: &Transform,
        f: &Rc<Function>,
        args: &Args,
        span: Span,
    ) -> Eval<Value> {
        if *transform == Transform::Checkpoint {
            return maybe_grow(|| self.checkpoint(f, args, span));
        }
        if self.depth >= MAX_DEPTH {
            return fail(format!("calls are nested more than {MAX_DEPTH} deep"));
        }
        self.depth += 1;
        self.tracing.level += 1;
        let result = maybe_grow(|| match transform {
            Transform::Grad(options) => self.grad(f, options, args),
            Transform::Jvp => self.jvp(f, args),
            Transform::Jacobian => self.jacobian(f, args),
            Transform::Vmap(axes) => {
                let args = self.wholes(args)?;
                self.vmap(f, axes, &args)
            }
            Transform::Checkpoint => unreachable!("it records at the level of its call"),
        });
        self.tracing.level -= 1;
        self.depth -= 1;
        result.map_err(|s| s.at(span))
    }

    /// A differentiated leaf as a float tensor, weak numbers as `f32`; `None` for a non-differentiable one: an integer
    /// tensor, a boolean, nil.
    pub(super) fn differentiable_leaf(&mut self, leaf: &Value, path: &KeyPath) -> Eval<Option<Tensor>> {
        match leaf {
            Value::Int(_) | Value::Float(_) => self.float(leaf).map(Some),
            Value::Tensor(t) if t.ty().dtype.is_float() => Ok(Some(t.clone())),
            Value::Tensor(t) if t.ty().weak => self.float(leaf).map(Some),
            Value::Tensor(_) | Value::Bool(_) | Value::Nil => Ok(None),
            other => {
                let place = if path.is_root() { String::new() } else { format!(" at {path}") };
                Err(Diagnostic::error(format!("cannot differentiate by {}{place}", other.describe()))
                    .help(
                        "keep it out of the parameters, or name the arguments to differentiate by with :wrt",
                    )
                    .into())
            }
        }
    }
}

/// The error for a differentiated argument without float leaves.
pub(super) fn not_differentiable(what: &str, argument: &Value) -> Signal {
    let help = match argument {
        Value::Tensor(_) | Value::Bool(_) => {
            "integers and booleans have no slope: (float x) makes floats of them"
        }
        _ => {
            "integers and booleans have no slope: (float x) makes floats of a tensor, and :wrt names other arguments to \
             differentiate by"
        }
    };
    let found = argument.describe();
    Diagnostic::error(format!("{what} is by floats, and there are none in {found}")).help(help).into()
}

/// The gradient or tangent of a non-differentiable leaf: zeros for integers and booleans, else nil.
pub(super) fn zero_of(leaf: &Value) -> Value {
    match leaf {
        Value::Int(_) => Value::Int(0),
        Value::Float(_) => Value::Float(0.0),
        Value::Bool(_) => Value::Bool(false),
        Value::Tensor(t) => {
            let dtype = if t.ty().weak { DType::F32 } else { t.ty().dtype };
            Value::Tensor(Tensor::host(HostTensor::filled(dtype, t.shape(), 0.0)))
        }
        _ => Value::Nil,
    }
}

/// The result of a recorded call, split into computed and known leaves.
pub(super) struct Outcome {
    tree: Tree,
    /// `None` for leaves computed by the graph.
    leaves: Vec<Option<Value>>,
}

impl Outcome {
    /// Splits `value`. `computed` gives the tensor of a leaf that the graph computes, `None` for a known leaf.
    pub(super) fn of(
        value: &Value,
        level: u32,
        mut computed: impl FnMut(&Value) -> Eval<Option<Tensor>>,
    ) -> Eval<(Outcome, Vec<Tensor>)> {
        let mut tensors = Vec::new();
        let mut leaves = Vec::new();
        for leaf in flatten(value) {
            if holds_traced(&leaf, level) {
                return fail(format!(
                    "{} came out of a transformation: it holds a value from inside",
                    leaf.describe()
                ));
            }
            let tensor = computed(&leaf)?;
            leaves.push(if tensor.is_some() { None } else { Some(leaf) });
            tensors.extend(tensor);
        }
        Ok((Outcome { tree: Tree::of(value), leaves }, tensors))
    }

    /// The result with the computed leaves.
    pub(super) fn build(&self, computed: &mut impl Iterator<Item = Value>) -> Eval<Value> {
        let leaves = self.leaves.iter();
        let mut leaves =
            leaves.map(|leaf| leaf.clone().unwrap_or_else(|| computed.next().expect("a value for each")));
        unflatten(&self.tree, &mut leaves)
    }
}

/// True if a value holds or captured a tensor of the trace of that level.
fn holds_traced(value: &Value, level: u32) -> bool {
    let Value::Function(f) = value else { return false };
    let inside = f.captured().iter().flat_map(flatten);
    inside.into_iter().any(|v| match &v {
        Value::Tensor(t) => t.is_traced_at(level),
        other => holds_traced(other, level),
    })
}
