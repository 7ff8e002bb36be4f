//! `scan` over rows that do not depend on each other, as in a recurrent net over a batch, as one kernel.
//!
//! A step of such a loop is too little work to be shared among cores, and has a dispatch for each product and each chain of
//! element-wise operations. Here each workgroup owns some rows of the batch, and takes all steps for these alone: the products of a
//! step are made tile by tile in registers, what is between them vector by vector, and rows of stacks are read and written in place.

mod form;
mod plan;
mod product;
mod step;
#[cfg(test)]
mod tests;

use self::plan::Plan;
use self::step::Step;
use super::Scan;
use super::scan::rows_of;
use crate::graph::Op;
use crate::stablehlo::Lowering;
use crate::tensor::TensorType;

/// True for a `scan` whose rows do not depend on each other, and whose steps are work enough to be taken for some of them at a time.
pub fn is_by_rows(op: &Op) -> bool {
    op.downcast_ref::<Scan>().is_some_and(|scan| Plan::of(scan).is_some())
}

/// Writes the loop as a kernel in which each workgroup owns some rows; false if the loop has none that are independent.
pub(super) fn as_kernel(scan: &Scan, to: &mut Lowering<'_>) -> bool {
    if !to.is_for_processor() || to.in_kernel() {
        return false;
    }
    let Some(plan) = Plan::of(scan) else { return false };
    let mut operands = Vec::new();
    for place in &plan.places {
        let (x, from, ty) =
            (to.operand(place.input), to.operand_type(place.input).clone(), plan.place_type(place));
        operands.push((to.with_shape(&x, &from, &ty), ty));
    }
    for weights in &plan.weights {
        operands.push(weights.packed(plan.rows, to));
    }
    let flat = |(i, width): (usize, usize)| {
        let row = plan.rows_type(width);
        if i < scan.states { row } else { rows_of(&row, scan.length) }
    };
    let mut types: Vec<TensorType> = plan.result_widths().enumerate().map(flat).collect();
    types.push(plan.scratch_type());
    let made = to.loop_nest(&operands, &types, plan.groups, |nest, read, written, group| {
        Step::new(nest, &plan, read, written, group).take_all(nest);
    });
    let mut names = Vec::new();
    for i in 0..types.len() - 1 {
        let into = to.result_type(i).clone();
        names.push(to.with_shape(&made[i], &types[i], &into));
    }
    to.name_results(&names);
    true
}
