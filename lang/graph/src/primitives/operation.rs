//! Element-wise operations as MLIR has them, for kernels that are written out.

use crate::graph::Op;
use crate::primitives::{
    Abs, Add, And, Binary, Compare, Convert, Direction, Div, Exp, Log, Logistic, Max, Min, Mul, Neg, Or,
    Rsqrt, Select, Sqrt, Sub, Tanh, Unary,
};
use crate::stablehlo::LoopNest;
use crate::tensor::{DType, TensorType};

/// An operation on `f32` and truth values: single elements, or vectors of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    /// Of MLIR, with one operand.
    Unary(&'static str),
    /// Of MLIR, with two operands.
    Binary(&'static str),
    /// `1 / (1 + e^-x)`.
    Logistic,
    /// A comparison of floats, by its name in MLIR.
    Compare(&'static str),
    /// A choice between two operands.
    Select,
    /// 1 for true, 0 for false.
    Number,
}

impl Operation {
    /// The operation on operands of these types, if it has the same value here and in the tensor's own operation.
    pub fn of(op: &Op, operands: &[&TensorType]) -> Option<Operation> {
        let are = |types: &[&TensorType], dtype: DType| types.iter().all(|ty| ty.dtype == dtype);
        let found = Operation::on_floats(op).filter(|_| are(operands, DType::F32));
        found.or_else(|| match () {
            () if op.is::<Select>() => (are(&operands[..1], DType::Bool) && are(&operands[1..], DType::F32))
                .then_some(Operation::Select),
            () if !are(operands, DType::Bool) => None,
            () if op.is::<Binary<And>>() => Some(Operation::Binary("arith.andi")),
            () if op.is::<Binary<Or>>() => Some(Operation::Binary("arith.ori")),
            () => op
                .downcast_ref::<Convert>()
                .and_then(|convert| (convert.dtype == DType::F32).then_some(Operation::Number)),
        })
    }

    fn on_floats(op: &Op) -> Option<Operation> {
        let compare = op.downcast_ref::<Compare>().map(|op| match op.direction {
            Direction::Eq => "oeq",
            Direction::Ne => "une",
            Direction::Lt => "olt",
            Direction::Le => "ole",
            Direction::Gt => "ogt",
            Direction::Ge => "oge",
        });
        let found = match () {
            () if op.is::<Unary<Abs>>() => Operation::Unary("math.absf"),
            () if op.is::<Unary<Exp>>() => Operation::Unary("math.exp"),
            () if op.is::<Unary<Log>>() => Operation::Unary("math.log"),
            () if op.is::<Unary<Neg>>() => Operation::Unary("arith.negf"),
            () if op.is::<Unary<Rsqrt>>() => Operation::Unary("math.rsqrt"),
            () if op.is::<Unary<Sqrt>>() => Operation::Unary("math.sqrt"),
            () if op.is::<Unary<Tanh>>() => Operation::Unary("math.tanh"),
            () if op.is::<Unary<Logistic>>() => Operation::Logistic,
            () if op.is::<Binary<Add>>() => Operation::Binary("arith.addf"),
            () if op.is::<Binary<Sub>>() => Operation::Binary("arith.subf"),
            () if op.is::<Binary<Mul>>() => Operation::Binary("arith.mulf"),
            () if op.is::<Binary<Div>>() => Operation::Binary("arith.divf"),
            () if op.is::<Binary<Max>>() => Operation::Binary("arith.maximumf"),
            () if op.is::<Binary<Min>>() => Operation::Binary("arith.minimumf"),
            () => Operation::Compare(compare?),
        };
        Some(found)
    }

    /// Writes the operation on elements of a dtype, that of the last operand, or on vectors of so many.
    pub fn write(
        self,
        nest: &mut LoopNest,
        operands: &[String],
        dtype: DType,
        lanes: Option<usize>,
    ) -> String {
        let of = |dtype: DType| match lanes {
            Some(lanes) => format!("vector<{lanes}x{}>", dtype.mlir()),
            None => dtype.mlir().to_owned(),
        };
        let ty = of(dtype);
        match (self, operands) {
            (Operation::Unary(name), [x]) => nest.value(&format!("{name} {x} : {ty}")),
            (Operation::Binary(name), [x, y]) => nest.binary(name, x, y, &ty),
            (Operation::Logistic, [x]) => {
                let one = if lanes.is_some() { "dense<1.0>" } else { "1.0" };
                let one = nest.value(&format!("arith.constant {one} : {ty}"));
                let x = nest.value(&format!("arith.negf {x} : {ty}"));
                let x = nest.value(&format!("math.exp {x} : {ty}"));
                let x = nest.binary("arith.addf", &x, &one, &ty);
                nest.binary("arith.divf", &one, &x, &ty)
            }
            (Operation::Compare(relation), [x, y]) => {
                nest.value(&format!("arith.cmpf {relation}, {x}, {y} : {ty}"))
            }
            (Operation::Select, [choice, x, y]) => {
                let choices = lanes.map_or(String::new(), |_| format!("{}, ", of(DType::Bool)));
                nest.value(&format!("arith.select {choice}, {x}, {y} : {choices}{ty}"))
            }
            (Operation::Number, [x]) => nest.value(&format!("arith.uitofp {x} : {ty} to {}", of(DType::F32))),
            _ => unreachable!("operations have their operands"),
        }
    }
}
