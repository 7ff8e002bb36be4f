//! Simplification of a graph before it is emitted: fewer equations with the same results.
//!
//! A round walks the equations once, in order. Each is recorded again through `Simplifier::apply`, which tries the
//! rules of `RULES` on it, looks for an equal equation recorded before, and records it otherwise. Since the operands of
//! an equation are simplified before it, rules look no further than the definitions of its operands, and the equations
//! that a rule records go through the rules in turn. Then dead equations are removed, with unused results and operands
//! of loops and conditionals; if those shrank, another round follows.
//!
//! Spans are dropped: only messages of tracing need them.
//!
//! A rule changes no result, including rounding, NaN and the sign of zero, except that a NaN may have other bits, and
//! that large products hoisted out of a loop (`scan_products`), rows added to a sum (`scatter`) and all of a tensor (`reduction`) are summed in
//! another order.

mod captured;
mod cond;
mod convert;
mod dead;
mod elementwise;
mod fold;
mod layout;
mod one_hot;
mod pieces;
mod ranges;
mod reduction;
mod scan;
mod scan_products;
mod scatter;
#[cfg(test)]
mod tests;
mod while_loop;

use std::collections::HashMap;
use std::sync::Arc;

use crate::graph::{Builder, Equation, Graph, Op, RULE, Var, Vars, inline_calls, verify};
use crate::primitives::{self as p, Primitive};
use crate::tensor::{HostTensor, Shape, TensorType};

/// `graph` with the same parameters and results in fewer equations. All types are strong: only tracing needs weak
/// types. Calls are inlined.
pub fn simplify(graph: &Graph) -> Graph {
    let mut graph = inline_calls(graph);
    loop {
        let (next, narrowed) = dead::remove(round(&graph));
        debug_assert_eq!(verify(&next), Ok(()), "{next}");
        graph = next;
        if narrowed {
            continue;
        }
        match scatter::multiplied_first(&graph) {
            Some(next) => graph = next,
            None => return graph,
        }
    }
}

/// Every equation recorded again, through the rules.
fn round(graph: &Graph) -> Graph {
    let mut s = Simplifier::default();
    let inputs: Vec<Var> = graph.inputs.iter().map(|v| s.b.input(strong(graph.ty(*v)))).collect();
    let outputs = s.inline(graph, &inputs);
    s.b.finish(outputs)
}

/// `ty`, strong.
fn strong(ty: &TensorType) -> TensorType {
    ty.with_dtype(ty.dtype)
}

/// A rewrite rule: the results of an equation, given its operation and operands; `None` if it does not apply.
type Rule = fn(&mut Simplifier, &Op, &[Var]) -> Option<Vars>;

/// All rules; the first that applies is used.
const RULES: &[Rule] = &[
    fold::constants,
    fold::uniform,
    fold::empty,
    convert::alias,
    convert::of_convert,
    elementwise::neutral,
    elementwise::same,
    elementwise::twice,
    elementwise::signs,
    elementwise::choice,
    layout::nothing,
    layout::reshape_of_reshape,
    layout::reshape_of_broadcast,
    layout::transpose_of_transpose,
    layout::transpose_as_reshape,
    layout::broadcast_of_broadcast,
    layout::broadcast_of_reshape,
    layout::broadcast_as_reshape,
    pieces::whole,
    pieces::split,
    pieces::slice_of_slice,
    pieces::slice_of_concatenate,
    reduction::single,
    reduction::of_sums,
    one_hot::any,
    one_hot::sum,
    one_hot::negative,
    scatter::into_other_term,
    scatter::box_into_other_term,
    cond::known,
    scan::unchanged,
    scan::captured,
    ranges::of_counters,
    ranges::counted_rows,
    scan_products::rows_given,
    scan_products::before,
    scan_products::after,
    scan_products::flat,
    while_loop::unchanged,
    while_loop::captured,
];

