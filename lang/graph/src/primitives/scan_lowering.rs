//! The `StableHLO` of `scan`, as blocks of `main` or as a `while`.

use std::sync::Arc;

use super::scan::rows_of;
use super::scan_updates::Updates;
use super::{Counter, Scan};
use crate::stablehlo::{Lowering, has_loops, numbers, quirks};
use crate::tensor::{DType, TensorType};

/// Maximum equations of the steps that are written one after the other in an iteration.
const WRITTEN_OUT: usize = 64;

/// Maximum numbers that these steps read and give: IREE may make one kernel of all their uses.
const WRITTEN_NUMBERS: usize = 16;

/// Number of steps that are written in an iteration: each iteration is a submission of its own, which takes some
/// microseconds.
fn steps_at_once(scan: &Scan) -> usize {
    let (size, numbers) = (scan.body.size(), numbers(&scan.body));
    let fits = |steps: &usize| {
        scan.length.is_multiple_of(*steps)
            && steps * size <= WRITTEN_OUT
            && steps * numbers <= WRITTEN_NUMBERS
            && !has_loops(&scan.body)
    };
    [8, 5, 4, 3, 2].into_iter().find(fits).unwrap_or(1)
}

/// The form of a state of a loop in blocks.
enum State {
    /// A number that the host computes from the number of the step.
    Counter(Counter),
    /// Memory of its own, which a step updates in place.
    Updated,
    /// A value that a step makes.
    Made,
}

/// Writes a loop whose counter is on the host, as blocks of `main`.
pub(super) fn in_blocks(scan: &Scan, to: &mut Lowering<'_>) {
    let Updates { in_place, body, is_read } = Updates::of(scan);
    let scan = &Scan { body: Arc::new(body), ..scan.clone() };
    let body = &*scan.body;
    let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
    let [constants, state, tensors] = scan.parts(&operands);
    let form = |(i, updated): (usize, &bool)| match counter(scan, to, i) {
        Some(counter) => State::Counter(counter),
        None if *updated => State::Updated,
        None => State::Made,
    };
    let forms: Vec<State> = in_place.iter().enumerate().map(form).collect();
    let constant = |to: &mut Lowering<'_>, x: usize| to.temporary(&format!("arith.constant {x} : index"));
    let (first, one, length) = (constant(to, 0), constant(to, 1), constant(to, scan.length));
    let corner = to.splat(&TensorType::scalar(DType::I32), "0");

    let mut first_values = vec![first];
    for ((value, var), form) in state.iter().zip(scan.inputs()[1]).zip(&forms) {
        let ty = body.ty(*var);
        first_values.push(match form {
            State::Counter(_) => value.clone(),
            State::Updated => to.copy_apart(value, ty),
            State::Made => to.own_buffer(value, ty),
        });
    }
    for var in &body.outputs[scan.states..] {
        let rows = rows_of(body.ty(*var), scan.length);
        let stack = to.new_stack(&rows);
        first_values.push(to.own_buffer(&stack, &rows));
    }
    let names: Vec<String> = first_values.iter().map(|_| to.name_temporary()).collect();
    let types = [vec!["index".to_owned()], to.result_type_names()].concat();
    let blocks = to.loop_head(&names, &types, &first_values);
    let goes_on = to.temporary(&format!("arith.cmpi slt, {}, {length} : index", names[0]));
    to.loop_body(&blocks, &goes_on);
    let mut done = names[0].clone();
    let mut carried = names[1..].to_vec();
    for ((name, var), form) in carried.iter_mut().zip(&body.outputs).zip(&forms) {
        match form {
            State::Counter(counter) => *name = value_of(counter, &done, to),
            State::Updated => *name = to.own_buffer(name, body.ty(*var)),
            State::Made => {}
        }
    }
    for _ in 0..if is_read { 1 } else { steps_at_once(scan) } {
        let mut position = done.clone();
        if scan.reverse {
            let left = to.temporary(&format!("arith.subi {length}, {position} : index"));
            position = to.temporary(&format!("arith.subi {left}, {one} : index"));
        }
        let number = to.temporary(&format!("arith.index_cast {position} : index to i32"));
        let row = to.host_scalar(&number, DType::I32);
        let position = Position { row, corner: corner.clone(), number: Some(position) };
        let states = carried.iter().zip(&forms).filter(|(_, form)| matches!(form, State::Updated));
        states.for_each(|(name, _)| to.may_be_updated(name.clone()));
        carried = step(scan, to, constants, &carried, tensors, &position);
        done = to.temporary(&format!("arith.addi {done}, {one} : index"));
    }
    for (i, form) in forms.iter().enumerate() {
        match form {
            State::Counter(_) => carried[i].clone_from(&names[1 + i]),
            State::Made if in_place.contains(&true) => {
                carried[i] = to.own_buffer(&carried[i], body.ty(body.outputs[i]));
            }
            State::Updated | State::Made => {}
        }
    }
    to.loop_exit(&blocks, &[vec![done], carried].concat(), &types);
    let mut results = names[1..].to_vec();
    for (result, form) in results.iter_mut().zip(&forms) {
        if let State::Counter(counter) = form {
            let last = counter.first + counter.step * scan.length as i64;
            *result = to.splat(&TensorType::scalar(counter.dtype), &last.to_string());
        }
    }
    to.name_results(&results);
}

