//! The `StableHLO` of `scan`.

use super::Scan;
use super::scan::rows_of;
use crate::stablehlo::{Lowering, Rows, has_loops, numbers};
use crate::tensor::{DType, TensorType};

/// Writes a loop inside of a kernel, from these operands, whose stacks are `written`; its last state.
pub(super) fn in_kernel(
    scan: &Scan,
    to: &mut Lowering<'_>,
    constants: &[String],
    first: &[String],
    tensors: &[Rows],
    written: &[Rows],
) -> Vec<String> {
    let body = &*scan.body;
    let [_, state, rows] = scan.inputs();
    let cells = |to: &mut Lowering<'_>| state.iter().map(|v| to.new_cell(body.ty(*v))).collect::<Vec<_>>();
    // A step reads all of its state before any of it changes.
    let (now, next) = (cells(to), cells(to));
    for (cell, value) in now.iter().zip(first) {
        to.write_cell(cell, value);
    }
    let constant = |to: &mut Lowering<'_>, x: usize| to.temporary(&format!("arith.constant {x} : index"));
    let (zero, one, length) = (constant(to, 0), constant(to, 1), constant(to, scan.length));
    let counter = to.name_temporary();
    to.raw(&format!("scf.for {counter} = {zero} to {length} step {one} {{"));
    let mut position = counter.clone();
    if scan.reverse {
        let left = to.temporary(&format!("arith.subi {length}, {counter} : index"));
        position = to.temporary(&format!("arith.subi {left}, {one} : index"));
    }
    let mut arguments = constants.to_vec();
    for cell in &now {
        arguments.push(to.read_cell(cell));
    }
    for (tensor, var) in tensors.iter().zip(rows) {
        arguments.push(to.read_kernel_row(tensor, body.ty(*var), scan.length, &position));
    }
    let made = to.nested(body, arguments);
    for (cell, value) in next.iter().zip(&made) {
        to.write_cell(cell, value);
    }
    for (i, stack) in written.iter().enumerate() {
        let ty = body.ty(body.outputs[scan.states + i]);
        to.write_kernel_row(stack, &made[scan.states + i], ty, scan.length, &position);
    }
    for (from, into) in next.iter().zip(&now) {
        to.copy_cell(from, into);
    }
    to.raw("}");
    now.iter().map(|cell| to.read_cell(cell)).collect()
}

/// Writes the loop as a kernel.
pub(super) fn as_kernel(scan: &Scan, to: &mut Lowering<'_>) {
    to.as_kernel(|to, read, written| {
        let [constants, state, tensors] = scan.parts(read);
        let loaded =
            |to: &mut Lowering<'_>, rows: &[Rows]| rows.iter().map(|x| to.load(x)).collect::<Vec<_>>();
        let (constants, first) = (loaded(to, constants), loaded(to, state));
        let last = in_kernel(scan, to, &constants, &first, tensors, &written[scan.states..]);
        for (value, result) in last.iter().zip(written) {
            to.store(value, result);
        }
    });
}

/// Writes the loop inside of a kernel, with its stacks in the kernel's memory.
pub(super) fn within_kernel(scan: &Scan, to: &mut Lowering<'_>) {
    let body = &*scan.body;
    let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
    let [constants, first, tensors] = scan.parts(&operands);
    let tensors: Vec<Rows> = tensors.iter().map(|x| Rows::Value(x.clone())).collect();
    let mut stacks = Vec::new();
    for var in &body.outputs[scan.states..] {
        stacks.push(to.new_cell(&rows_of(body.ty(*var), scan.length)));
    }
    let written: Vec<Rows> = stacks.iter().cloned().map(Rows::Cell).collect();
    let mut results = in_kernel(scan, to, constants, first, &tensors, &written);
    for stack in &stacks {
        results.push(to.read_cell(stack));
    }
    to.name_results(&results);
}

/// Most equations of the steps that are written one after the other in an iteration.
const WRITTEN_OUT: usize = 64;

/// Most numbers that these steps read and give: IREE may make one kernel of what is done with them.
const WRITTEN_NUMBERS: usize = 16;

/// How many steps are written in an iteration: each iteration is a submission of its own, which takes some microseconds.
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

