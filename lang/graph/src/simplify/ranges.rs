//! Integers of loops whose values are known to lie between two numbers: counters, and what is computed of them.
//!
//! A check of an index that a counter gives, such as that of `(get x i)` in a `repeat`, is then known to hold, and the loop
//! carries no flag for it.

use std::sync::Arc;

use super::dead::part;
use super::{Simplifier, simplify};
use crate::graph::{Builder, Equation, Graph, Op, RULE, Var, Vars};
use crate::primitives::{
    Add, Binary, BroadcastInDim, Compare, Constant, Convert, Counter, Direction, Full, Iota, Max, Min, Mul,
    Reshape, Scan, Select, Sub,
};
use crate::tensor::{DType, HostTensor, Number, TensorType};

/// The least and the greatest element of a tensor of integers or truth values.
type Range = (i64, i64);

/// Results of steps that are known from the number of the step are constants.
pub(super) fn of_counters(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let scan = op.downcast_ref::<Scan>()?;
    let rows = scan.constants + scan.states;
    let range = |(i, var): (usize, &Var)| match i {
        _ if i < scan.constants => s.uniform(*var).and_then(known),
        _ if i < rows => {
            counter(s, scan, i - scan.constants, *var).and_then(|counter| counter.range(scan.length))
        }
        _ => {
            let counts = s.made_by::<Iota>(*var).is_some_and(|(iota, _)| iota.counts_rows());
            counts.then(|| (0, scan.length as i64 - 1))
        }
    };
    let ranges: Vec<Option<Range>> = operands.iter().enumerate().map(range).collect();
    if scan.length == 0 || ranges[scan.constants..].iter().all(Option::is_none) {
        return None;
    }
    let body = Arc::new(simplify(&within(&scan.body, &ranges)?));
    Some(s.apply(Arc::new(Scan { body, ..scan.clone() }), operands))
}

/// Rows that give the value of a counter are computed without the loop.
pub(super) fn counted_rows(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let scan = op.downcast_ref::<Scan>().filter(|scan| !scan.reverse)?;
    let (body, first) = (&scan.body, scan.constants);
    let counter_of = |i: usize| {
        let state =
            (0..scan.states).find(|k| i >= scan.states && body.outputs[i] == body.inputs[first + k])?;
        let found = counter(s, scan, state, operands[first + state])?;
        found.range(scan.length).map(|_| found)
    };
    let counters: Vec<Option<Counter>> = (0..body.outputs.len()).map(counter_of).collect();
    counters.iter().flatten().next()?;
    let left: Vec<usize> = (0..counters.len()).filter(|i| counters[*i].is_none()).collect();
    let inputs: Vec<usize> = (0..body.inputs.len()).collect();
    let rest = Scan { body: Arc::new(part(body, &inputs, &left)), ..scan.clone() };
    let mut results = s.apply(Arc::new(rest), operands).into_iter();
    let rows = |counter: Option<Counter>| match counter {
        None => results.next(),
        Some(Counter { dtype, first, step }) => {
            let shape = [scan.length].as_slice().into();
            let ty = TensorType::new(dtype, [scan.length].as_slice());
            let count = s.record(Iota { dtype, shape, dimension: 0 }, &[]);
            let step = s.full(&scalar(dtype, step), &ty.shape);
            let scaled = s.record(Binary(Mul), &[count, step]);
            let first = s.full(&scalar(dtype, first), &ty.shape);
            Some(s.record(Binary(Add), &[scaled, first]))
        }
    };
    counters.into_iter().map(rows).collect()
}

/// State `i` of a loop, which begins as `first`, if it is a counter.
fn counter(s: &Simplifier, scan: &Scan, i: usize, first: Var) -> Option<Counter> {
    let (first, _) = s.uniform(first).and_then(known)?;
    Counter::of(scan, i, first)
}

