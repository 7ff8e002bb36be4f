//! The typed graph that tracing records: single-assignment equations over primitives.
//!
//! Every transformation (`grad`, `jvp`, `vmap`) reads one graph and writes another; `stablehlo` prints one.
//! Variables are numbered in the order of their making, so equal programs make equal graphs.

mod arrangements;
mod blocks;
mod branches;
mod builder;
mod checks;
mod def_use;
mod donation;
mod evaluate;
mod inline;
mod part;
mod part_products;
mod print;
mod prune;
mod rebuild;
mod rows;
mod stagger;
mod tiles;
mod verify;
mod work;

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use smallvec::SmallVec;

pub use arrangements::hold_apart;
pub use blocks::{adds_rows, in_blocks};
pub use branches::select_branches;
pub use builder::{Builder, RULE};
pub use checks::{Checks, decoded, failed, masked, thread, unchecked, violation, without_checks};
pub use def_use::DefUse;
pub use donation::{Donation, donations};
pub use evaluate::{evaluate, evaluate_with};
pub use inline::inline_calls;
pub use part::part_wide;
pub use part_products::part_products;
pub use prune::prune;
pub(crate) use rebuild::with_functions;
pub use rows::gains_by_order;
pub use stagger::stagger;
pub use tiles::gains_by_tiles;
pub use verify::verify;
pub use work::Work;

use crate::primitives::Primitive;
use crate::tensor::TensorType;
use sheaf_syntax::Span;

/// A variable of one graph: an index into [`Graph::types`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(pub u32);

impl Var {
    /// Position in [`Graph::types`].
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A primitive with its parameters, shared between graphs.
pub type Op = Arc<dyn Primitive>;

/// Variables of an equation.
pub type Vars = SmallVec<[Var; 4]>;

/// `outputs = op(inputs)`. Equality leaves the span out.
#[derive(Clone, Debug)]
pub struct Equation {
    /// The operation.
    pub op: Op,
    /// Operands.
    pub inputs: Vars,
    /// Results, in the order of the primitive's type rule.
    pub outputs: Vars,
    /// The call in the program that recorded the equation.
    pub span: Option<Span>,
}

impl PartialEq for Equation {
    fn eq(&self, other: &Equation) -> bool {
        (&self.op, &self.inputs, &self.outputs) == (&other.op, &other.inputs, &other.outputs)
    }
}

impl Eq for Equation {}

impl Hash for Equation {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (&self.op, &self.inputs, &self.outputs).hash(state);
    }
}

/// A pure function of tensors.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Graph {
    /// The type of every variable.
    pub types: Vec<TensorType>,
    /// Parameters.
    pub inputs: Vec<Var>,
    /// In an order in which every operand is defined before it is used.
    pub equations: Vec<Equation>,
    /// Results; a variable may appear more than once, and may be an input.
    pub outputs: Vec<Var>,
    /// True if an equation may be a check, or has one inside.
    pub checked: bool,
    /// True if an equation may be a watch of an observer, or has one inside.
    pub watched: bool,
}

impl Graph {
    /// The type of `var`.
    pub fn ty(&self, var: Var) -> &TensorType {
        &self.types[var.index()]
    }

    /// Visits every equation with the graph that it is of: this one, or that of a function inside of an operation.
    pub fn visit(&self, f: &mut impl FnMut(&Graph, &Equation)) {
        for eqn in &self.equations {
            f(self, eqn);
            eqn.op.functions().into_iter().for_each(|function| function.visit(f));
        }
    }

    /// The number of equations, with those of functions inside of operations: the size of the program for a compiler.
    pub fn size(&self) -> usize {
        let mut size = 0;
        self.visit(&mut |_, _| size += 1);
        size
    }
}
