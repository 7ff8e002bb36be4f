//! The order of a step: which values are in memory, and when each is written.
//!
//! A step has phases. Each begins with the products whose left operands earlier ones have written, and ends with the
//! element-wise operations on what is there then, each value of them in registers alone unless something later reads it.

use std::collections::{BTreeSet, HashSet};

use super::form::{Filling, Form, Forms, Place, Value};
use super::product::{LANES, Weights};
use crate::graph::{Graph, Var, inline_calls};
use crate::primitives::Scan;
use crate::tensor::{DType, TensorType};

/// Rows of a workgroup, as many as sums of a tile fit into registers.
const ROWS: usize = 8;

/// Minimum scalar operations of a step.
const WORK: u64 = 40_000;

/// Maximum weights of all products: each workgroup reads them in each step, from a cache of its core.
const WEIGHTS: usize = 1 << 20;

/// Maximum equations of a step, all of whose values may be in registers at the same time.
const EQUATIONS: usize = 256;

/// Maximum operands and results of a kernel: IREE binds 32 buffers (Q31).
const BINDINGS: usize = 24;

/// Bytes from one row to the next at which a column has few places in a processor's cache.
const CACHE_STRIDE: usize = 2048;

/// Memory of a workgroup for a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    start: usize,
    stride: usize,
}

impl Region {
    /// The place of a row.
    pub fn row(&self, row: usize) -> usize {
        self.start + row * self.stride
    }

    /// Elements from one row to the next.
    pub fn stride(&self) -> usize {
        self.stride
    }

    /// The same rows from a column on.
    fn from(&self, column: usize) -> Region {
        Region { start: self.start + column, ..*self }
    }
}

/// The destination of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// Memory of the workgroup.
    Memory(Region),
    /// Columns of a stack, given its position among the results, from this one on.
    Stack(usize, usize),
}

impl Target {
    fn from(self, column: usize) -> Target {
        match self {
            Target::Memory(region) => Target::Memory(region.from(column)),
            Target::Stack(result, first) => Target::Stack(result, first + column),
        }
    }
}

/// Some columns of a value, and what they are written to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub value: Var,
    pub first: usize,
    pub width: usize,
    pub target: Target,
}

/// A product with the memory of its operand and of its result.
pub(super) struct Product {
    pub weights: usize,
    pub left: Region,
    pub into: Region,
}

/// A phase of a step.
#[derive(Default)]
pub(super) struct Phase {
    pub products: Vec<Product>,
    pub stores: Vec<Store>,
}

/// The order of a loop's steps.
pub(super) struct Plan {
    pub body: Graph,
    pub length: usize,
    pub reverse: bool,
    /// Rows of all workgroups.
    pub batch: usize,
    /// Rows of a workgroup. The last of them may have some of the one before.
    pub rows: usize,
    /// Number of workgroups.
    pub groups: usize,
    pub phases: Vec<Phase>,
    /// Operands of the kernel that are not weights; those of the first states come first.
    pub places: Vec<Place>,
    pub weights: Vec<Weights>,
    /// Memory of the states, before a step and after it.
    pub states: Vec<[Region; 2]>,
    values: Vec<Option<Value>>,
    memory: Vec<Option<Region>>,
    /// Elements of memory so far.
    extent: usize,
    visited: HashSet<(Var, usize)>,
}

impl Plan {
    /// The order of a loop's steps; `None` if its rows depend on each other, or the kernel would be no quicker than the loop.
    pub fn of(scan: &Scan) -> Option<Plan> {
        let body = inline_calls(&scan.body);
        let first = *body.inputs.get(scan.constants).filter(|_| scan.states > 0)?;
        let batch = *body.ty(first).shape.first()?;
        let fits = !body.checked && !body.watched && body.equations.len() <= EQUATIONS;
        if !fits || scan.length == 0 || batch < 2 || body.cost() < WORK {
            return None;
        }
        let values = Forms::of(scan, &body, batch);
        let groups = batch.div_ceil(ROWS).max(2);
        let mut plan = Plan {
            length: scan.length,
            reverse: scan.reverse,
            batch,
            rows: batch.div_ceil(groups),
            groups,
            phases: Vec::new(),
            places: Vec::new(),
            weights: Vec::new(),
            states: Vec::new(),
            memory: vec![None; values.len()],
            values,
            body,
            extent: 0,
            visited: HashSet::new(),
        };
        let fits = plan.order(scan.constants, scan.states)?;
        fits.then_some(plan)
    }

    fn order(&mut self, constants: usize, states: usize) -> Option<bool> {
        for i in 0..states {
            let var = self.body.inputs[constants + i];
            let width = self.value(var)?.width;
            self.places.push(Place { input: constants + i, by_step: false, by_row: true, width });
            let regions = [self.region(width), self.region(width)];
            self.memory[var.index()] = Some(regions[0]);
            self.states.push(regions);
        }
        for (i, var) in self.body.outputs.clone().into_iter().enumerate() {
            if self.body.ty(var).dtype != DType::F32 || self.value(var).is_none() {
                return None;
            }
            let target = self.states.get(i).map_or(Target::Stack(i, 0), |regions| Target::Memory(regions[1]));
            self.store(var, target)?;
        }
        let (read, written) = (self.places.len() + self.weights.len(), self.body.outputs.len() + 1);
        let weights: usize = self.weights.iter().map(Weights::count).sum();
        Some(read + written <= BINDINGS && weights <= WEIGHTS)
    }

    /// The value of a variable.
    fn value(&self, var: Var) -> Option<&Value> {
        self.values[var.index()].as_ref()
    }

    /// The value of a variable of the step.
    pub fn form(&self, var: Var) -> &Value {
        self.value(var).expect("a plan is of variables with forms")
    }