/// `body` with results that are known for parameters within these ranges; `None` if there are none.
fn within(body: &Graph, ranges: &[Option<Range>]) -> Option<Graph> {
    let mut b = Builder::new();
    let inputs: Vec<(Var, Option<Range>)> =
        b.inputs_of(body).into_iter().zip(ranges.iter().copied()).collect();
    let mut found = false;
    let outputs = body.rebuild(&inputs, |eqn, operands| {
        let vars: Vars = operands.iter().map(|(var, _)| *var).collect();
        let result = body.ty(eqn.outputs[0]);
        let range = range_of(eqn, result, operands).and_then(|range| fits(result.dtype, range));
        if let Some(same) = same_as(eqn, operands) {
            found = true;
            return vec![operands[same]];
        }
        let is_constant = eqn.op.is::<Constant>() || eqn.op.is::<Full>();
        let var = match range.filter(|(low, high)| low == high && !is_constant && eqn.outputs.len() == 1) {
            Some((value, _)) => {
                found = true;
                let value = scalar(result.dtype, value);
                match result.rank() {
                    0 => b.apply(Constant { value, weak: false }, &[]),
                    _ => b.apply(Full { value, shape: result.shape.clone() }, &[]),
                }
            }
            None => {
                return b
                    .bind(eqn.op.clone(), &vars)
                    .expect(RULE)
                    .into_iter()
                    .map(|var| (var, range))
                    .collect();
            }
        };
        vec![(var, range)]
    });
    found.then(|| b.finish(outputs.iter().map(|(var, _)| *var).collect()))
}

/// The elements of the result of `eqn`, of type `ty`, before they wrap around.
fn range_of(eqn: &Equation, ty: &TensorType, operands: &[(Var, Option<Range>)]) -> Option<Range> {
    let op = &eqn.op;
    if let Some(constant) = op.downcast_ref::<Constant>() {
        return known(&constant.value);
    }
    if let Some(full) = op.downcast_ref::<Full>() {
        return known(&full.value);
    }
    let range = |i: usize| operands.get(i).and_then(|(_, range)| *range);
    if op.is::<Reshape>() || op.is::<BroadcastInDim>() || (op.is::<Convert>() && !ty.dtype.is_float()) {
        return range(0);
    }
    if op.is::<Select>() {
        let (on_true, on_false) = (range(1), range(2));
        return match range(0)? {
            (1, 1) => on_true,
            (0, 0) => on_false,
            _ => on_true.zip(on_false).map(|(x, y)| (x.0.min(y.0), x.1.max(y.1))),
        };
    }
    let (x, y) = (range(0)?, range(1)?);
    if op.is::<Binary<Add>>() {
        return Some((x.0.checked_add(y.0)?, x.1.checked_add(y.1)?));
    }
    if op.is::<Binary<Sub>>() {
        return Some((x.0.checked_sub(y.1)?, x.1.checked_sub(y.0)?));
    }
    if op.is::<Binary<Min>>() {
        return Some((x.0.min(y.0), x.1.min(y.1)));
    }
    if op.is::<Binary<Max>>() {
        return Some((x.0.max(y.0), x.1.max(y.1)));
    }
    let compare = op.downcast_ref::<Compare>()?;
    let holds = match compare.direction {
        Direction::Lt => (x.1 < y.0, x.0 >= y.1),
        Direction::Le => (x.1 <= y.0, x.0 > y.1),
        Direction::Gt => (x.0 > y.1, x.1 <= y.0),
        Direction::Ge => (x.0 >= y.1, x.1 < y.0),
        Direction::Eq | Direction::Ne => {
            let (equal, apart) = (x.0 == x.1 && x == y, x.1 < y.0 || y.1 < x.0);
            if compare.direction == Direction::Eq { (equal, apart) } else { (apart, equal) }
        }
    };
    match holds {
        (true, _) => Some((1, 1)),
        (_, true) => Some((0, 0)),
        _ => Some((0, 1)),
    }
}

/// The operand that a minimum or a maximum always is.
fn same_as(eqn: &Equation, operands: &[(Var, Option<Range>)]) -> Option<usize> {
    let [(_, Some(x)), (_, Some(y))] = *operands else { return None };
    let first_is_less = if x.1 <= y.0 { Some(true) } else { (y.1 <= x.0).then_some(false) };
    match () {
        () if eqn.op.is::<Binary<Min>>() => first_is_less.map(|first| usize::from(!first)),
        () if eqn.op.is::<Binary<Max>>() => first_is_less.map(usize::from),
        () => None,
    }
}

