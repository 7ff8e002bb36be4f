//! Rows and boxes that are put into zeros, multiplied and added to another tensor.
//!
//! Elements that get several rows are summed in another order, and zeros that get none may have another sign. The 16-bit floats are left
//! alone: a sum of rows is rounded once.

use std::sync::Arc;

use super::elementwise::{is, is_binary};
use super::{Simplifier, one};
use crate::graph::{DefUse, Equation, Graph, Op, Var, Vars};
use crate::primitives::{
    Add, Binary, DynamicSlice, DynamicUpdateSlice, Full, Mul, Neg, OptimizationBarrier, ScatterAdd, Sub,
    Unary,
};
use crate::tensor::{DType, HostTensor, TensorType};

/// Rows that a sum or a difference with another tensor takes are added to that tensor, not to zeros first: the gradient of an
/// embedding that is a matrix of logits too needs no second tensor of its size, and a step of gradient descent visits those rows alone.
pub(super) fn into_other_term(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = *operands else { return None };
    let (sum, difference) = (is_binary::<Add>(op), is_binary::<Sub>(op));
    if !(sum || difference) {
        return None;
    }
    let added = |rows: Var| {
        let (_, [zeros, indices, updates]) = s.made_by::<ScatterAdd>(rows)? else { return None };
        let few = are_few(s.ty(rows), s.ty(*updates)) && is(s, *zeros, 0.0);
        few.then_some([*indices, *updates])
    };
    if let Some([indices, mut updates]) = added(y) {
        if difference {
            updates = s.record(Unary(Neg), &[updates]);
        }
        return one(s.record(ScatterAdd, &[x, indices, updates]));
    }
    let [indices, updates] = added(x).filter(|_| sum)?;
    one(s.record(ScatterAdd, &[y, indices, updates]))
}

/// A box put into zeros that a sum takes is added where it lies in the other tensor: the gradient of a `dynamic_slice` needs no second
/// tensor of the operand's size.
pub(super) fn box_into_other_term(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let [x, y] = *operands else { return None };
    if !is_binary::<Add>(op) {
        return None;
    }
    let put = |all: Var| {
        let (_, [zeros, update, starts @ ..]) = s.made_by::<DynamicUpdateSlice>(all)? else { return None };
        let few = are_few(s.ty(all), s.ty(*update)) && is(s, *zeros, 0.0);
        few.then(|| (*update, Vars::from_slice(starts)))
    };
    let (x, (update, starts)) = put(y).map(|put| (x, put)).or_else(|| Some((y, put(x)?)))?;
    let sizes = s.ty(update).shape.clone();
    let old = s.record(DynamicSlice { sizes }, &[&[x], &starts[..]].concat());
    let sum = s.record(Binary(Add), &[old, update]);
    one(s.record(DynamicUpdateSlice, &[&[x, sum], &starts[..]].concat()))
}

/// True if adding the rows of `updates` to a tensor of type `all` leaves most of it as it is.
fn are_few(all: &TensorType, updates: &TensorType) -> bool {
    !matches!(all.dtype, DType::F16 | DType::BF16) && 4 * updates.count() <= all.count()
}

/// `graph` with rows multiplied before they are added to zeros, where the sum is read by a product with a number alone; `None` if
/// there are none.
pub(super) fn multiplied_first(graph: &Graph) -> Option<Graph> {
    graph.equations.iter().find(|eqn| eqn.op.is::<ScatterAdd>())?;
    let uses = DefUse::of(graph);
    let mut next = Graph { equations: Vec::new(), ..graph.clone() };
    for eqn in &graph.equations {
        let Some((number, [zeros, indices, updates])) = multiplied(&uses, eqn) else {
            next.equations.push(eqn.clone());
            continue;
        };
        let ty = graph.ty(updates);
        let [factor, product] = [0, 1].map(|n| Var((next.types.len() + n) as u32));
        next.types.extend([ty.clone(), ty.clone()]);
        let full = Full { value: number.clone(), shape: ty.shape.clone() };
        let equations: [(Op, &[Var], Vars); 3] = [
            (Arc::new(full), &[], Vars::from_slice(&[factor])),
            (eqn.op.clone(), &[factor, updates], Vars::from_slice(&[product])),
            (Arc::new(ScatterAdd), &[zeros, indices, product], eqn.outputs.clone()),
        ];
        next.equations.extend(equations.map(|(op, inputs, outputs)| Equation {
            op,
            inputs: Vars::from_slice(inputs),
            outputs,
            span: eqn.span,
        }));
    }
    (next.types.len() > graph.types.len()).then_some(next)
}

/// The number and the operands of the `scatter_add`, if `eqn` is such a product.
fn multiplied<'a>(uses: &DefUse<'a>, eqn: &'a Equation) -> Option<(&'a HostTensor, [Var; 3])> {
    if !is_binary::<Mul>(&eqn.op) {
        return None;
    }
    let with = |number: Var, rows: Var| {
        let value = &uses.definition(number)?.op.downcast_ref::<Full>()?.value;
        let scatter = uses.definition(before_barrier(uses, rows)?).filter(|eqn| eqn.op.is::<ScatterAdd>())?;
        let [zeros, indices, updates] = *scatter.inputs else { return None };
        let from_zeros = uses.definition(zeros)?.op.downcast_ref::<Full>()?.value.element_f64(0) == 0.0;
        let few = are_few(uses.graph.ty(rows), uses.graph.ty(updates));
        (few && from_zeros && value.element_f64(0).is_finite()).then_some((value, [zeros, indices, updates]))
    };
    let [x, y] = *eqn.inputs else { return None };
    with(x, y).or_else(|| with(y, x))
}

/// The operand of the barrier that gives `var`, or `var` itself; `None` if either is read more than once. Rows that are added are a kernel
/// of their own with the barrier of `value_and_grad` and without.
fn before_barrier(uses: &DefUse<'_>, var: Var) -> Option<Var> {
    let once = |var: Var| (uses.count(var) == 1).then_some(var);
    let eqn = uses.definition(once(var)?)?;
    if !eqn.op.is::<OptimizationBarrier>() {
        return Some(var);
    }
    let position = eqn.outputs.iter().position(|v| *v == var)?;
    once(eqn.inputs[position])
}