/// Writes a loop whose counter is on the host, as blocks of `main`.
pub(super) fn in_blocks(scan: &Scan, to: &mut Lowering<'_>) {
    let body = &*scan.body;
    let operands: Vec<String> = (0..to.operand_count()).map(|i| to.operand(i)).collect();
    let [constants, state, tensors] = scan.parts(&operands);
    let given = &body.outputs[scan.states..];
    let position_type = TensorType::scalar(DType::I32);
    let constant = |to: &mut Lowering<'_>, x: usize| to.temporary(&format!("arith.constant {x} : index"));
    let (first, one, length) = (constant(to, 0), constant(to, 1), constant(to, scan.length));
    let corner = to.splat(&position_type, "0");

    let mut first_values = vec![first];
    first_values.extend_from_slice(state);
    for var in given {
        first_values.push(to.new_stack(&rows_of(body.ty(*var), scan.length)));
    }
    let names: Vec<String> = first_values.iter().map(|_| to.name_temporary()).collect();
    let types = [vec!["index".to_owned()], to.result_type_names()].concat();
    let blocks = to.loop_head(&names, &types, &first_values);
    let goes_on = to.temporary(&format!("arith.cmpi slt, {}, {length} : index", names[0]));
    to.loop_body(&blocks, &goes_on);
    let mut counter = names[0].clone();
    let mut carried = names[1..].to_vec();
    for _ in 0..steps_at_once(scan) {
        let mut position = counter.clone();
        if scan.reverse {
            let left = to.temporary(&format!("arith.subi {length}, {position} : index"));
            position = to.temporary(&format!("arith.subi {left}, {one} : index"));
        }
        let position = to.temporary(&format!("arith.index_cast {position} : index to i32"));
        let position = to.temporary(&format!("tensor.from_elements {position} : tensor<i32>"));
        carried = step(scan, to, constants, &carried, tensors, &position, &corner);
        counter = to.temporary(&format!("arith.addi {counter}, {one} : index"));
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
    let position = if scan.reverse {
        let last = to.value("stablehlo.subtract", &[&length, &one], &counter);
        to.value("stablehlo.subtract", &[&last, &names[0]], &counter)
    } else {
        names[0].clone()
    };
    to.enter_region();
    let next = step(scan, to, constants, &names[1..], tensors, &position, &first);
    to.leave_region();
    let counted = to.value("stablehlo.add", &[&names[0], &one], &counter);
    to.give(&[vec![counted], next].concat(), &types);
    to.raw("}");
    to.hold(&held);
}

/// Writes the step at `position`; the next state, and the stacks with the rows that the step gives.
fn step(
    scan: &Scan,
    to: &mut Lowering<'_>,
    constants: &[String],
    carried: &[String],
    tensors: &[String],
    position: &str,
    corner: &str,
) -> Vec<String> {
    let body = &*scan.body;
    let (state, stacks) = carried.split_at(scan.states);
    let mut arguments = [constants, state].concat();
    for (tensor, var) in tensors.iter().zip(scan.inputs()[2]) {
        arguments.push(read_row(to, tensor, body.ty(*var), scan.length, position, corner));
    }
    let mut next = to.nested(body, arguments);
    for (i, (stack, var)) in stacks.iter().zip(&body.outputs[scan.states..]).enumerate() {
        let row = &mut next[scan.states + i];
        *row = write_row(to, stack, row, body.ty(*var), scan.length, position, corner);
    }
    next
}

/// Where the row at `position` starts, and the types of that.
fn starts(rank: usize, position: &str, corner: &str) -> (String, String) {
    let starts = std::iter::once(position).chain(std::iter::repeat_n(corner, rank)).collect::<Vec<_>>();
    let types = vec!["tensor<i32>"; rank + 1];
    (starts.join(", "), types.join(", "))
}

/// Writes `row at position of tensor`, a value of type `ty`.
fn read_row(
    to: &mut Lowering<'_>,
    tensor: &str,
    ty: &TensorType,
    length: usize,
    position: &str,
    corner: &str,
) -> String {
    let (starts, types) = starts(ty.rank(), position, corner);
    let (from, one) = (rows_of(ty, length).mlir(), rows_of(ty, 1).mlir());
    let extents: Vec<String> =
        std::iter::once(1).chain(ty.shape.iter().copied()).map(|n| n.to_string()).collect();
    let row = to.temporary(&format!(
        "stablehlo.dynamic_slice {tensor}, {starts}, sizes = [{}] : ({from}, {types}) -> {one}",
        extents.join(", ")
    ));
    to.temporary(&format!("stablehlo.reshape {row} : ({one}) -> {}", ty.mlir()))
}

/// Writes `tensor with row, a value of type ty, at position`.
fn write_row(
    to: &mut Lowering<'_>,
    tensor: &str,
    row: &str,
    ty: &TensorType,
    length: usize,
    position: &str,
    corner: &str,
) -> String {
    let (starts, types) = starts(ty.rank(), position, corner);
    let (into, one) = (rows_of(ty, length).mlir(), rows_of(ty, 1).mlir());
    let row = to.temporary(&format!("stablehlo.reshape {row} : ({}) -> {one}", ty.mlir()));
    to.temporary(&format!(
        "stablehlo.dynamic_update_slice {tensor}, {row}, {starts} : ({into}, {one}, {types}) -> {into}"
    ))
}
