//! Donation: results of a program that may be written over its arguments.
//!
//! IREE does as it is told, and computes wrong numbers if something still reads such an argument afterwards (Q38). An
//! argument therefore goes to a result only if all its other readers have ended before the result is written: they are
//! needed for that result, and either lie before a barrier that the result waits for, or are part of computing the
//! result element by element.

use super::{DefUse, Equation, Graph, Var, inline_calls};
use crate::primitives::OptimizationBarrier;

/// An argument that a call consumes, and the result that takes its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Donation {
    /// The position of the argument.
    pub argument: usize,
    /// The position of the result.
    pub output: usize,
}

/// Maximum product of results and equations: each result takes a walk over the graph. Nothing is donated beyond it.
const MAX_STEPS: usize = 1 << 26;

/// The arguments of at least `least` bytes that may be donated, each to a result of its type, by argument.
pub fn donations(graph: &Graph, least: usize) -> Vec<Donation> {
    let graph = &inline_calls(graph);
    if graph.outputs.len().saturating_mul(graph.equations.len()) > MAX_STEPS {
        return Vec::new();
    }
    let large = |var: Var| graph.ty(var).count() * graph.ty(var).dtype.byte_width() >= least;
    let uses = DefUse::of(graph);
    let candidates: Vec<(usize, Var, Vec<usize>)> = (graph.inputs.iter().enumerate())
        .filter(|(_, var)| large(**var))
        .filter_map(|(i, var)| Some((i, *var, readers(&uses, *var)?)))
        .collect();
    let mut taken = vec![false; graph.inputs.len()];
    let mut chosen = Vec::new();
    for (output, var) in graph.outputs.iter().enumerate() {
        let Some(result) = Result::of(&uses, *var).filter(|_| large(*var)) else { continue };
        let fits = |(i, argument, readers): &&(usize, Var, Vec<usize>)| {
            let (a, b) = (graph.ty(*argument), graph.ty(*var));
            !taken[*i] && a.dtype == b.dtype && a.shape == b.shape && result.may_replace(readers)
        };
        // Prefers arguments read element by element for this result, which are updated in place, to those only
        // overwritten.
        let updated = candidates.iter().filter(fits).find(|(_, _, readers)| result.updates(readers));
        if let Some((argument, ..)) = updated.or_else(|| candidates.iter().find(fits)) {
            taken[*argument] = true;
            chosen.push(Donation { argument: *argument, output });
        }
    }
    chosen.sort_unstable_by_key(|d| d.argument);
    chosen
}

/// The equations that read the elements of an argument, also through operations that only move them, which may
/// share its memory. `None` if a result may share it.
fn readers(uses: &DefUse, argument: Var) -> Option<Vec<usize>> {
    let mut readers = Vec::new();
    let mut seen = vec![false; uses.graph.types.len()];
    let mut open = vec![argument];
    seen[argument.index()] = true;
    while let Some(var) = open.pop() {
        if uses.results(var) > 0 {
            return None;
        }
        for &n in uses.readers(var) {
            readers.push(n);
            let eqn = &uses.graph.equations[n];
            if eqn.op.computes() {
                continue;
            }
            for moved in &eqn.outputs {
                if !std::mem::replace(&mut seen[moved.index()], true) {
                    open.push(*moved);
                }
            }
        }
    }
    readers.sort_unstable();
    readers.dedup();
    Some(readers)
}

/// The equations that a result is computed from; each field has a flag per equation.
struct Result {
    /// All of them.
    needed: Vec<bool>,
    /// Equations of these that no barrier keeps from running along with the last step.
    unguarded: Vec<bool>,
    /// Equations of these that are computed for the same element only.
    elementwise: Vec<bool>,
}

impl Result {
    /// `None` for a result that is not computed, or is returned twice.
    fn of(uses: &DefUse, var: Var) -> Option<Result> {
        let graph = uses.graph;
        let maker = uses.maker(var).filter(|_| uses.results(var) == 1)?;
        if !graph.equations[maker].op.computes() {
            return None;
        }
        let reach = |goes_on: &dyn Fn(&Equation) -> bool| {
            let mut reached = vec![false; graph.equations.len()];
            let mut open = vec![maker];
            while let Some(n) = open.pop() {
                let eqn = &graph.equations[n];
                if !goes_on(eqn) || std::mem::replace(&mut reached[n], true) {
                    continue;
                }
                open.extend(eqn.inputs.iter().filter_map(|v| uses.maker(*v)));
            }
            reached
        };
        let shape = &graph.ty(var).shape;
        Some(Result {
            needed: reach(&|_| true),
            unguarded: reach(&|eqn| !is_barrier(eqn)),
            elementwise: reach(&|eqn| stays_in_place(eqn) && graph.ty(eqn.outputs[0]).shape == *shape),
        })
    }

