//! Guards in programs: a check of each watched value, which is part of the program's flag (`graph::checks`).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::walk::replaced;
use super::{Site, Stage, Statistics};
use crate::graph::{Builder, Graph, Var, Vars};
use crate::primitives::Site as CheckSite;
use crate::primitives::{
    And, Binary, BitcastConvert, Check, Direction, Not, Question, ReduceMax, Unary, Watch,
};
use crate::tensor::{DType, HostTensor, Number, Shape, TensorType};
use sheaf_syntax::diagnostic::{Diagnostic, Label};

/// A condition on all elements of a value.
#[derive(Clone, Copy, Debug)]
pub enum Condition {
    /// None is NaN or infinite.
    Finite,
    /// None is NaN.
    NotNan,
    /// All lie within these bounds, which belong to the range.
    Within(f64, f64),
}

impl Condition {
    /// True if it holds for the elements with these statistics.
    pub fn holds(self, statistics: &Statistics) -> bool {
        match self {
            Condition::Finite => statistics.is_finite(),
            Condition::NotNan => !statistics.nan,
            Condition::Within(low, high) => {
                !statistics.nan
                    && (statistics.min >= low && statistics.max <= high || statistics.min > statistics.max)
            }
        }
    }

    /// True if it may fail for elements of that dtype.
    pub fn concerns(self, dtype: DType) -> bool {
        match self {
            Condition::Finite | Condition::NotNan => dtype.is_float(),
            Condition::Within(..) => dtype != DType::Bool,
        }
    }

    fn key(self) -> (u8, u64, u64) {
        match self {
            Condition::Finite => (0, 0, 0),
            Condition::NotNan => (1, 0, 0),
            Condition::Within(low, high) => (2, low.to_bits(), high.to_bits()),
        }
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.key().hash(state);
    }
}

/// As in the heading of a breach.
impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Finite => f.write_str("NoNan"),
            Condition::NotNan => f.write_str("NoNan (infinities allowed)"),
            Condition::Within(low, high) => write!(f, "Range {low}..{high}"),
        }
    }
}

/// `graph` with a check for each condition that `conditions` gives for a watched value. The watches stay.
///
/// A value that several watches look at is checked once, and one whose elements are all those of checked values is not.
/// The parameters of the graph fulfil the conditions `given`.
pub fn guarded(
    graph: &Graph,
    given: &[Condition],
    conditions: &dyn Fn(&Site, Stage) -> Vec<Condition>,
) -> Graph {
    replaced(graph, &|b, seen, watch, operands| {
        let value = seen.value(operands[0]);
        if watch.stage != Stage::Latent {
            for condition in conditions(&watch.site, watch.stage) {
                // The parameters of functions inside of operations are not given.
                let is_given = seen.is_outermost && given.contains(&condition);
                let known = |var: Var| {
                    seen.checked.contains(&(var, condition)) || is_given && b.graph().inputs.contains(&var)
                };
                if condition.concerns(b.ty(value).dtype) && !seen.is_made_of(b.graph(), value, &known) {
                    if !watch.masked {
                        seen.checked.insert((value, condition));
                    }
                    let operands: Vars =
                        std::iter::once(value).chain(operands[1..].iter().copied()).collect();
                    add_check(b, watch, &operands, condition);
                }
            }
        }
        let result = b.apply(watch.clone(), operands);
        seen.values.insert(result, value);
        result
    })
}

fn add_check(b: &mut Builder, watch: &Watch, operands: &[Var], condition: Condition) {
    let (measure, limit) = measured(b, operands[0], condition, if watch.masked { watch.batch } else { 0 });
    let guard = Guarded { site: Arc::clone(&watch.site), stage: watch.stage, condition, limit };
    let mut error = Diagnostic::error(format!("{condition}: the {guard}"));
    error.labels.extend(watch.site.span.map(|span| Label { span, text: String::new() }));
    let site = Arc::new(CheckSite { question: Question::Guard(guard), error });
    let (batch, masked) = if watch.masked { (watch.batch, true) } else { (0, false) };
    let operands: Vec<Var> = std::iter::once(measure).chain(operands[1..].iter().copied()).collect();
    b.apply_all(Check { site, masked, batch }, &operands);
}

/// A guarded value: the site, whether it is the value or its cotangent, and the condition.
#[derive(Clone, Debug)]
pub struct Guarded {
    /// The site.
    pub site: Arc<Site>,
    /// The values.
    pub stage: Stage,
    /// The condition.
    pub condition: Condition,
    /// The least `i32` of the check's operand for which the condition does not hold.
    pub limit: i32,
}

/// `result of sqrt`, `gradient of argument 0 of sqrt`.
impl fmt::Display for Guarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let gradient = if self.stage == Stage::Backward { "gradient of the " } else { "" };
        write!(f, "{gradient}{}", self.site)
    }
}

/// An `i32` for all elements of `x`, or for each entry of the first `batch` axes, and its least value for which the
/// condition does not hold.
///
/// The exponents of floats are compared as integers: their maximum is one vectorised reduction, and IREE has none for
/// truth values.
fn measured(b: &mut Builder, x: Var, condition: Condition, batch: usize) -> (Var, i32) {
    let axes: Shape = (batch..b.ty(x).rank()).collect();
    let dtype = b.ty(x).dtype;
    if let Condition::Within(low, high) = condition {
        let x = b.convert(x, dtype);
        let ty = b.ty(x).clone();
        let (low, high) = (full(b, &ty, bound(dtype, low, true)), full(b, &ty, bound(dtype, high, false)));
        let (above, below) = (b.compare(Direction::Ge, x, low), b.compare(Direction::Le, x, high));
        let within = b.apply(Binary(And), &[above, below]);
        let outside = b.apply(Unary(Not), &[within]);
        let outside = b.convert(outside, DType::I32);
        let any = if axes.is_empty() { outside } else { b.apply(ReduceMax { axes }, &[outside]) };
        return (any, 1);
    }
    // The mantissa of an infinity is zero.
    let beyond = i64::from(condition == Condition::NotNan);
    let (float, bits, magnitude) = match dtype {
        DType::F64 => (DType::F64, DType::I64, i64::MAX),
        _ => (DType::F32, DType::I32, i64::from(i32::MAX)),
    };
    let wide = b.convert(x, float);
    let mut seen = b.apply(BitcastConvert { dtype: bits }, &[wide]);
    let ty = b.ty(seen).clone();
    let magnitude = full(b, &ty, Number::Int(magnitude));
    seen = b.apply(Binary(And), &[seen, magnitude]);
    if !axes.is_empty() {
        seen = b.apply(ReduceMax { axes }, &[seen]);
    }
    if bits == DType::I32 {
        return (seen, 0x7f80_0000 + beyond as i32);
    }
    let ty = b.ty(seen).clone();
    let limit = full(b, &ty, Number::Int(0x7ff0_0000_0000_0000 + beyond));
    let fails = b.compare(Direction::Ge, seen, limit);
    (b.convert(fails, DType::I32), 1)
}

/// A bound as a number of that dtype: integers are rounded inwards.
fn bound(dtype: DType, bound: f64, low: bool) -> Number {
    if dtype.is_float() {
        return Number::Float(bound);
    }
    Number::Int(if low { bound.ceil() } else { bound.floor() } as i64)
}

/// A number everywhere.
fn full(b: &mut Builder, ty: &TensorType, number: Number) -> Var {
    let scalar = b.constant(HostTensor::number(ty.dtype, Shape::new(), number), false);
    b.broadcast_scalar(scalar, &ty.shape)
}