/// State `i`, if it is a counter from a known number.
fn counter(scan: &Scan, to: &Lowering<'_>, i: usize) -> Option<Counter> {
    let first = to.repeated_number(scan.constants + i)?.parse().ok()?;
    Counter::of(scan, i, first).filter(|counter| counter.range(scan.length).is_some())
}

/// Writes the value of a counter after `steps` of the host; its name.
fn value_of(counter: &Counter, steps: &str, to: &mut Lowering<'_>) -> String {
    let ty = counter.dtype.mlir();
    let steps = to.temporary(&format!("arith.index_cast {steps} : index to {ty}"));
    let step = to.temporary(&format!("arith.constant {} : {ty}", counter.step));
    let counted = to.temporary(&format!("arith.muli {steps}, {step} : {ty}"));
    let first = to.temporary(&format!("arith.constant {} : {ty}", counter.first));
    let value = to.temporary(&format!("arith.addi {counted}, {first} : {ty}"));
    to.host_scalar(&value, counter.dtype)
}

/// Writes a `while` that counts; the tensors of rows that it gives are part of its state.
pub(super) fn in_region(scan: &Scan, to: &mut Lowering<'_>) {
    let body = &*scan.body;
    let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
    let [constants, state, tensors] = scan.parts(&operands);
    let given = &body.outputs[scan.states..];
    let counter = TensorType::scalar(DType::I32);
    let first = to.splat(&counter, "0");
    let length = to.splat(&counter, &scan.length.to_string());
    let one = to.splat(&counter, "1");

    let mut first_values = vec![first.clone()];
    first_values.extend_from_slice(state);
    for var in given {
        first_values.push(to.new_stack(&rows_of(body.ty(*var), scan.length)));
    }
    let names: Vec<String> = first_values.iter().map(|_| to.name_temporary()).collect();
    let bindings: Vec<String> =
        names.iter().zip(&first_values).map(|(name, value)| format!("{name} = {value}")).collect();
    let count = to.name_temporary();
    let types = format!("tensor<i32>, {}", to.result_types());
    let held = to.results_to_hold();
    let results = [vec![count], held.clone()].concat().join(", ");
    to.raw(&format!("{results} = stablehlo.while({}) : {types}", bindings.join(", ")));
    to.raw("cond {");
    let goes_on = to.compare("LT", &names[0], &length, &counter);
    to.give(&[goes_on], "tensor<i1>");
    to.raw("} do {");
    let row = if scan.reverse {
        let last = to.value("stablehlo.subtract", &[&length, &one], &counter);
        to.value("stablehlo.subtract", &[&last, &names[0]], &counter)
    } else {
        names[0].clone()
    };
    to.enter_region();
    let mut next =
        step(scan, to, constants, &names[1..], tensors, &Position { row, corner: first, number: None });
    quirks::hold_states(to, body, scan.inputs()[1], &names[1..], &mut next);
    to.leave_region();
    let counted = to.value("stablehlo.add", &[&names[0], &one], &counter);
    to.give(&[vec![counted], next].concat(), &types);
    to.raw("}");
    to.hold(&held);
}

