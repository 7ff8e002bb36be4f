//! Loops as blocks of `main`, and conditions under which IREE computes right numbers with them.
//!
//! A `stablehlo.while` copies its whole state in every iteration (Q32): IREE's elision of copies looks at blocks of a
//! function, and not into regions. In blocks, the rows of a stack are written in place, and the time of a `scan` grows
//! with its length. Three things come with that:
//!
//! - A block's argument has no device as IREE sees it, so it is "transferred" to one for each use: a copy, unless the
//!   module says that the memory of the device is one with itself ([`ONE_MEMORY`](super::quirks::ONE_MEMORY), Q33).
//! - Such a transfer is left out even if an operation then writes over a value that is read again. Operations that IREE
//!   updates in place get a copy of their own ([`Lowering::overwritten`]), except for the stacks of loops, each of which
//!   has one user, and states that steps only update (Q34).
//! - Equal constants are one buffer, which two stacks would share, and a barrier does not keep them apart: each stack starts
//!   as an allocation of its own ([`Lowering::new_stack`], Q35).

use super::kernel::loop_fits;
use super::{Lowering, Model};
use crate::graph::{Equation, Graph, Var, select_branches};
use crate::primitives::{Cond, Scan, WhileLoop, is_by_rows};
use crate::tensor::TensorType;

/// True if a graph has loops, also inside of its operations.
pub fn has_loops(graph: &Graph) -> bool {
    let mut found = false;
    graph.visit(&mut |_, eqn| found |= body_of(eqn).is_some());
    found
}

/// Maximum numbers that a step may read and give: IREE makes one kernel of all their uses in a block, and binds at
/// most 32 buffers to it ("binding count 41 > 32", Q31).
const MAX_NUMBERS: usize = 20;

/// Maximum scalar operations of a program with loops in blocks: it is tried beside the host's evaluation.
const MAX_TRIED: u64 = 1_500_000_000;

/// Scalar operations, of a trial or of branches that are not taken, that are worth a byte which a call does not copy. Blocks save
/// copies in every call, and the trial is made once: the gradient of 600 steps of a 256x256 field (2.4 billion operations)
/// ran for the first time in 7 s (debug build), trial and compilation included, where 13 calls did not end in 100 s.
const OPERATIONS_FOR_A_BYTE: u64 = 1;

/// True if a program has loops that are not taken by rows, and they can be blocks. Beside conditionals IREE makes programs that fail in a call ("ref is
/// null"), once the device's memory is one with itself (Q36).
pub(super) fn fit_blocks(graph: &Graph, model: Model) -> bool {
    let (mut loops, mut fit) = (false, model.has_blocks());
    graph.visit(&mut |_, eqn| {
        let op = &eqn.op;
        // A loop that asks for its state may have no end on the numbers of a trial.
        fit &= !op.is::<Cond>() && !op.is::<WhileLoop>();
        if let Some(body) = body_of(eqn).filter(|_| !is_by_rows(op)) {
            loops = true;
            fit &= numbers(body) <= MAX_NUMBERS;
        }
    });
    loops
        && fit
        && graph.cost() <= MAX_TRIED.max(OPERATIONS_FOR_A_BYTE.saturating_mul(copied_bytes(graph, model)))
}

/// A program with conditionals as one whose loops can be blocks: it computes both branches of each, and selects. `None` where
/// that is more work than the copies of its loops.
pub(super) fn without_conditionals(graph: &Graph, model: Model) -> Option<Graph> {
    let mut found = false;
    graph.visit(&mut |_, eqn| found |= eqn.op.is::<Cond>());
    let copied = if found && model.has_blocks() { copied_bytes(graph, model) } else { 0 };
    let selecting = (copied > 0).then(|| select_branches(graph))?;
    let more = selecting.cost().saturating_sub(graph.cost());
    (more <= OPERATIONS_FOR_A_BYTE.saturating_mul(copied) && fit_blocks(&selecting, model))
        .then_some(selecting)
}

/// Bytes that a call copies if the loops of a graph, except those that are kernels, are `stablehlo.while`: each iteration copies
/// the state and the stacks (Q32).
fn copied_bytes(graph: &Graph, model: Model) -> u64 {
    let is_kernel = |eqn: &Equation, scan: &Scan| {
        let states = eqn.outputs.iter().take(scan.states).map(|v| graph.ty(*v));
        is_by_rows(&eqn.op) || loop_fits(&[&scan.body], states, model)
    };
    let of_equation = |eqn: &Equation| {
        let functions = eqn.op.functions();
        let nested = functions.iter().map(|f| copied_bytes(f, model)).fold(0, u64::saturating_add);
        let Some(scan) = eqn.op.downcast_ref::<Scan>() else { return nested };
        if is_kernel(eqn, scan) {
            return 0;
        }
        let bytes = |ty: &TensorType| ty.count().saturating_mul(ty.dtype.byte_width()) as u64;
        let carried = eqn.outputs.iter().map(|v| bytes(graph.ty(*v))).fold(0, u64::saturating_add);
        nested.saturating_add(carried).saturating_mul(scan.length as u64)
    };
    graph.equations.iter().map(of_equation).fold(0, u64::saturating_add)
}

/// The body of a loop.
fn body_of(eqn: &Equation) -> Option<&Graph> {
    let op = &eqn.op;
    let scan = op.downcast_ref::<Scan>().map(|scan| &*scan.body);
    scan.or_else(|| op.downcast_ref::<WhileLoop>().map(|op| &*op.body))
}

