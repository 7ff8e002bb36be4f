//! Hoisting of products out of `scan`: one large product is faster than many small ones.

use std::sync::Arc;

use super::Simplifier;
use crate::graph::{DefUse, Equation, Graph, Op, Var, Vars, prune};
use crate::primitives::{Add, Binary, DotGeneral, ReduceSum, Reshape, Scan, Transpose};
use crate::tensor::{DType, Shape, element_count};
use crate::transform::vmap;

/// Minimum multiplications per step of a product to hoist.
const MIN_WORK: usize = 1 << 16;

/// Minimum elements of a step to sum up after the loop.
const MIN_SUMMED: usize = 1 << 11;

/// A loop, and the definitions and uses in its body.
struct Body<'a> {
    scan: &'a Scan,
    graph: &'a Graph,
    uses: DefUse<'a>,
}

impl<'a> Body<'a> {
    fn of(op: &'a Op) -> Option<Body<'a>> {
        let scan = op.downcast_ref::<Scan>()?;
        let graph = &*scan.body;
        Some(Body { scan, graph, uses: DefUse::of(graph) })
    }

    /// The equation's product, if it is large enough to hoist.
    fn large_product(&self, eqn: &'a Equation) -> Option<&'a DotGeneral> {
        let product = eqn.op.downcast_ref::<DotGeneral>()?;
        let left = &self.graph.ty(eqn.inputs[0]).shape;
        let terms = product.contract[0].iter().map(|axis| left[*axis]);
        let work = terms.fold(self.graph.ty(eqn.outputs[0]).count(), usize::saturating_mul);
        (work >= MIN_WORK).then_some(product)
    }

    /// True if the values of a variable in all steps are a tensor anyway, which the steps read or give.
    fn is_stacked(&self, var: Var) -> bool {
        self.row(var).is_some() || self.graph.outputs[self.scan.states..].contains(&var)
    }

    fn first_row(&self) -> usize {
        self.scan.constants + self.scan.states
    }

    /// The position of a variable among the scanned rows.
    fn row(&self, var: Var) -> Option<usize> {
        let rows = &self.graph.inputs[self.first_row()..];
        rows.iter().position(|v| *v == var).map(|i| self.first_row() + i)
    }
}

/// A row returned unchanged by every step is the tensor it was read from.
pub(super) fn rows_given(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let body = Body::of(op)?;
    let (scan, graph) = (body.scan, body.graph);
    let found: Vec<Option<usize>> =
        (0..graph.outputs.len()).map(|i| body.row(graph.outputs[i]).filter(|_| i >= scan.states)).collect();
    if found.iter().all(Option::is_none) {
        return None;
    }
    let mut rest = graph.clone();
    let kept = graph.outputs.iter().zip(&found).filter(|(_, found)| found.is_none());
    rest.outputs = kept.map(|(v, _)| *v).collect();
    let mut results =
        s.apply(Arc::new(Scan { body: Arc::new(prune(rest)), ..scan.clone() }), operands).into_iter();
    found.into_iter().map(|row| row.map_or_else(|| results.next(), |i| Some(operands[i]))).collect()
}

/// A product of rows and a loop constant is one product before the loop; the steps read its rows.
pub(super) fn before(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let body = Body::of(op)?;
    let (scan, graph) = (body.scan, body.graph);
    let states = scan.constants..body.first_row();
    // Dependence of each variable on the state, and on the rows.
    let mut by_state = vec![false; graph.types.len()];
    let mut by_row = vec![false; graph.types.len()];
    for (i, var) in graph.inputs.iter().enumerate() {
        by_state[var.index()] = states.contains(&i);
        by_row[var.index()] = i >= body.first_row();
    }
    let mut found = Vec::new();
    for eqn in &graph.equations {
        let stays = !eqn.op.functions().is_empty() || eqn.op.checks();
        let state = stays || eqn.inputs.iter().any(|v| by_state[v.index()]);
        let row = eqn.inputs.iter().any(|v| by_row[v.index()]);
        for var in &eqn.outputs {
            by_state[var.index()] = state;
            by_row[var.index()] = row;
        }
        if !state && row && body.large_product(eqn).is_some() {
            found.push(eqn.outputs[0]);
        }
    }
    if found.is_empty() {
        return None;
    }
    let outside = |i: &usize| !states.contains(i);
    let positions: Vec<usize> = (0..graph.inputs.len()).filter(outside).collect();
    let mut first = graph.clone();
    first.inputs = positions.iter().map(|i| graph.inputs[*i]).collect();
    first.outputs.clone_from(&found);
    let axes: Vec<Option<usize>> = positions.iter().map(|i| (*i >= body.first_row()).then_some(0)).collect();
    let first = vmap(&prune(first), &axes, scan.length);
    let arguments: Vec<Var> = positions.iter().map(|i| operands[*i]).collect();
    s.flattens = true;
    let made = s.inline(&first, &arguments);
    s.flattens = false;

    let mut rest = graph.clone();
    rest.equations.retain(|eqn| !eqn.outputs.iter().any(|v| found.contains(v)));
    rest.inputs.extend(&found);
    let operands: Vars = operands.iter().copied().chain(made).collect();
    Some(s.apply(Arc::new(Scan { body: Arc::new(prune(rest)), ..scan.clone() }), &operands))
}

/// A state that only sums products is one product after the loop, of stacked results; one that only sums up others is one sum.
pub(super) fn after(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let body = Body::of(op)?;
    let (scan, graph) = (body.scan, body.graph);
    let (state, sum) = (0..scan.states).find_map(|i| Some((i, Sum::of(&body, i)?)))?;
    let mut rest = graph.clone();
    rest.inputs.remove(scan.constants + state);
    rest.outputs.remove(state);
    // The stacked operands of all steps: an operand, or an additional result.
    let stacked: Vec<Result<usize, usize>> = sum
        .operands
        .iter()
        .map(|var| {
            body.row(*var).ok_or_else(|| {
                let first = scan.states - 1;
                rest.outputs[first..].iter().position(|v| v == var).map_or_else(
                    || {
                        rest.outputs.push(*var);
                        rest.outputs.len() - 1
                    },
                    |i| first + i,
                )
            })
        })
        .collect();
    let mut fewer = Vars::from_slice(operands);
    let start = fewer.remove(scan.constants + state);
    let shorter = Scan { body: Arc::new(prune(rest)), states: scan.states - 1, ..scan.clone() };
    let mut results = s.apply(Arc::new(shorter), &fewer);
    let stacked: Vars =
        stacked.into_iter().map(|place| place.map_or_else(|i| results[i], |i| operands[i])).collect();

    let with_steps =
        |axes: &Shape| -> Shape { std::iter::once(0).chain(axes.iter().map(|a| a + 1)).collect() };
    let mut total = match sum.term {
        Term::Product(product) => {
            let contract = [with_steps(&product.contract[0]), with_steps(&product.contract[1])];
            s.flattens = true;
            let total = s.record(DotGeneral { contract, ..DotGeneral::default() }, &stacked);
            s.flattens = false;
            total
        }
        Term::Sum(reduction) => s.record(ReduceSum { axes: with_steps(&reduction.axes) }, &stacked),
    };
    for layout in sum.layouts {
        total = s.apply(layout, &[total])[0];
    }
    let total = s.record(Binary(Add), &[start, total]);
    results.truncate(graph.outputs.len() - 1);
    results.insert(state, total);
    Some(results)
}

/// A hoisted product becomes a matrix product, if reshapes suffice: the steps and the axes beside them become one axis.
/// It is faster in IREE, which tiles it.
pub(super) fn flat(s: &mut Simplifier, op: &Op, operands: &[Var]) -> Option<Vars> {
    let product =
        op.downcast_ref::<DotGeneral>().filter(|product| s.flattens && product.batch[0].is_empty())?;
    let types = [0, 1].map(|side| s.ty(operands[side]).clone());
    if types.iter().all(|ty| ty.rank() <= 2) {
        return None;
    }
    let mut contract = [Shape::new(), Shape::new()];
    let mut flat = Vars::new();
    for side in 0..2 {
        let (shape, summed) = (&types[side].shape, &product.contract[side]);
        let free = product.free(side, shape.len());
        let extent = |axes: &Shape| axes.iter().map(|a| shape[*a]).product::<usize>();
        let order: Vec<usize> = (0..shape.len()).collect();
        let is_order =
            |first: &Shape, last: &Shape| first.iter().chain(last).copied().eq(order.iter().copied());
        let matrix = if is_order(summed, &free) {
            contract[side].push(0);
            [extent(summed), extent(&free)]
        } else if is_order(&free, summed) {
            contract[side].push(1);
            [extent(&free), extent(summed)]
        } else {
            return None;
        };
        flat.push(s.record(Reshape { shape: Shape::from_slice(&matrix) }, &operands[side..=side]));
    }
    let result = op.infer(&[&types[0], &types[1]]).ok()?.swap_remove(0);
    let made = s.record(DotGeneral { contract, ..DotGeneral::default() }, &flat);
    Some(Vars::from_slice(&[s.record(Reshape { shape: result.shape }, &[made])]))
}

/// The term that each step adds to a state.
enum Term<'a> {
    /// A product of two variables.
    Product(&'a DotGeneral),
    /// The sum of a variable over some axes.
    Sum(&'a ReduceSum),
}

/// A loop state to which each step adds a product or a sum.
struct Sum<'a> {
    term: Term<'a>,
    operands: Vars,
    /// Transposes and reshapes of the term before the addition, in order.
    layouts: Vec<Op>,
}

impl<'a> Sum<'a> {
    /// State `i` as such a sum; `None` if it is none.
    fn of(body: &Body<'a>, i: usize) -> Option<Sum<'a>> {
        let graph = body.graph;
        let before = graph.inputs[body.scan.constants + i];
        if !matches!(graph.ty(before).dtype, DType::F32 | DType::F64) {
            return None;
        }
        let add = body.uses.definition(graph.outputs[i])?;
        add.op.downcast_ref::<Binary<Add>>()?;
        let mut term = match add.inputs[..] {
            [x, y] if x == before && y != before => y,
            [x, y] if y == before && x != before => x,
            _ => return None,
        };
        if body.uses.count(before) != 1 || body.uses.count(graph.outputs[i]) != 1 {
            return None;
        }
        let mut layouts = Vec::new();
        let eqn = loop {
            let eqn = body.uses.definition(term)?;
            if !eqn.op.is::<Transpose>() && !eqn.op.is::<Reshape>() {
                break eqn;
            }
            layouts.insert(0, eqn.op.clone());
            term = eqn.inputs[0];
        };
        let operands = eqn.inputs.clone();
        // A loop-invariant operand has no rows.
        let varies = operands.iter().all(|v| !graph.inputs[..body.scan.constants].contains(v));
        let (term, fits) = match eqn.op.downcast_ref::<ReduceSum>() {
            Some(reduction) => {
                let is_large = graph.ty(operands[0]).count() >= MIN_SUMMED;
                (Term::Sum(reduction), is_large && body.is_stacked(operands[0]))
            }
            None => {
                let product = body.large_product(eqn).filter(|product| product.batch[0].is_empty())?;
                // A new one that is larger than the sum is not worth its memory.
                let is_new = |var: &&Var| !body.is_stacked(**var);
                let given: usize =
                    operands.iter().filter(is_new).map(|v| element_count(&graph.ty(*v).shape)).sum();
                (Term::Product(product), given <= element_count(&graph.ty(before).shape))
            }
        };
        (fits && varies).then_some(Sum { term, operands, layouts })
    }
}