    fn phase(&mut self, phase: usize) -> &mut Phase {
        if self.phases.len() <= phase {
            self.phases.resize_with(phase + 1, Phase::default);
        }
        &mut self.phases[phase]
    }

    /// Memory for a value of so many columns.
    fn region(&mut self, width: usize) -> Region {
        let mut stride = width.next_multiple_of(LANES);
        if (stride * DType::F32.byte_width()).is_multiple_of(CACHE_STRIDE) {
            stride += LANES;
        }
        let region = Region { start: self.extent, stride };
        self.extent += self.rows * stride;
        region
    }

    /// Adds the stores of a value, as early as it is there, in pieces each of which is made of the same parts of joined values.
    fn store(&mut self, value: Var, target: Target) -> Option<()> {
        let (width, phase) = self.value(value).map(|value| (value.width, value.phase))?;
        let mut cuts = BTreeSet::from([width]);
        self.cut(value, 0, width, &mut cuts, &mut HashSet::new())?;
        let mut first = 0;
        for end in cuts {
            let store = Store { value, first, width: end - first, target: target.from(first) };
            self.phase(phase).stores.push(store);
            first = end;
        }
        self.read(value, phase)
    }

    /// Notes the columns at which `width` columns of a value, whose column 0 is `start` columns behind the first of them, begin to
    /// be made of another part of a joined value.
    fn cut(
        &self,
        var: Var,
        start: isize,
        width: usize,
        cuts: &mut BTreeSet<usize>,
        visited: &mut HashSet<(Var, isize)>,
    ) -> Option<()> {
        if !visited.insert((var, start)) {
            return Some(());
        }
        match &self.value(var)?.form {
            Form::Read(_) | Form::State | Form::Number(_) | Form::Product(..) => {}
            Form::Elementwise(_, operands) => {
                operands.iter().try_for_each(|operand| self.cut(*operand, start, width, cuts, visited))?;
            }
            Form::Columns(of, column) => {
                self.cut(*of, start.checked_sub_unsigned(*column)?, width, cuts, visited)?;
            }
            Form::Joined(parts) => {
                let mut start = start;
                for part in parts {
                    cuts.extend(usize::try_from(start).ok().filter(|cut| (1..width).contains(cut)));
                    if let Filling::Value(value) = part.filling {
                        self.cut(value, start, width, cuts, visited)?;
                    }
                    start = start.checked_add_unsigned(part.width)?;
                }
                cuts.extend(usize::try_from(start).ok().filter(|cut| (1..width).contains(cut)));
            }
        }
        Some(())
    }

    /// Adds the stores of all that a value is computed of in a phase, so that it is in memory by then.
    fn read(&mut self, var: Var, phase: usize) -> Option<()> {
        if !self.visited.insert((var, phase)) {
            return Some(());
        }
        let value = self.value(var)?.clone();
        match value.form {
            Form::Read(place) => {
                if !self.places.contains(&place) {
                    self.places.push(place);
                }
            }
            Form::State | Form::Number(_) => {}
            Form::Columns(of, _) => self.read(of, phase)?,
            Form::Joined(parts) => {
                for part in parts {
                    if let Filling::Value(value) = part.filling {
                        self.read(value, phase)?;
                    }
                }
            }
            Form::Product(..) => {
                self.in_memory(var)?;
            }
            Form::Elementwise(_, operands) => {
                if value.phase < phase && self.body.ty(var).dtype == DType::F32 {
                    self.in_memory(var)?;
                } else {
                    operands.into_iter().try_for_each(|operand| self.read(operand, phase))?;
                }
            }
        }
        Some(())
    }

    /// The memory of a value, which is written there.
    fn in_memory(&mut self, var: Var) -> Option<Region> {
        if let Some(region) = self.memory[var.index()] {
            return Some(region);
        }
        let Value { form, width, phase } = self.value(var)?.clone();
        if let Form::Columns(of, column) = form {
            return self.in_memory(of).map(|region| region.from(column));
        }
        let into = self.region(width);
        self.memory[var.index()] = Some(into);
        let Form::Product(left, weights) = form else {
            self.store(var, Target::Memory(into))?;
            return Some(into);
        };
        let left = self.in_memory(left)?;
        let known = self.weights.iter().position(|other| *other == weights);
        let weights = known.unwrap_or_else(|| {
            self.weights.push(weights);
            self.weights.len() - 1
        });
        self.phase(phase).products.push(Product { weights, left, into });
        Some(into)
    }

    /// The memory from which a value is read in a phase, if it is there by then.
    pub fn written(&self, var: Var, phase: usize) -> Option<Region> {
        let value = self.form(var);
        let early = matches!(value.form, Form::State | Form::Product(..)) || value.phase < phase;
        self.memory[var.index()].filter(|_| early)
    }

    /// Elements of a row of each result.
    pub fn result_widths(&self) -> impl Iterator<Item = usize> {
        self.body.outputs.iter().map(|var| self.form(*var).width)
    }

    /// The type of rows of so many elements.
    pub fn rows_type(&self, width: usize) -> TensorType {
        TensorType::new(DType::F32, [self.batch, width].as_slice())
    }

    /// The type of an operand of the kernel.
    pub fn place_type(&self, place: &Place) -> TensorType {
        let axes =
            [place.by_step.then_some(self.length), place.by_row.then_some(self.batch), Some(place.width)];
        TensorType::new(DType::F32, axes.into_iter().flatten().collect::<Vec<_>>().as_slice())
    }

    /// The type of the memory of all workgroups.
    pub fn scratch_type(&self) -> TensorType {
        TensorType::new(DType::F32, [self.groups, self.extent].as_slice())
    }
}