/// Position of a row: numbers in the program, and a zero for the axes after the first.
struct Position {
    row: String,
    corner: String,
    /// The row on the host, which the loop has there as blocks.
    number: Option<String>,
}

impl Position {
    /// The start of the row in a tensor of this rank, and the types of its numbers.
    fn starts(&self, rank: usize) -> (String, String) {
        let starts = [vec![self.row.as_str()], vec![self.corner.as_str(); rank - 1]].concat();
        (starts.join(", "), vec!["tensor<i32>"; rank].join(", "))
    }
}

/// Writes a step; the next state, and the stacks with the rows that the step gives.
fn step(
    scan: &Scan,
    to: &mut Lowering<'_>,
    constants: &[String],
    carried: &[String],
    tensors: &[String],
    position: &Position,
) -> Vec<String> {
    let body = &*scan.body;
    let (state, stacks) = carried.split_at(scan.states);
    let mut arguments = [constants, state].concat();
    for (i, (tensor, var)) in tensors.iter().zip(scan.inputs()[2]).enumerate() {
        let ty = body.ty(*var);
        let counted = position.number.as_ref().filter(|_| to.counts(scan.constants + scan.states + i));
        arguments.push(match counted {
            Some(number) => {
                let number =
                    to.temporary(&format!("arith.index_cast {number} : index to {}", ty.dtype.mlir()));
                to.host_scalar(&number, ty.dtype)
            }
            None => read_row(to, tensor, &rows_of(ty, scan.length), position),
        });
    }
    let mut next = to.nested(body, arguments);
    for (i, (stack, var)) in stacks.iter().zip(&body.outputs[scan.states..]).enumerate() {
        let row = &mut next[scan.states + i];
        *row = write_row(to, stack, &rows_of(body.ty(*var), scan.length), row, position);
    }
    next
}

/// Types of one row of a tensor of this type: with the first axis, and without it.
fn row_types(rows: &TensorType) -> (TensorType, String) {
    let row = TensorType::new(rows.dtype, &rows.shape[1..]);
    (rows_of(&row, 1), row.mlir())
}

/// Writes a reading of a row of `tensor`, which has type `rows`; the name of the row.
fn read_row(to: &mut Lowering<'_>, tensor: &str, rows: &TensorType, position: &Position) -> String {
    let (starts, types) = position.starts(rows.rank());
    let ((one, row), from) = (row_types(rows), rows.mlir());
    let (sizes, one) = (one.shape.to_vec(), one.mlir());
    let read = to.temporary(&format!(
        "stablehlo.dynamic_slice {tensor}, {starts}, sizes = {sizes:?} : ({from}, {types}) -> {one}"
    ));
    to.temporary(&format!("stablehlo.reshape {read} : ({one}) -> {row}"))
}

/// Writes `tensor`, which has type `rows`, with another row; the name of the result.
fn write_row(
    to: &mut Lowering<'_>,
    tensor: &str,
    rows: &TensorType,
    row: &str,
    position: &Position,
) -> String {
    let (starts, types) = position.starts(rows.rank());
    let ((one, ty), into) = (row_types(rows), rows.mlir());
    let one = one.mlir();
    let update = to.temporary(&format!("stablehlo.reshape {row} : ({ty}) -> {one}"));
    to.temporary(&format!(
        "stablehlo.dynamic_update_slice {tensor}, {update}, {starts} : ({into}, {one}, {types}) -> {into}"
    ))
}