    /// True if the result may be written over an argument that these equations read.
    fn may_replace(&self, readers: &[usize]) -> bool {
        readers.iter().all(|n| self.needed[*n] && (!self.unguarded[*n] || self.elementwise[*n]))
    }

    /// True if one of these equations is part of its last step.
    fn updates(&self, readers: &[usize]) -> bool {
        readers.iter().any(|n| self.elementwise[*n])
    }
}

/// True if each element of the result comes from those in the same place of the operands: an operation that only moves
/// elements may put one in the place of another.
fn stays_in_place(eqn: &Equation) -> bool {
    eqn.op.is_elementwise() && (eqn.op.computes() || matches!(eqn.op.name(), "select" | "convert"))
}

fn is_barrier(eqn: &Equation) -> bool {
    eqn.op.is::<OptimizationBarrier>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::Builder;
    use crate::tensor::{DType, TensorType};

    fn square(b: &mut Builder) -> Var {
        b.input(TensorType::new(DType::F32, [4, 4].as_slice()))
    }

    fn pairs(b: Builder, outputs: Vec<Var>) -> Vec<(usize, usize)> {
        donations(&b.finish(outputs), 1).iter().map(|d| (d.argument, d.output)).collect()
    }

    #[test]
    fn an_update_element_by_element_takes_the_place_of_its_argument() {
        let mut b = Builder::new();
        let (p, g) = (square(&mut b), square(&mut b));
        let step = b.scale(g, 0.1);
        let next = b.sub(p, step);
        assert_eq!(pairs(b, vec![next]), [(0, 0)]);
    }

    #[test]
    fn two_results_of_the_same_arguments_take_no_place() {
        let mut b = Builder::new();
        let (x, y) = (square(&mut b), square(&mut b));
        let (sum, difference) = (b.add(x, y), b.sub(x, y));
        assert_eq!(pairs(b, vec![sum, difference]), []);
    }

    #[test]
    fn what_is_read_in_another_order_is_not_written_over() {
        let mut b = Builder::new();
        let x = square(&mut b);
        let turned = b.transpose(x, &[1, 0]);
        let sum = b.add(x, turned);
        assert_eq!(pairs(b, vec![sum]), []);
    }

    #[test]
    fn a_barrier_ends_the_reading() {
        let mut b = Builder::new();
        let x = square(&mut b);
        let turned = b.transpose(x, &[1, 0]);
        let gradient = b.mul(turned, turned);
        let held = b.apply_all(OptimizationBarrier, &[gradient]);
        let next = b.sub(x, held[0]);
        assert_eq!(pairs(b, vec![next]), [(0, 0)]);
    }

    #[test]
    fn a_reader_that_the_result_does_not_need_may_come_later() {
        let mut b = Builder::new();
        let (x, y) = (square(&mut b), square(&mut b));
        let next = b.sub(x, y);
        let total = b.sum(x, &[0, 1]);
        assert_eq!(pairs(b, vec![next, total]), [(1, 0)]);
    }

    #[test]
    fn what_is_returned_is_not_written_over() {
        let mut b = Builder::new();
        let x = square(&mut b);
        let flat = b.reshape(x, &[16]);
        let next = b.neg(x);
        assert_eq!(pairs(b, vec![next, flat]), []);
        let mut b = Builder::new();
        let x = square(&mut b);
        let next = b.neg(x);
        assert_eq!(pairs(b, vec![next, next]), []);
    }

    #[test]
    fn small_tensors_stay() {
        let mut b = Builder::new();
        let x = square(&mut b);
        let next = b.neg(x);
        let graph = b.finish(vec![next]);
        assert_eq!(donations(&graph, 64).len(), 1);
        assert_eq!(donations(&graph, 65), []);
    }
}
