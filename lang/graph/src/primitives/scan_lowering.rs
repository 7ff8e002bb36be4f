//! The `StableHLO` of `scan`, as blocks of `main` or as a `while`.

use std::sync::Arc;

use super::Scan;
use super::scan::rows_of;
use super::scan_updates::Updates;
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

/// Writes a loop whose counter is on the host, as blocks of `main`. States that a step updates have
/// memory of their own, and are written over.
pub(super) fn in_blocks(scan: &Scan, to: &mut Lowering<'_>) {
    let Updates { in_place, body, is_read } = Updates::of(scan);
    let scan = &Scan { body: Arc::new(body), ..scan.clone() };
    let body = &*scan.body;
    let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
    let [constants, state, tensors] = scan.parts(&operands);
    let given = &body.outputs[scan.states..];
    let position_type = TensorType::scalar(DType::I32);
    let constant = |to: &mut Lowering<'_>, x: usize| to.temporary(&format!("arith.constant {x} : index"));
    let (first, one, length) = (constant(to, 0), constant(to, 1), constant(to, scan.length));
    let corner = to.splat(&position_type, "0");

    let mut first_values = vec![first];
    for (value, (var, updated)) in state.iter().zip(scan.inputs()[1].iter().zip(&in_place)) {
        let ty = body.ty(*var);
        first_values.push(if *updated { to.copy_apart(value, ty) } else { to.own_buffer(value, &ty.mlir()) });
    }
    for var in given {
        let rows = rows_of(body.ty(*var), scan.length);
        let stack = to.new_stack(&rows);
        first_values.push(to.own_buffer(&stack, &rows.mlir()));
    }
    let names: Vec<String> = first_values.iter().map(|_| to.name_temporary()).collect();
    let types = [vec!["index".to_owned()], to.result_type_names()].concat();
    let blocks = to.loop_head(&names, &types, &first_values);
    let goes_on = to.temporary(&format!("arith.cmpi slt, {}, {length} : index", names[0]));
    to.loop_body(&blocks, &goes_on);
    let mut counter = names[0].clone();
    let mut carried = names[1..].to_vec();
    for ((name, ty), updated) in carried.iter_mut().zip(&types[1..]).zip(&in_place) {
        if *updated {
            *name = to.own_buffer(name, ty);
        }
    }
    for _ in 0..if is_read { 1 } else { steps_at_once(scan) } {
        let mut position = counter.clone();
        if scan.reverse {
            let left = to.temporary(&format!("arith.subi {length}, {position} : index"));
            position = to.temporary(&format!("arith.subi {left}, {one} : index"));
        }
        let position = to.temporary(&format!("arith.index_cast {position} : index to i32"));
        let row = to.temporary(&format!("tensor.from_elements {position} : tensor<i32>"));
        let position = Position { row, corner: corner.clone() };
        let states = carried.iter().zip(&in_place).filter(|(_, updated)| **updated);
        states.for_each(|(name, _)| to.may_be_updated(name.clone()));
        carried = step(scan, to, constants, &carried, tensors, &position);
        counter = to.temporary(&format!("arith.addi {counter}, {one} : index"));
    }
    if in_place.contains(&true) {
        for ((name, ty), updated) in carried.iter_mut().zip(&types[1..]).zip(&in_place) {
            if !*updated {
                *name = to.own_buffer(name, ty);
            }
        }
    }
    to.loop_exit(&blocks, &[vec![counter], carried].concat(), &types);
    to.name_results(&names[1..]);
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
    let mut next = step(scan, to, constants, &names[1..], tensors, &Position { row, corner: first });
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
    for (tensor, var) in tensors.iter().zip(scan.inputs()[2]) {
        arguments.push(read_row(to, tensor, &rows_of(body.ty(*var), scan.length), position));
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
