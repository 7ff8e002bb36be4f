//! Forms of the values of a step, each of whose rows is computed of the same row of others.

use std::collections::HashMap;

use crate::graph::{Equation, Graph, Var};
use crate::primitives::operation::Operation;
use crate::primitives::{BroadcastInDim, Concatenate, Constant, DotGeneral, Full, Pad, Reshape, Scan, Slice};
use crate::stablehlo::float;
use crate::tensor::{DType, HostTensor, TensorType, element_count};

use super::product::Weights;

/// The numbers of an operand of the loop that a row is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The position among the loop's operands.
    pub input: usize,
    /// True if each step has numbers of its own.
    pub by_step: bool,
    /// True if each row has numbers of its own.
    pub by_row: bool,
    /// The number of them; a single one stands for all columns.
    pub width: usize,
}

/// Some of the columns that are joined to a value.
#[derive(Clone, Debug)]
pub(super) struct Part {
    pub width: usize,
    pub filling: Filling,
}

/// The content of some columns.
#[derive(Clone, Debug)]
pub(super) enum Filling {
    /// All columns of a value.
    Value(Var),
    /// One number, as MLIR writes it.
    Number(String),
}

/// The form of a value: an operand, or the operation that gives it.
#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Numbers of an operand.
    Read(Place),
    /// A state before the step.
    State,
    /// One number, as MLIR writes it.
    Number(String),
    /// The same columns of the operands.
    Elementwise(Operation, Vec<Var>),
    /// Columns of another value, from this one on.
    Columns(Var, usize),
    /// Columns of several values side by side.
    Joined(Vec<Part>),
    /// The product of a value and of constant weights.
    Product(Var, Weights),
}

/// A value of a step.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub form: Form,
    /// Elements of a row.
    pub width: usize,
    /// The phase of the step in which it is there: behind so many products, one after the other.
    pub phase: usize,
}

/// The form of each value of a loop's body of which rows are independent; other values have none.
pub(super) struct Forms<'a> {
    scan: &'a Scan,
    body: &'a Graph,
    batch: usize,
    values: Vec<Option<Value>>,
    /// Scalars that are constants, as MLIR writes them.
    numbers: HashMap<Var, String>,
}

