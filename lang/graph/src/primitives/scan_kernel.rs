//! The `StableHLO` of `scan` in a kernel.

use super::Scan;
use super::scan::rows_of;
use crate::stablehlo::{Binding, Lowering, RowSource, RowTarget};

/// Writes a loop inside of a kernel, from these operands, whose stacks are `written`; the last state.
pub(super) fn in_kernel(
    scan: &Scan,
    to: &mut Lowering<'_>,
    constants: &[String],
    first: &[String],
    tensors: &[RowSource],
    written: &[RowTarget],
) -> Vec<String> {
    let body = &*scan.body;
    let [_, state, _] = scan.inputs();
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
    for tensor in tensors {
        arguments.push(to.read_kernel_row(tensor, &position));
    }
    let made = to.nested(body, arguments);
    for (cell, value) in next.iter().zip(&made) {
        to.write_cell(cell, value);
    }
    for (stack, row) in written.iter().zip(&made[scan.states..]) {
        to.write_kernel_row(stack, row, &position);
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
        let loaded = |to: &mut Lowering<'_>, x: &[Binding]| x.iter().map(|x| to.load(x)).collect::<Vec<_>>();
        let (constants, first) = (loaded(to, constants), loaded(to, state));
        let tensors: Vec<RowSource> = tensors.iter().cloned().map(RowSource::Binding).collect();
        let stacks: Vec<RowTarget> = written[scan.states..].iter().cloned().map(RowTarget::Binding).collect();
        let last = in_kernel(scan, to, &constants, &first, &tensors, &stacks);
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
    let rows = scan.inputs()[2].iter().map(|v| rows_of(body.ty(*v), scan.length));
    let tensors: Vec<RowSource> =
        tensors.iter().cloned().zip(rows).map(|(x, ty)| RowSource::Value(x, ty)).collect();
    let mut stacks = Vec::new();
    for var in &body.outputs[scan.states..] {
        stacks.push(to.new_cell(&rows_of(body.ty(*var), scan.length)));
    }
    let written: Vec<RowTarget> = stacks.iter().cloned().map(RowTarget::Cell).collect();
    let mut results = in_kernel(scan, to, constants, first, &tensors, &written);
    for stack in &stacks {
        results.push(to.read_cell(stack));
    }
    to.name_results(&results);
}
