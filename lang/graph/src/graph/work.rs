//! Estimates of the work of a graph: sizes, never times.

use smallvec::SmallVec;

use super::{Equation, Graph};
use crate::primitives::{Convolution, DotGeneral, Scan, Threefry, WhileLoop, is_by_rows};
use crate::tensor::TensorType;

/// Operations of a product that take as long as reading, using and writing an element for another operation: measured
/// (`benches/peers/placement.py`).
const ELEMENT: u64 = 8;

/// An estimate of work that can be done side by side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Work {
    /// Scalar operations.
    pub operations: u64,
    /// Operations of a product (`dot_general`) that take as long.
    pub weight: u64,
}

impl Work {
    fn and(self, other: Work) -> Work {
        Work {
            operations: self.operations.saturating_add(other.operations),
            weight: self.weight.saturating_add(other.weight),
        }
    }
}

impl Graph {
    /// An estimate of the work that can be done side by side. That of a loop is that of a step: each step would be handed to
    /// other cores anew, unless it is taken by rows. Only a program that does little in its loops has the work outside of them.
    pub fn work_at_once(&self) -> Work {
        const LITTLE: u64 = 4;
        let (mut outside, mut inside, mut step) = (Work::default(), 0_u64, Work::default());
        for eqn in &self.equations {
            let functions = eqn.op.functions();
            let works = functions.iter().map(|function| function.work_at_once());
            let op = &eqn.op;
            let by_rows = is_by_rows(op);
            if !by_rows && (op.is::<Scan>() || op.is::<WhileLoop>()) {
                inside = inside.saturating_add(self.equation_cost(eqn));
                step = works.chain([step]).max_by_key(|work| work.weight).unwrap_or_default();
            } else if by_rows || functions.is_empty() {
                outside = outside.and(self.equation_work(eqn));
            } else {
                outside = works.fold(outside, Work::and);
            }
        }
        if outside.operations / LITTLE >= inside { outside } else { step }
    }

    /// An estimate of the scalar operations of one evaluation.
    pub fn cost(&self) -> u64 {
        self.equations.iter().map(|eqn| self.equation_cost(eqn)).fold(0, u64::saturating_add)
    }

    /// An estimate of the scalar operations of one evaluation that depend on no input. Those of a body count a hundred times: the
    /// length of a loop may be unknown.
    pub fn constant_cost(&self) -> u64 {
        const ITERATIONS: u64 = 100;
        let depends = self.dependents(&self.inputs);
        let mut cost = 0_u64;
        for eqn in &self.equations {
            let own = if eqn.inputs.iter().all(|var| !depends[var.index()]) {
                self.equation_cost(eqn)
            } else {
                let bodies = eqn.op.functions();
                let inner = bodies.iter().map(|body| body.constant_cost()).fold(0, u64::saturating_add);
                inner.saturating_mul(ITERATIONS)
            };
            cost = cost.saturating_add(own);
        }
        cost
    }

    /// An estimate of the scalar operations of one of the graph's equations.
    pub(crate) fn equation_cost(&self, eqn: &Equation) -> u64 {
        let inputs: SmallVec<[&TensorType; 4]> = eqn.inputs.iter().map(|v| self.ty(*v)).collect();
        let outputs: SmallVec<[&TensorType; 4]> = eqn.outputs.iter().map(|v| self.ty(*v)).collect();
        eqn.op.cost(&inputs, &outputs)
    }

    fn equation_work(&self, eqn: &Equation) -> Work {
        let operations = self.equation_cost(eqn);
        let op = &eqn.op;
        let weight = if op.is::<DotGeneral>() || op.is::<Convolution>() {
            let elements: u64 =
                eqn.inputs.iter().chain(&eqn.outputs).map(|v| self.ty(*v).count() as u64).sum();
            operations.saturating_add(ELEMENT.saturating_mul(elements))
        } else if op.is::<Threefry>() || is_by_rows(op) {
            operations
        } else {
            ELEMENT.saturating_mul(operations)
        };
        Work { operations, weight }
    }
}