/// Number of scalars that a step reads and gives.
pub fn numbers(body: &Graph) -> usize {
    let mut found: Vec<Var> = body.inputs.iter().chain(&body.outputs).copied().collect();
    found.sort_unstable();
    found.dedup();
    found.into_iter().filter(|v| body.ty(*v).rank() == 0).count()
}

/// The blocks of a loop: one that decides, one that steps, one after the loop.
pub struct Blocks {
    head: String,
    body: String,
    exit: String,
}

impl Lowering<'_> {
    /// True if a loop here can be blocks of `main`: not inside of a region, which has one block.
    pub fn can_branch(&self) -> bool {
        self.emitter.features.blocks && self.emitter.regions == 0
    }

    /// Writes the beginning of a loop whose state has these names, types and first values. The code written next
    /// decides on another iteration.
    pub fn loop_head(&mut self, names: &[String], types: &[String], first: &[String]) -> Blocks {
        let label = self.name_temporary().replace('%', "^");
        let blocks =
            Blocks { head: label.clone(), body: format!("{label}_body"), exit: format!("{label}_exit") };
        self.loop_again(&blocks, first, types);
        let arguments: Vec<String> =
            names.iter().zip(types).map(|(name, ty)| format!("{name}: {ty}")).collect();
        let arguments = arguments.join(", ");
        let given = if arguments.is_empty() { arguments } else { format!("({arguments})") };
        self.raw(&format!("{}{given}:", blocks.head));
        blocks
    }

    /// Writes the decision; the code written next is the step.
    pub fn loop_body(&mut self, blocks: &Blocks, predicate: &str) {
        self.raw(&format!("cf.cond_br {predicate}, {}, {}", blocks.body, blocks.exit));
        self.raw(&format!("{}:", blocks.body));
    }

    /// Writes the end of the step, with the next state; the code written next comes after the loop.
    pub fn loop_exit(&mut self, blocks: &Blocks, next: &[String], types: &[String]) {
        self.loop_again(blocks, next, types);
        self.raw(&format!("{}:", blocks.exit));
    }

    fn loop_again(&mut self, blocks: &Blocks, values: &[String], types: &[String]) {
        let (values, types) = (values.join(", "), types.join(", "));
        let given = if values.is_empty() { values } else { format!("({values} : {types})") };
        self.raw(&format!("cf.br {}{given}", blocks.head));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::graph::Builder;
    use crate::primitives::{DotGeneral, Tanh, Unary};
    use crate::stablehlo::emit;
    use crate::tensor::{DType, Shape};

    fn matrix() -> TensorType {
        TensorType::new(DType::F32, [64, 64].as_slice())
    }

    /// The square of a matrix: half a million operations.
    fn squared(b: &mut Builder, x: Var) -> Var {
        let product = DotGeneral {
            contract: [Shape::from_slice(&[1]), Shape::from_slice(&[0])],
            ..DotGeneral::default()
        };
        b.apply(product, &[x, x])
    }

    /// The function of a matrix that squares it so many times.
    fn power(squares: usize) -> Arc<Graph> {
        let mut b = Builder::new();
        let x = b.input(matrix());
        let x = (0..squares).fold(x, |x, _| squared(&mut b, x));
        let x = b.apply(Unary(Tanh), &[x]);
        Arc::new(b.finish(vec![x]))
    }

    /// A loop of `length` steps that carries a matrix and gives so many rows of matrices. A truth value decides in each step
    /// whether `step` makes the next matrix, if there is another way.
    fn program(length: usize, rows: usize, step: &Arc<Graph>, otherwise: Option<Arc<Graph>>) -> Graph {
        let mut b = Builder::new();
        let (x, flag) = (b.input(matrix()), b.input(TensorType::scalar(DType::Bool)));
        let next = match otherwise {
            Some(on_false) => b.apply(Cond { on_true: Arc::clone(step), on_false }, &[flag, x]),
            None => b.inline(step, &[x])[0],
        };
        let body = Arc::new(b.finish(vec![next; 1 + rows]));
        let mut b = Builder::new();
        let x = b.input(matrix());
        let flags = b.input(TensorType::new(DType::Bool, [length].as_slice()));
        let results =
            b.apply_all(Scan { body, length, constants: 0, states: 1, reverse: false }, &[x, flags]);
        b.finish(results.to_vec())
    }

    #[test]
    fn large_loops_are_blocks_where_a_while_would_copy_more() {
        let has_blocks = |graph: &Graph| emit(graph, Model::Blocks).features.blocks;
        assert!(has_blocks(&program(2000, 0, &power(1), None)), "1.1 billion operations");
        assert!(!has_blocks(&program(4000, 0, &power(1), None)), "2.1 billion operations, 66 MB copied");
        assert!(has_blocks(&program(4000, 1, &power(1), None)), "2.1 billion operations, 262 GB copied");
    }

    #[test]
    fn conditionals_are_selections_where_a_while_would_copy_more() {
        let emitted = |length, squares| {
            let module = emit(&program(length, 1, &power(squares), Some(power(1))), Model::Blocks);
            (module.features.blocks, module.text.contains("stablehlo.if"))
        };
        assert_eq!(emitted(500, 2), (true, false), "262 million operations more, 4.1 GB copied");
        assert_eq!(emitted(10, 2), (false, true), "5.2 million operations more, 1.8 MB copied");
    }
}
