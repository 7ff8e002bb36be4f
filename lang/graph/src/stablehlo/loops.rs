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
//!   has one user (Q34).
//! - Equal constants are one buffer, which two stacks would share, and a barrier does not keep them apart: each stack starts
//!   as an allocation of its own ([`Lowering::new_stack`], Q35).

use super::Lowering;
use crate::graph::{Equation, Graph, Var};
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

/// Maximum scalar operations of a program with loops in blocks: it is tried beside the host's evaluation, which takes one to
/// three seconds for them.
const MAX_TRIED: u64 = 1_500_000_000;

/// Scalar operations that a trial may take for each byte that blocks save a call from copying. A second is ten billion such
/// bytes or about one billion operations on the host: the trial takes no longer than the copies of ten calls.
const TRIED_PER_COPIED_BYTE: u64 = 1;

/// True if a program has loops that are not taken by rows, and they can be blocks. Beside conditionals IREE makes programs that fail in a call ("ref is
/// null"), once the device's memory is one with itself (Q36).
pub(super) fn fit_blocks(graph: &Graph) -> bool {
    let (mut loops, mut fit) = (false, true);
    graph.visit(&mut |_, eqn| {
        let op = &eqn.op;
        // A loop that asks for its state may have no end on the numbers of a trial.
        fit &= !op.is::<Cond>() && !op.is::<WhileLoop>();
        if let Some(body) = body_of(eqn).filter(|_| !is_by_rows(op)) {
            loops = true;
            fit &= numbers(body) <= MAX_NUMBERS;
        }
    });
    let tried = MAX_TRIED.max(copied_bytes(graph).saturating_mul(TRIED_PER_COPIED_BYTE));
    loops && fit && graph.cost() <= tried
}

/// Bytes that a call copies if the loops of a graph are `stablehlo.while`: each iteration copies the state and the stacks (Q32).
fn copied_bytes(graph: &Graph) -> u64 {
    let of_equation = |eqn: &Equation| {
        let nested = eqn.op.functions().iter().map(|body| copied_bytes(body)).fold(0, u64::saturating_add);
        let Some(scan) = eqn.op.downcast_ref::<Scan>().filter(|_| !is_by_rows(&eqn.op)) else {
            return nested;
        };
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