/// `range`, if its ends are elements of a tensor of this dtype.
fn fits(dtype: DType, range: Range) -> Option<Range> {
    let (low, high) = match dtype {
        DType::Bool => (0, 1),
        _ => dtype.range().filter(|_| dtype.is_signed_integer())?,
    };
    (low <= range.0 && range.1 <= high).then_some(range)
}

/// The number of which an integer tensor is made throughout, as both ends of its range.
fn known(value: &HostTensor) -> Option<Range> {
    let counts = value.count() == 1 && (value.dtype().is_signed_integer() || value.dtype() == DType::Bool);
    counts.then(|| (value.element_i64(0), value.element_i64(0)))
}

fn scalar(dtype: DType, value: i64) -> HostTensor {
    HostTensor::number(dtype, [].as_slice(), Number::Int(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::evaluate;
    use crate::primitives::Or;

    /// A loop of ten steps whose counter of this dtype goes from `first` by `step`, and is compared with `limit` in each step. The results are the
    /// counter, whether one of them holds, and all values of the counter.
    fn compared(dtype: DType, [first, step, limit]: [f64; 3], direction: Direction, reverse: bool) -> Graph {
        let mut b = Builder::new();
        let (i, found) = (b.input(TensorType::scalar(dtype)), b.input(TensorType::scalar(DType::Bool)));
        let (step, limit) = (b.scalar(dtype, step), b.scalar(dtype, limit));
        let holds = b.compare(direction, i, limit);
        let found = b.apply(Binary(Or), &[found, holds]);
        let next = b.add(i, step);
        let body = Arc::new(b.finish(vec![next, found, i]));
        let mut b = Builder::new();
        let (first, found) = (b.scalar(dtype, first), b.scalar(DType::Bool, 0.0));
        let results =
            b.apply_all(Scan { body, length: 10, constants: 0, states: 2, reverse }, &[first, found]);
        b.finish(results.to_vec())
    }

    /// True if a step of the simplified loop still compares; the results are those of the loop as it was.
    fn compares(graph: &Graph) -> bool {
        let next = simplify(graph);
        let [before, after] = [graph, &next].map(|g| format!("{:?}", evaluate(g, &[])));
        assert_eq!(before, after, "{next}");
        let mut found = false;
        next.visit(&mut |_, eqn| found |= eqn.op.is::<Compare>());
        found
    }

    #[test]
    fn comparisons_of_counters_that_are_known_are_constants() {
        for reverse in [false, true] {
            let compares =
                |dtype, numbers, direction| compares(&compared(dtype, numbers, direction, reverse));
            assert!(!compares(DType::I64, [0.0, 1.0, 10.0], Direction::Ge), "0 to 9");
            assert!(compares(DType::I64, [0.0, 1.0, 9.0], Direction::Ge), "9 in the last step");
            assert!(!compares(DType::I32, [39.0, -1.0, 30.0], Direction::Lt), "39 to 30");
            assert!(compares(DType::I32, [39.0, -1.0, 31.0], Direction::Lt), "30 in the last step");
            assert!(!compares(DType::I32, [3.0, 0.0, 3.0], Direction::Eq), "3 in each step");
            assert!(compares(DType::I8, [100.0, 10.0, 127.0], Direction::Gt), "an overflow");
            assert!(compares(DType::U8, [0.0, 1.0, 20.0], Direction::Gt), "no sign");
            assert!(compares(DType::F32, [0.0, 1.0, 20.0], Direction::Gt), "a float");
        }
    }

    #[test]
    fn a_counter_of_no_steps_does_not_overflow() {
        let counter = Counter { dtype: DType::I64, first: i64::MIN, step: 1 };
        assert_eq!([0, 1].map(|length| counter.range(length)), [None, Some((i64::MIN, i64::MIN))]);
    }

    #[test]
    fn all_values_of_a_counter_are_a_tensor_that_counts() {
        let rows = |reverse| {
            let next = simplify(&compared(DType::I32, [5.0, 3.0, 6.0], Direction::Eq, reverse));
            next.equations.iter().any(|eqn| eqn.op.is::<Iota>())
        };
        assert_eq!([rows(false), rows(true)], [true, false]);
    }
}