impl Forms<'_> {
    /// The values of `body`, which is that of `scan` without calls, with `batch` rows.
    pub fn of(scan: &Scan, body: &Graph, batch: usize) -> Vec<Option<Value>> {
        let mut forms =
            Forms { scan, body, batch, values: vec![None; body.types.len()], numbers: HashMap::new() };
        for (input, var) in body.inputs.iter().enumerate() {
            let Some(width) = forms.width(*var).filter(|_| body.ty(*var).dtype == DType::F32) else {
                continue;
            };
            let states = scan.constants..scan.constants + scan.states;
            let by_step = input >= states.end;
            let place = Place { input, by_step, by_row: true, width };
            let form = if states.contains(&input) { Form::State } else { Form::Read(place) };
            forms.values[var.index()] = Some(Value { form, width, phase: 0 });
        }
        for eqn in &body.equations {
            if let Some(number) = number(eqn, body) {
                forms.numbers.insert(eqn.outputs[0], number);
            }
            if let Some((var, value)) = forms.made(eqn) {
                forms.values[var.index()] = Some(value);
            }
        }
        forms.values
    }

    /// Elements of a row, if a variable has the rows of the batch; booleans are so only where they are chosen by.
    fn width(&self, var: Var) -> Option<usize> {
        let ty = self.body.ty(var);
        let rows = ty.shape.first() == Some(&self.batch) && matches!(ty.dtype, DType::F32 | DType::Bool);
        rows.then(|| element_count(&ty.shape[1..])).filter(|width| *width > 0)
    }

    fn value(&self, var: Var) -> Option<&Value> {
        self.values[var.index()].as_ref()
    }

    /// The results of an equation whose rows are independent.
    fn made(&self, eqn: &Equation) -> Option<(Var, Value)> {
        let [var] = eqn.outputs[..] else { return None };
        let width = self.width(var)?;
        let form = self.form(eqn, var)?;
        let phase_of = |vars: &[Var]| {
            let phases: Option<Vec<usize>> = vars.iter().map(|v| Some(self.value(*v)?.phase)).collect();
            Some(phases?.into_iter().max().unwrap_or(0))
        };
        let phase = match &form {
            Form::Read(_) | Form::State | Form::Number(_) => 0,
            Form::Elementwise(_, operands) => phase_of(operands)?,
            Form::Columns(of, _) => phase_of(&[*of])?,
            Form::Joined(parts) => {
                let value = |part: &Part| match part.filling {
                    Filling::Value(var) => Some(var),
                    Filling::Number(_) => None,
                };
                phase_of(&parts.iter().filter_map(value).collect::<Vec<_>>())?
            }
            Form::Product(left, _) => phase_of(&[*left])? + 1,
        };
        Some((var, Value { form, width, phase }))
    }

    fn form(&self, eqn: &Equation, result: Var) -> Option<Form> {
        let (op, ty) = (&eqn.op, self.body.ty(result));
        if let Some(full) = op.downcast_ref::<Full>() {
            return (ty.dtype == DType::F32)
                .then(|| Form::Number(float(DType::F32, full.value.element_f64(0))));
        }
        if let Some(broadcast) = op.downcast_ref::<BroadcastInDim>() {
            return self.repeated(broadcast, eqn.inputs[0], ty);
        }
        if let Some(product) = op.downcast_ref::<DotGeneral>() {
            return self.product(product, &eqn.inputs);
        }
        let from = &self.body.ty(*eqn.inputs.first()?).shape;
        if op.is::<Reshape>() {
            return Some(Form::Columns(eqn.inputs[0], 0));
        }
        if let Some(slice) = op.downcast_ref::<Slice>() {
            // A row's elements are side by side where all axes but the second are whole.
            let whole = |axis: &usize| slice.start[*axis] == 0 && slice.limit[*axis] == from[*axis];
            let others = (0..from.len()).filter(|axis| *axis != 1).all(|axis| whole(&axis));
            let start = slice.start.get(1).map_or(0, |start| start * element_count(&from[2..]));
            return others.then_some(Form::Columns(eqn.inputs[0], start));
        }
        if let Some(join) = op.downcast_ref::<Concatenate>() {
            let part = |v: &Var| Some(Part { width: self.width(*v)?, filling: Filling::Value(*v) });
            let parts: Option<Vec<Part>> = eqn.inputs.iter().map(part).collect();
            return parts.filter(|_| join.axis == 1).map(Form::Joined);
        }
        if let Some(pad) = op.downcast_ref::<Pad>() {
            return self.padded(pad, [eqn.inputs[0], eqn.inputs[1]]);
        }
        let types: Vec<&TensorType> = eqn.inputs.iter().map(|v| self.body.ty(*v)).collect();
        let operation = Operation::of(op, &types)?;
        // Truth values are compared floats, and only chosen by, each for an element of its own.
        let fits = types[0].shape == ty.shape && types[types.len() - 1].dtype == DType::F32;
        fits.then(|| Form::Elementwise(operation, eqn.inputs.to_vec()))
    }

    /// A value between columns of a number.
    fn padded(&self, pad: &Pad, [inner, number]: [Var; 2]) -> Option<Form> {
        let shape = &self.body.ty(inner).shape;
        let others = (0..shape.len()).filter(|axis| *axis != 1);
        if shape.len() < 2 || others.into_iter().any(|axis| pad.low[axis] + pad.high[axis] > 0) {
            return None;
        }
        let number = self.numbers.get(&number)?;
        let beside: usize = element_count(&shape[2..]);
        let margin =
            |columns: usize| Part { width: columns * beside, filling: Filling::Number(number.clone()) };
        let inner = Part { width: self.width(inner)?, filling: Filling::Value(inner) };
        let parts = [margin(pad.low[1]), inner, margin(pad.high[1])];
        Some(Form::Joined(parts.into_iter().filter(|part| part.width > 0).collect()))
    }

    /// A parameter that is the same for all rows, or one number for all columns.
    fn repeated(&self, op: &BroadcastInDim, operand: Var, ty: &TensorType) -> Option<Form> {
        if let Some(number) = self.numbers.get(&operand) {
            return Some(Form::Number(number.clone()));
        }
        let input = self.body.inputs.iter().position(|v| *v == operand)?;
        let states = self.scan.constants..self.scan.constants + self.scan.states;
        let from = self.body.ty(operand);
        if states.contains(&input) || from.dtype != DType::F32 || ty.dtype != DType::F32 {
            return None;
        }
        let place = |by_row, width| Form::Read(Place { input, by_step: input >= states.end, by_row, width });
        let columns = op.dims.iter().copied().eq(1..ty.rank()) && from.shape[..] == ty.shape[1..];
        let by_row = op.dims.first() == Some(&0) && from.shape[0] == self.batch && from.count() == self.batch;
        match () {
            () if from.count() == 1 => Some(place(false, 1)),
            () if columns => Some(place(false, from.count())),
            () if by_row => Some(place(true, 1)),
            () => None,
        }
    }

    fn product(&self, op: &DotGeneral, operands: &[Var]) -> Option<Form> {
        let (left, right) = (operands[0], operands[1]);
        let input = self.body.inputs[..self.scan.constants].iter().position(|v| *v == right)?;
        Some(Form::Product(left, Weights::of(op, input, [self.body.ty(left), self.body.ty(right)])?))
    }
}

/// The scalar that an equation gives, if it is a constant.
fn number(eqn: &Equation, body: &Graph) -> Option<String> {
    if body.ty(*eqn.outputs.first()?).rank() > 0 {
        return None;
    }
    let constant = eqn.op.downcast_ref::<Constant>().map(|constant| &constant.value);
    literal(constant.or_else(|| Some(&eqn.op.downcast_ref::<Full>()?.value))?)
}

/// A float of 32 bits as MLIR writes it.
fn literal(number: &HostTensor) -> Option<String> {
    (number.dtype() == DType::F32).then(|| float(DType::F32, number.element_f64(0)))
}
