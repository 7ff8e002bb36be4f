//! `check`: a condition that a program reports when it does not hold. It has operands and no results, and is part of
//! traced graphs alone: `graph::checks` makes a result of all checks of a program before that is simplified and emitted,
//! so there is no `StableHLO` of it, and it is none of the primitives that the registry lists.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::{SmallVec, smallvec};

use super::{
    Cotangents, Primitive, ReduceOr, TypeFault, Types, batch_all_to_front, batch_to_front, zeros_for,
};
use crate::graph::{Builder, Var};
use crate::stablehlo::Lowering;
use crate::tensor::{DType, HostTensor, TensorType};
use crate::watch::Guarded;
use sheaf_syntax::diagnostic::Diagnostic;

/// One check of a program: the question, and the error if it does not hold.
#[derive(Debug)]
pub struct Site {
    /// The question.
    pub question: Question,
    /// The message with its places, if nothing in it depends on the data.
    pub error: Diagnostic,
}

/// The question, or the message with the types of values that only a run knows.
impl fmt::Display for Site {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.question {
            Question::Index { axis, of } => write!(f, "index of axis {axis} of {of}"),
            Question::Condition { .. } | Question::Guard(_) => f.write_str(&self.error.message),
        }
    }
}

/// The question of a check.
#[derive(Debug)]
pub enum Question {
    /// True if indices lie within an axis, negative ones counted from its end.
    Index {
        /// The axis that they index.
        axis: usize,
        /// The type of the tensor.
        of: TensorType,
    },
    /// True if a condition of the program holds.
    Condition {
        /// The message's arguments; the first may be a template for the others.
        message: Vec<Part>,
    },
    /// True if a guard of the run lets a value pass.
    Guard(Guarded),
}

impl Question {
    /// The number of axis entries, for a check of indices.
    pub fn extent(&self) -> Option<usize> {
        match self {
            Question::Index { axis, of } => Some(of.shape[*axis]),
            Question::Condition { .. } | Question::Guard(_) => None,
        }
    }
}

/// An argument of a message.
#[derive(Clone, Debug)]
pub enum Part {
    /// A text, or a value shown as one.
    Text(String),
    /// A whole number.
    Int(i64),
    /// A number with a point.
    Float(f64),
    /// A known tensor; true if it is weak.
    Tensor(HostTensor, bool),
    /// A tensor of this type that only a run knows: the next of the operands.
    Traced(TensorType),
}

/// A check of a graph.
///
/// The operands are the indices, the condition or the measure of a guard, then the truth value under which the check counts (if it is
/// `masked`), then the traced arguments of the message. All have the same `batch` axes in front.
#[derive(Clone, Debug)]
pub struct Check {
    /// The question and the message.
    pub site: Arc<Site>,
    /// True if it counts only for true elements of the second operand.
    pub masked: bool,
    /// The number of axes that batching added in front.
    pub batch: usize,
}

impl PartialEq for Check {
    fn eq(&self, other: &Check) -> bool {
        let [one, two] = [self, other].map(|check| (Arc::as_ptr(&check.site), check.masked, check.batch));
        one == two
    }
}

impl Eq for Check {}

impl Hash for Check {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(&self.site), self.masked, self.batch).hash(state);
    }
}

impl Primitive for Check {
    fn name(&self) -> &'static str {
        "check"
    }

    fn parameters(&self) -> String {
        self.site.to_string()
    }

    fn infer(&self, args: &[&TensorType]) -> Result<Types, TypeFault> {
        let wanted = match self.site.question {
            Question::Index { .. } | Question::Guard(_) => DType::I32,
            Question::Condition { .. } => DType::Bool,
        };
        let fits = args.len() > usize::from(self.masked)
            && args[0].dtype == wanted
            && (!self.masked || args[1].dtype == DType::Bool && args[1].rank() == self.batch)
            && args.iter().all(|ty| ty.shape.get(..self.batch) == args[0].shape.get(..self.batch));
        if fits { Ok(Types::new()) } else { Err(TypeFault::new(format!("check of {args:?}"))) }
    }

    /// No results: evaluation asks [`crate::graph::violation`] first.
    fn evaluate(&self, _: &[&HostTensor]) -> SmallVec<[HostTensor; 2]> {
        SmallVec::new()
    }

    fn vjp(&self, _: &mut Builder, args: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        zeros_for(args)
    }

    fn jvp(&self, _: &mut Builder, _: &[Var], _: &[Var], _: &[Option<Var>]) -> Cotangents {
        Cotangents::new()
    }

    /// One check over the whole batch.
    fn batch(&self, b: &mut Builder, args: &[Var], axes: &[Option<usize>]) -> SmallVec<[(Var, usize); 2]> {
        // Indices that all share are looked at once, if they count for any.
        if let ([indices, counts], [None, Some(_)]) = (args, axes) {
            let each = batch_to_front(b, *counts, axes[1], 0);
            let any = b.apply(ReduceOr { axes: smallvec![0] }, &[each]);
            b.apply_all(self.clone(), &[*indices, any]);
            return SmallVec::new();
        }
        let args = batch_all_to_front(b, args, axes);
        b.apply_all(Check { batch: self.batch + 1, ..self.clone() }, &args);
        SmallVec::new()
    }

    fn stablehlo(&self, _: &mut Lowering<'_>) {
        unreachable!("checks are results of the program by then");
    }

    fn checks(&self) -> bool {
        true
    }

    fn cost(&self, args: &[&TensorType], _: &[&TensorType]) -> u64 {
        args[0].count() as u64
    }
}
