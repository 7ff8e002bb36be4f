//! The element of a reduction's operand, computed of elements of other tensors by the operations that only the reduction reads.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::view::{Has, View};
use crate::graph::{DefUse, Var};
use crate::primitives::operation::Operation;
use crate::primitives::{BroadcastInDim, Reshape};
use crate::stablehlo::repeated_number;
use crate::tensor::{DType, TensorType};

/// Maximum operations that are written into a reduction.
const OPERATIONS: usize = 32;

/// Maximum tensors that a reduction reads.
const SOURCES: usize = 12;

/// A tensor that elements are read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub var: Var,
    pub has: Has,
}

/// An element.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Element {
    /// Of a source.
    Of(usize),
    /// One number, as MLIR writes it.
    Number(String),
    /// Computed of elements before it, the last of which has this dtype.
    Applied { operation: Operation, operands: Vec<usize>, dtype: DType },
}

/// The elements that lead to that of the operand, which is the last.
#[derive(Clone, Debug, Default)]
pub(super) struct Expression {
    pub sources: Vec<Source>,
    pub elements: Vec<Element>,
}

impl Expression {
    /// The element of the operand of the equation at `reduction`, with this view of the operand.
    pub fn of(uses: &DefUse<'_>, reduction: usize, view: View) -> Expression {
        let var = uses.graph.equations[reduction].inputs[0];
        let inside = inside(uses, reduction);
        let mut writer = Writer { uses, view, inside, known: HashMap::new(), made: Expression::default() };
        let is_written = writer.element(var).is_some();
        if is_written && (1..=SOURCES).contains(&writer.made.sources.len()) {
            return writer.made;
        }
        Expression { sources: vec![Source { var, has: [true; 3] }], elements: vec![Element::Of(0)] }
    }
}

/// The positions of the equations that are written into the one at `reduction`: they lead to its operand, and to nothing else but one other
/// element-wise operation. That has them in its kernel too; in memory they would take longer than to be computed twice.
fn inside(uses: &DefUse<'_>, reduction: usize) -> HashSet<usize> {
    let mut inside = HashSet::from([reduction]);
    let makers = |n: usize| uses.graph.equations[n].inputs.iter().filter_map(|v| uses.maker(*v));
    let mut open: BTreeSet<usize> = makers(reduction).collect();
    // From the last to the first: the readers of a result are known before the equation that gives it.
    while let Some(n) = open.pop_last() {
        let eqn = &uses.graph.equations[n];
        let [made] = eqn.outputs[..] else { continue };
        let mut others = uses.readers(made).iter().filter(|n| !inside.contains(n));
        let other = others.next();
        let is_read_here = uses.results(made) == 0
            && others.next().is_none()
            && other.is_none_or(|n| uses.graph.equations[*n].op.is_elementwise());
        let is_written = eqn.op.is::<Reshape>() || operation(uses, n).is_some();
        if is_read_here && is_written && inside.len() <= OPERATIONS {
            inside.insert(n);
            open.extend(makers(n));
        }
    }
    inside.remove(&reduction);
    inside
}

fn operation(uses: &DefUse<'_>, n: usize) -> Option<Operation> {
    let eqn = &uses.graph.equations[n];
    let types: Vec<&TensorType> = eqn.inputs.iter().map(|v| uses.graph.ty(*v)).collect();
    let shape = &uses.graph.ty(eqn.outputs[0]).shape;
    let same = !types.is_empty() && types.iter().all(|ty| ty.shape == *shape);
    Operation::of(&eqn.op, &types).filter(|_| same)
}

struct Writer<'a> {
    uses: &'a DefUse<'a>,
    view: View,
    /// Positions of the equations that are written.
    inside: HashSet<usize>,
    known: HashMap<Var, usize>,
    made: Expression,
}

impl Writer<'_> {
    /// The position of the element of a variable, which has as many as the view; `None` if a tensor that it is read from has another dtype.
    fn element(&mut self, var: Var) -> Option<usize> {
        if let Some(known) = self.known.get(&var) {
            return Some(*known);
        }
        let maker = self.uses.maker(var).filter(|n| self.inside.contains(n));
        let position = match maker.map(|n| (n, &self.uses.graph.equations[n])) {
            Some((_, eqn)) if eqn.op.is::<Reshape>() => self.element(eqn.inputs[0])?,
            Some((n, eqn)) => {
                let operands = eqn.inputs.iter().map(|v| self.element(*v)).collect::<Option<Vec<usize>>>()?;
                let dtype = self.uses.graph.ty(*eqn.inputs.last()?).dtype;
                self.push(Element::Applied { operation: operation(self.uses, n)?, operands, dtype })
            }
            None => self.leaf(var)?,
        };
        self.known.insert(var, position);
        Some(position)
    }

    fn push(&mut self, element: Element) -> usize {
        self.made.elements.push(element);
        self.made.elements.len() - 1
    }

    /// An element that is not computed here: a number, or read from a tensor that is perhaps broadcast.
    fn leaf(&mut self, var: Var) -> Option<usize> {
        let ty = self.uses.graph.ty(var);
        let (mut of, mut has) = (var, [true; 3]);
        let repeated =
            self.uses.definition(var).and_then(|eqn| Some((eqn, eqn.op.downcast_ref::<BroadcastInDim>()?)));
        if let Some((eqn, op)) = repeated {
            let from = self.uses.graph.ty(eqn.inputs[0]);
            if let Some(along) = self.view.along(ty, from, &op.dims) {
                (of, has) = (eqn.inputs[0], along);
            }
        }
        if let Some(number) = repeated_number(self.uses, of).filter(|_| ty.dtype == DType::F32) {
            return Some(self.push(Element::Number(number)));
        }
        if !matches!(ty.dtype, DType::F32 | DType::F64 | DType::Bool) {
            return None;
        }
        let source = Source { var: of, has };
        let known = self.made.sources.iter().position(|other| *other == source);
        let position = known.unwrap_or_else(|| {
            self.made.sources.push(source);
            self.made.sources.len() - 1
        });
        Some(self.push(Element::Of(position)))
    }
}