/// The new graph so far.
#[derive(Default)]
struct Simplifier {
    b: Builder,
    /// The equation that defines a variable, by the variable's number; `None` for parameters.
    makers: Vec<Option<usize>>,
    /// Results of each operation and its operands so far: common subexpressions are recorded once.
    recorded: HashMap<(Op, Vars), Vars>,
    /// True while products hoisted out of a loop are recorded.
    flattens: bool,
}

impl Simplifier {
    /// The type of a variable.
    fn ty(&self, var: Var) -> &TensorType {
        self.b.ty(var)
    }

    /// The equation that defines a variable, unless it is a parameter.
    fn maker(&self, var: Var) -> Option<&Equation> {
        let n = self.makers.get(var.index()).copied().flatten()?;
        Some(&self.b.graph().equations[n])
    }

    /// The operation that defines a variable, if it is a `P`, with its operands.
    fn made_by<P: Primitive>(&self, var: Var) -> Option<(&P, &[Var])> {
        let eqn = self.maker(var)?;
        Some((eqn.op.downcast_ref::<P>()?, &eqn.inputs))
    }

    /// The value of a constant.
    fn constant(&self, var: Var) -> Option<&HostTensor> {
        self.made_by::<p::Constant>(var).map(|(op, _)| &op.value)
    }

    /// The value of a uniform tensor, as a tensor of rank 0, if it is known.
    fn uniform(&self, var: Var) -> Option<&HostTensor> {
        if let Some((full, _)) = self.made_by::<p::Full>(var) {
            return Some(&full.value);
        }
        self.constant(var).filter(|value| value.shape().is_empty())
    }

    /// The results of `op` for `operands`, recorded after the rules.
    fn apply(&mut self, op: Op, operands: &[Var]) -> Vars {
        if let Some(results) = RULES.iter().find_map(|rule| rule(self, &op, operands)) {
            return results;
        }
        let equation = (op, Vars::from_slice(operands));
        if let Some(results) = self.recorded.get(&equation) {
            return results.clone();
        }
        let results = self.b.bind(Arc::clone(&equation.0), operands).expect(RULE);
        self.makers.resize(self.b.graph().types.len(), None);
        for var in &results {
            self.makers[var.index()] = Some(self.b.graph().equations.len() - 1);
        }
        self.recorded.insert(equation, results.clone());
        results
    }

    /// Result of `op`, which has one.
    fn record(&mut self, op: impl Primitive, operands: &[Var]) -> Var {
        self.apply(Arc::new(op), operands)[0]
    }

    /// A uniform tensor of type `ty`.
    fn full(&mut self, value: &HostTensor, shape: &[usize]) -> Var {
        let value = value.clone();
        if shape.is_empty() {
            return self.record(p::Constant { value, weak: false }, &[]);
        }
        self.record(p::Full { value, shape: Shape::from_slice(shape) }, &[])
    }

    /// Inlines `graph` on `operands`; its results.
    fn inline(&mut self, graph: &Graph, operands: &[Var]) -> Vec<Var> {
        graph.rebuild(operands, |eqn, operands| self.apply(with_simple_bodies(&eqn.op), operands))
    }
}

/// `op` with its regions simplified, and strong.
fn with_simple_bodies(op: &Op) -> Op {
    if let Some(op) = op.map_bodies(&mut simplify) {
        return op;
    }
    match (op.downcast_ref::<p::Constant>(), op.downcast_ref::<p::Convert>()) {
        (Some(constant), _) if constant.weak => Arc::new(p::Constant { weak: false, ..constant.clone() }),
        (_, Some(convert)) if convert.weak => Arc::new(p::Convert { weak: false, ..*convert }),
        _ => op.clone(),
    }
}

/// A single result, as most rules give.
#[allow(clippy::unnecessary_wraps)]
fn one(var: Var) -> Option<Vars> {
    Some(Vars::from_slice(&[var]))
}
